#pragma once

// Copies and fills from what callers say to operations; used by functions of streams and of graphs.

#include "emu/hip/api.h"

namespace emu::hip {

/// Throws where the direction isn't one, or a side isn't memory of the kind that it says.
CopyOp copy_op(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
CopyOp copy_op(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
               size_t height, hipMemcpyKind kind);
CopyOp copy_op(const hipMemcpy3DParms& parms);
FillOp fill_op(void* to, uint32_t value, uint32_t element, size_t count);
FillOp fill_op(const hipMemsetParams& parms);

/// A registered variable's place on the current device, `offset` bytes into it.
void* symbol_address(const void* symbol, size_t offset, size_t bytes);

}  // namespace emu::hip
