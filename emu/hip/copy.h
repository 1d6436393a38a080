#pragma once

// Builds copy and fill operations from the arguments of stream and graph functions.

#include "emu/hip/api.h"

namespace emu::hip {

/// No size may be larger than this, so that products of sizes stay in range.
constexpr size_t kMostBytes = size_t{1} << 46;

/// These functions throw if the direction is invalid or if a pointer isn't memory of the kind that
/// the direction says.
CopyOp copy_op(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
CopyOp copy_op(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
               size_t height, hipMemcpyKind kind);
CopyOp copy_op(const hipMemcpy3DParms& parms);
CopyOp copy_op(const HIP_MEMCPY3D* parms);
FillOp fill_op(void* to, uint32_t value, uint32_t element, size_t count);
FillOp fill_op(const hipMemsetParams& parms);

CopyOp copy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                      hipMemcpyKind kind);
CopyOp copy_from_symbol(void* to, const void* symbol, size_t bytes, size_t offset,
                        hipMemcpyKind kind);
FillOp fill_2d(void* to, size_t pitch, int value, size_t width, size_t height);
FillOp fill_3d(const hipPitchedPtr& to, int value, const hipExtent& extent);

/// Returns the pointer that a driver API structure gives for one side of a copy.
inline const void* side_of(hipMemoryType type, const void* host, const void* device) {
  require(type == hipMemoryTypeHost || type == hipMemoryTypeDevice ||
          type == hipMemoryTypeUnified || type == hipMemoryTypeManaged);
  return type == hipMemoryTypeHost ? host : device;
}

/// Queues a copy or a fill. An asynchronous copy still waits for its end if ordinary host memory
/// takes part; a synchronous copy within one device's memory doesn't.
void copy(const CopyOp& op, hipStream_t handle, bool async);
void fill(const FillOp& op, hipStream_t handle, bool async);

/// Returns a registered variable's address on the current device, `offset` bytes into the variable.
void* symbol_address(const void* symbol, size_t offset, size_t bytes);

}  // namespace emu::hip
