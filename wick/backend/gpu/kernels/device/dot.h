#pragma once

// AMD's dot products of unsigned with signed bytes, from gfx11 on, and of nibbles.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

#if WICK_DOT4_MIXED

/// c + Σ a_i·b_i over the four unsigned bytes of a and the signed ones of b.
WICK_DEVICE i32 dot4_mixed(u32 a, i32 b, i32 c) {
  return __builtin_amdgcn_sudot4(false, static_cast<i32>(a), true, b, c, false);
}

#endif

#if WICK_DOT8_MIXED || WICK_DOT8_UNSIGNED

/// Turns 32 activations to the operands of dot_nibbles. An even lane has the first 16 of them, and
/// gets the low nibbles of all; the next lane has the others, and gets the high nibbles.
WICK_DEVICE Bytes16 to_nibbles(const Bytes16& half) {
  constexpr u32 kLow = 0x0f0f0f0fu;
  // Products of unsigned nibbles need activations that are 128 too large.
  constexpr u32 kSign = WICK_DOT8_MIXED ? 0 : 0x80808080u;
  // Nibbles keep their places, or move up in even lanes and down in odd ones.
  const bool odd = thread_index() % 2 != 0;
  const u32 kept = odd ? ~kLow : kLow, turn = odd ? 4 : 28;
  Bytes16 nibbles;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const u32 own = half.w[i] ^ kSign;
    const u32 moved = __builtin_rotateright32(shuffle_xor<1>(own), turn);
    nibbles.w[i] = (own & kept) | (moved & ~kept);
  }
  return nibbles;
}
/// Σ u·q over 32 unsigned nibbles. The low nibbles of word i belong to the activations in word i of
/// the first 16, the high ones to those in word i of the others. low, high: see to_nibbles.
WICK_DEVICE i32 dot_nibbles(const Bytes16& nibbles, const Bytes16& low, const Bytes16& high) {
#if WICK_DOT8_MIXED
  i32 lower = 0, upper = 0;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const i32 four_bits = static_cast<i32>(nibbles.w[i]);
    lower =
        __builtin_amdgcn_sudot8(false, four_bits, false, static_cast<i32>(low.w[i]), lower, false);
    upper =
        __builtin_amdgcn_sudot8(false, four_bits, true, static_cast<i32>(high.w[i]), upper, false);
  }
  return lower + upper * 16;
#else
  u32 lower = 0, upper = 0, sum = 0;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    lower = __builtin_amdgcn_udot8(nibbles.w[i], low.w[i], lower, false);
    upper = __builtin_amdgcn_udot8(nibbles.w[i], high.w[i], upper, false);
    sum = __builtin_amdgcn_udot8(nibbles.w[i], 0x11111111u, sum, false);
  }
  return static_cast<i32>(lower + upper * 16 - sum * 128);
#endif
}

#endif

}  // namespace wick::gpu
