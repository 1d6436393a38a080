#pragma once

// Builds copy and fill operations from the arguments of stream and graph functions.

#include "emu/hip/api.h"

namespace emu::hip {

/// These functions throw if the direction is invalid or if a pointer isn't memory of the kind that
/// the direction says.
CopyOp copy_op(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
CopyOp copy_op(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
               size_t height, hipMemcpyKind kind);
CopyOp copy_op(const hipMemcpy3DParms& parms);
FillOp fill_op(void* to, uint32_t value, uint32_t element, size_t count);
FillOp fill_op(const hipMemsetParams& parms);

/// Returns a registered variable's address on the current device, `offset` bytes into the variable.
void* symbol_address(const void* symbol, size_t offset, size_t bytes);

}  // namespace emu::hip
