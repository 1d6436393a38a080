#pragma once

#include <cstdint>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// Copies the rows of a view [.., k] of f32, f16 or bf16 to rows that are `pitch` elements apart (a
/// multiple of 4). Each element is rounded once; zeros fill the rows behind k.
void pack_rows(Gpu& gpu, void* out, DType dtype, int64_t pitch, const ConstView& in);

}  // namespace wick::gpu
