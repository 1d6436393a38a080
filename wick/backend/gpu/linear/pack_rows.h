#pragma once

#include <cstdint>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// Writes the rows of a view [.., k] of f32, f16 or bf16, in their order, to rows that lie a pitch
/// apart (in elements, a multiple of 4), each element rounded once, with zeros behind k.
void pack_rows(Gpu& gpu, void* out, DType dtype, int64_t pitch, const ConstView& in);

}  // namespace wick::gpu
