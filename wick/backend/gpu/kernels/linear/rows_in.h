#pragma once

// Reads rows of activations of any float dtype, one or four elements at a time.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"

namespace wick::gpu {

/// Reads an element as f32. `format` is an OutFormat.
WICK_DEVICE float load_as(const void* in, u32 format, i64 at) {
  if (format == kStoreF32) return static_cast<const float*>(in)[at];
  if (format == kStoreF16) return to_f32(static_cast<const f16*>(in)[at]);
  return to_f32(static_cast<const bf16*>(in)[at]);
}

/// Reads four neighbouring elements at once. They are aligned to their size.
WICK_DEVICE void load_four_as(const void* in, u32 format, i64 at, float (&x)[4]) {
  if (format == kStoreF32) {
    const auto four = *reinterpret_cast<const Vec<float, 4>*>(static_cast<const float*>(in) + at);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) x[i] = four[i];
  } else if (format == kStoreF16) {
    const auto four = *reinterpret_cast<const Vec<f16, 4>*>(static_cast<const f16*>(in) + at);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) x[i] = four[i];
  } else {
    const auto four = *reinterpret_cast<const Vec<bf16, 4>*>(static_cast<const bf16*>(in) + at);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) x[i] = four[i];
  }
}

}  // namespace wick::gpu
