#pragma once

// What attention by AMD's matrix units needs besides mma.h.

#include "wick/backend/gpu/kernels/device/device.h"

#if WICK_AMD

namespace wick::gpu {

/// 2^x within a relative error of 2^-22. Denormal results are flushed to 0.
WICK_DEVICE float near_exp2(float x) { return __builtin_amdgcn_exp2f(x); }

/// Orders the wave's earlier writes to shared memory before its later reads.
WICK_DEVICE void sync_wave() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

/// Instructions don't move across it. Compilers move loads up until registers run out.
WICK_DEVICE void keep_order() { __builtin_amdgcn_sched_barrier(0); }

/// x of the lane whose index in a wave of 64 is this lane's XOR 32.
WICK_DEVICE float from_other_half(float x) {
  const u32 other = (thread_index() % 64) ^ 32;
  return bits_f32(static_cast<u32>(
      __builtin_amdgcn_ds_bpermute(static_cast<i32>(other * 4), static_cast<i32>(f32_bits(x)))));
}

}  // namespace wick::gpu

#endif
