#pragma once

// Look-ups in tables of sixteen bytes by byte permutes.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

/// The low nibbles (high = 0) or the high nibbles (high = 1) of the bytes of x.
WICK_DEVICE u32 nibbles_of(u32 x, u32 high) { return x >> 4 * high & 0x0f0f0f0fu; }

/// Entries of a table of sixteen bytes: byte b of the result is the entry whose index is the low
/// (high = 0) or the high nibble (high = 1) of byte b of x. kFirst holds the first eight entries,
/// the first of them in its lowest byte.
template <u64 kFirst, u64 kSecond>
WICK_DEVICE u32 look_up(u32 x, u32 high) {
  constexpr u32 kTable[4] = {static_cast<u32>(kFirst), static_cast<u32>(kFirst >> 32),
                             static_cast<u32>(kSecond), static_cast<u32>(kSecond >> 32)};
#if WICK_AMD
  const u32 index = nibbles_of(x, high), low = index & 0x07070707u;
  const u32 first = __builtin_amdgcn_perm(kTable[1], kTable[0], low);
  const u32 second = __builtin_amdgcn_perm(kTable[3], kTable[2], low);
  return __builtin_amdgcn_perm(second, first, 0x03020100u | (index >> 1 & 0x04040404u));
#else
  // A permute takes its four indices from the low nibbles of a word, so it finds the entries of
  // both nibbles of two bytes. The look-ups don't depend on `high`: code that reads both nibbles of
  // a word makes them once.
  const u32 low = x & 0x77777777u, choice = (x >> 1 & 0x44444444u) | 0x32103210u;
  u32 pairs[2];
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    const u32 first = __byte_perm(kTable[0], kTable[1], low >> 16 * i);
    const u32 second = __byte_perm(kTable[2], kTable[3], low >> 16 * i);
    pairs[i] = __byte_perm(first, second, choice >> 16 * i);
  }
  return __byte_perm(pairs[0], pairs[1], high == 0 ? 0x6420u : 0x7531u);
#endif
}

}  // namespace wick::gpu
