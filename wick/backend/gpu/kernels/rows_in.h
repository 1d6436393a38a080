#pragma once

// Rows of activations in any float dtype, read one element at a time.

#include "wick/backend/gpu/kernels/element.h"
#include "wick/backend/gpu/kernels/product.h"

namespace wick::gpu {

/// An element as an f32. The formats are those of outputs.
WICK_DEVICE float load_as(const void* in, u32 format, i64 at) {
  if (format == kStoreF32) return static_cast<const float*>(in)[at];
  if (format == kStoreF16) return to_f32(static_cast<const f16*>(in)[at]);
  return to_f32(static_cast<const bf16*>(in)[at]);
}

}  // namespace wick::gpu
