#pragma once

// Thread blocks that were launched as the parts of one (Grid::parts): they run at the same time and
// reach each other's shared memory. Where hardware has no such thing a thread block is the only
// part.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

#if WICK_CLUSTER

/// All threads of all parts arrive before any goes on behind cluster_wait(). Calls alternate.
WICK_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
WICK_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// What parts send each other is counted by the bytes in an inbox, eight bytes of shared memory:
// nobody waits for anything else to be seen, as a barrier with fences would.

/// One thread makes it, before it arrives.
WICK_DEVICE void make_inbox(u64* inbox) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(inbox));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// One thread says how much comes in the next round.
WICK_DEVICE void expect(u64* inbox, u32 bytes) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(inbox));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
               : "memory");
}
/// To the place in another part's shared memory where `here` lies in one's own. That part has to
/// have arrived before.
WICK_DEVICE void send(u32 part, float* here, u64* inbox, float x) {
  u32 at = static_cast<u32>(__cvta_generic_to_shared(here));
  u32 box = static_cast<u32>(__cvta_generic_to_shared(inbox));
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(part));
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(box) : "r"(part));
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(at),
      "r"(f32_bits(x)), "r"(box)
      : "memory");
}
/// Waits until all of a round is there, and sees it.
WICK_DEVICE void wait_for_inbox(u64* inbox, u32 round) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(inbox));
  asm volatile(
      "{\n.reg .pred there;\n"
      "again%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 there, [%0], %1;\n"
      "@!there bra again%=;\n}" ::"r"(at),
      "r"(round & 1)
      : "memory");
}

#else

WICK_DEVICE void cluster_arrive() {}
WICK_DEVICE void cluster_wait() { sync(); }
WICK_DEVICE void make_inbox(u64*) {}
WICK_DEVICE void expect(u64*, u32) {}
WICK_DEVICE void send(u32, float* here, u64*, float x) { *here = x; }
WICK_DEVICE void wait_for_inbox(u64*, u32) { sync(); }

#endif

}  // namespace wick::gpu
