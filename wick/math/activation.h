#pragma once

// How a block of 32 activations becomes int8 for the products with quantised weights.

#include "wick/math/scalar.h"

namespace wick::math {

/// What a quantised block of activations carries beside its 32 int8 values.
struct ActivationScale {
  float d;  ///< value = d·q
  i32 sum;  ///< Σ q
};

/// Quantises 32 floats to int8 with the scale d = max|x|/127: q = rint(x·(127/max|x|)).
/// Every input: a block with an infinity or a NaN gets d = NaN and q = 0, one with max|x| ≤ 1e-30
/// d = 0 and q = 0. The steps are part of the numeric contract, so every backend has the same bits.
WICK_FN ActivationScale quantize_activation(const float* x, i8* q) {
  u32 largest = 0;  // as bit patterns: NaN above infinity above every finite magnitude
  for (int j = 0; j < 32; ++j) {
    const u32 magnitude = f32_bits(x[j]) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  const float amax = bits_f32(largest);
  const bool special = largest >= 0x7f800000u;
  const bool zero = amax <= 1e-30f;
  const bool dead = special | zero;
  const float inverse = 127.0f / (dead ? 1.0f : amax);
  const u32 keep = dead ? 0u : ~0u;
  i32 sum = 0;
  for (int j = 0; j < 32; ++j) {
    const float scaled = bits_f32(f32_bits(x[j]) & keep) * inverse;
    const i32 value = static_cast<i32>(rint(scaled));
    q[j] = static_cast<i8>(value);
    sum += value;
  }
  const float d = amax / 127.0f;
  return {special ? detail::kNaNF32 : (zero ? 0.0f : d), sum};
}

}  // namespace wick::math
