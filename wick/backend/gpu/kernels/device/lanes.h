#pragma once

// Shuffles by index, memory order, ranks and prefix sums among the lanes of a warp (32 lanes: see
// device.h). All lanes of the warp must call them, unless stated otherwise.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

#if WICK_AMD

/// x of lane `from` of the warp.
WICK_DEVICE u32 from_lane(u32 x, u32 from) {
  const u32 at = (thread_index() & (WICK_WAVE - kWarp)) | from;
  return static_cast<u32>(
      __builtin_amdgcn_ds_bpermute(static_cast<i32>(at * 4), static_cast<i32>(x)));
}

/// Orders the lanes' accesses to shared memory: a lane's reads after it see the writes of the
/// warp's other lanes before it.
WICK_DEVICE void warp_sync() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}

/// Index of the lowest bit that is 1; x isn't 0. Any thread may call it.
WICK_DEVICE u32 lowest_bit(u32 x) { return static_cast<u32>(__builtin_ctz(x)); }

/// Atomic maximum in shared memory, relaxed, at block scope. Any thread may call it.
WICK_DEVICE void max_in_block(u32* at, u32 x) {
  __hip_atomic_fetch_max(at, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}

#else  // NVIDIA

WICK_DEVICE u32 from_lane(u32 x, u32 from) { return __shfl_sync(~0u, x, static_cast<int>(from)); }
WICK_DEVICE void warp_sync() { __syncwarp(); }
WICK_DEVICE u32 lowest_bit(u32 x) { return static_cast<u32>(__ffs(static_cast<int>(x)) - 1); }
WICK_DEVICE void max_in_block(u32* at, u32 x) { atomicMax(at, x); }

#endif

WICK_DEVICE float from_lane(float x, u32 from) { return bits_f32(from_lane(f32_bits(x), from)); }
WICK_DEVICE u64 from_lane(u64 x, u32 from) {
  const u64 low = from_lane(static_cast<u32>(x), from);
  return low | u64{from_lane(static_cast<u32>(x >> 32), from)} << 32;
}
WICK_DEVICE double from_lane(double x, u32 from) { return bits_f64(from_lane(f64_bits(x), from)); }

/// The bits of the lanes below this one.
WICK_DEVICE u32 lanes_below() { return (1u << lane()) - 1; }

/// The lanes of the set `among` with the same value as this one. Their values are below 2^bits. In
/// other lanes the result is unspecified.
WICK_DEVICE u32 lanes_with(u32 value, u32 bits, u32 among) {
  u32 same = among;
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

/// Inclusive prefix sum over the warp.
WICK_DEVICE u32 warp_prefix(u32 x) {
#pragma unroll
  for (u32 distance = 1; distance < kWarp; distance *= 2) {
    const u32 before = from_lane(x, (lane() - distance) % kWarp);
    if (lane() >= distance) x += before;
  }
  return x;
}

}  // namespace wick::gpu
