#pragma once

// Weights of block dtypes as they lie on a device, and blocks of activations.
//
// A unit is 16 rows times a chunk of 8 blocks (256 values); units of a row group follow one
// another.
//   q4_0  {8 blocks × 16 rows × 16 B of nibbles}{16 rows × 8 × d}                 2304 B
//   q4_1  {8 blocks × 16 rows × 16 B of nibbles}{16 rows × 8 × d}{16 × 8 × m}     2560 B
//   q8_0  {8 blocks × 2 halves × 16 rows × 16 B}{16 rows × 8 × d}                 4352 B
// Nibbles as in the file: byte j has the values j and j + 16.

#include "wick/backend/gpu/kernels/device.h"
#include "wick/math/activation.h"
#include "wick/math/half.h"

namespace wick::gpu {

struct Q4_0 {
  static constexpr u32 kPieces = 8, kScales = 1;  // of 16 bytes a row: quants, then scales
  static constexpr bool kMinimum = false;
};
struct Q4_1 {
  static constexpr u32 kPieces = 8, kScales = 2;
  static constexpr bool kMinimum = true;
};
struct Q8_0 {
  static constexpr u32 kPieces = 16, kScales = 1;
  static constexpr bool kMinimum = false;
};
template <class Q>
inline constexpr u32 kUnitBytes = 256 * (Q::kPieces + Q::kScales);

/// Number j of the eight f16 of 16 bytes.
WICK_DEVICE float scale_at(const Bytes16& s, u32 j) {
  return to_f32(f16{static_cast<u16>(s.w[j / 2] >> j % 2 * 16)});
}

/// Σ u·q of block j of a unit's row, whose pieces are `w`, with activations at `q` (32 bytes).
template <class Q>
WICK_DEVICE i32 block_dot(const Bytes16* w, u32 j, const Bytes16& low, const Bytes16& high,
                          i32 sum) {
  i32 dot = 0;
  if constexpr (Q::kPieces == 16) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      dot = dot4(static_cast<i32>(w[2 * j].w[i]), static_cast<i32>(low.w[i]), dot);
      dot = dot4(static_cast<i32>(w[2 * j + 1].w[i]), static_cast<i32>(high.w[i]), dot);
    }
  } else {
    if constexpr (!Q::kMinimum) dot = -8 * sum;  // q4_0's nibbles are 8 too large
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 word = w[j].w[i];
      dot = dot4(static_cast<i32>(word & 0x0f0f0f0fu), static_cast<i32>(low.w[i]), dot);
      dot = dot4(static_cast<i32>(word >> 4 & 0x0f0f0f0fu), static_cast<i32>(high.w[i]), dot);
    }
  }
  return dot;
}

}  // namespace wick::gpu
