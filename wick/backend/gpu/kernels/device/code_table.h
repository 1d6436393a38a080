#pragma once

// Look-ups in tables of sixteen bytes by byte permutes.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

/// Whether look_up takes nibbles in the order of the entries that it finds, rather than bytes of a low
/// and a high nibble.
constexpr bool kOrderedNibbles = !WICK_AMD;
/// Reorders the nibbles of a word, byte b of which has quants b and 4 + b: nibble i of the result is
/// quant i.
WICK_DEVICE u32 order_nibbles(u32 x) {
  u32 result = 0;
#pragma unroll
  for (u32 b = 0; b < 4; ++b) {
    result |= (x >> 8 * b & 15) << 4 * b | (x >> (8 * b + 4) & 15) << (16 + 4 * b);
  }
  return result;
}

/// Entries of a table of sixteen bytes: byte b of the result is the entry whose index is quant b
/// (high = 0) or quant 4 + b (high = 1) of x, in the order of order_nibbles if kOrderedNibbles is
/// true. kFirst holds the first eight entries, the first of them in its lowest byte.
template <u64 kFirst, u64 kSecond>
WICK_DEVICE u32 look_up(u32 x, u32 high) {
  constexpr u32 kTable[4] = {static_cast<u32>(kFirst), static_cast<u32>(kFirst >> 32),
                             static_cast<u32>(kSecond), static_cast<u32>(kSecond >> 32)};
#if WICK_AMD
  const u32 index = x >> 4 * high & 0x0f0f0f0fu, low = index & 0x07070707u;
  const u32 first = __builtin_amdgcn_perm(kTable[1], kTable[0], low);
  const u32 second = __builtin_amdgcn_perm(kTable[3], kTable[2], low);
  return __builtin_amdgcn_perm(second, first, 0x03020100u | (index >> 1 & 0x04040404u));
#else
  // A permute takes its four indices from the low four nibbles of a word. The indices of both halves
  // of x are computed at once; with __byte_perm the compiler would compute them separately.
  const u32 low = x & 0x77777777u, choice = (x >> 1 & 0x44444444u) | 0x32103210u;
  const auto permute = [](u32 a, u32 b, u32 which) WICK_INLINE {
    u32 y;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(which));
    return y;
  };
  const u32 first = permute(kTable[0], kTable[1], low >> 16 * high);
  const u32 second = permute(kTable[2], kTable[3], low >> 16 * high);
  return permute(first, second, choice >> 16 * high);
#endif
}

}  // namespace wick::gpu
