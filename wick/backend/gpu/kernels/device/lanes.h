#pragma once

// Sets of lanes of a warp (32 lanes: see device.h). All lanes of the warp must call these
// functions, unless stated otherwise.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

#if WICK_AMD

/// Index of the lowest bit that is 1; x isn't 0. Any thread may call it.
WICK_DEVICE u32 lowest_bit(u32 x) { return static_cast<u32>(__builtin_ctz(x)); }

/// Atomic maximum in shared memory, relaxed, at block scope. Any thread may call it.
WICK_DEVICE void max_in_block(u32* at, u32 x) {
  __hip_atomic_fetch_max(at, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}

#else  // NVIDIA

WICK_DEVICE u32 lowest_bit(u32 x) { return static_cast<u32>(__ffs(static_cast<int>(x)) - 1); }
WICK_DEVICE void max_in_block(u32* at, u32 x) { atomicMax(at, x); }

#endif

/// The bits of the lanes below this one.
WICK_DEVICE u32 lanes_below() { return (1u << lane()) - 1; }

/// The lanes with the same value as this one, among the lanes for which `there` is true. Values of
/// these lanes are below 2^bits. Of other lanes the result is unspecified.
WICK_DEVICE u32 lanes_with(u32 value, u32 bits, bool there) {
  u32 same = warp_ballot(there);
  for (u32 b = 0; b < bits; b += 4) {
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const bool one = (value >> ((b + k) & 31) & 1) != 0;
      const u32 ones = warp_ballot(one);
      same &= one ? ones : ~ones;
    }
  }
  return same;
}

}  // namespace wick::gpu
