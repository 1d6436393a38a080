#pragma once

// Decodes neighbouring values of a block to f32.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/math/quants.h"

namespace wick::gpu {

/// Neighbouring values that are decoded together.
constexpr u32 kDecodedPart = 8;

/// Decodes the values from `first` on, a multiple of kDecodedPart.
template <class Block>
WICK_DEVICE void decode_eight(const Block& block, u32 first, float (&x)[kDecodedPart]) {
  if constexpr (requires { math::eight_of(block, 0); }) {
    const auto eight = math::eight_of(block, static_cast<int>(first / kDecodedPart));
#pragma unroll
    for (u32 i = 0; i < kDecodedPart; ++i) x[i] = eight.value(static_cast<int>(i));
  } else {
#pragma unroll
    for (u32 i = 0; i < kDecodedPart; ++i) {
      u32 j = first + i;
      // Clang would merge the byte loads into word loads, which would be misaligned.
      if constexpr (WICK_AMD) forget(j);
      x[i] = math::value_of(block, static_cast<int>(j));
    }
  }
}

}  // namespace wick::gpu
