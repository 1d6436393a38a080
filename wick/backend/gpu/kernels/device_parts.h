#pragma once

// Groups that were launched as the parts of one (Grid::parts): they run at the same time and reach
// each other's shared memory. Where hardware has no such thing a group is the only part.

#include "wick/backend/gpu/kernels/device.h"

#if !WICK_AMD && __CUDA_ARCH__ >= 900
#define WICK_PARTS 1
#else
#define WICK_PARTS 0
#endif

namespace wick::gpu {

#if WICK_PARTS

/// To the place in another part's shared memory where `here` lies in one's own. That part has to
/// have arrived before.
WICK_DEVICE void store_in_part(u32 part, float* here, float x) {
  u32 at = static_cast<u32>(__cvta_generic_to_shared(here));
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(part));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}
/// All items of all parts arrive before any goes on behind wait_for_parts(); what they wrote before
/// is seen there by all. Calls alternate.
WICK_DEVICE void arrive_at_parts() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
WICK_DEVICE void wait_for_parts() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

#else

WICK_DEVICE void store_in_part(u32, float* here, float x) { *here = x; }
WICK_DEVICE void arrive_at_parts() {}
WICK_DEVICE void wait_for_parts() { sync(); }

#endif

}  // namespace wick::gpu
