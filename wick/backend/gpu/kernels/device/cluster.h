#pragma once

// Thread block clusters (Grid::cluster): neighbouring thread blocks that run at the same time and
// write to each other's shared memory. Where hardware has no clusters, a cluster is one thread
// block.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

#if WICK_CLUSTER

/// Cluster barrier: a thread passes cluster_wait() once all threads of the cluster have called
/// cluster_arrive(). The two calls alternate.
WICK_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
WICK_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// An inbox is an mbarrier, eight bytes of shared memory, that counts the bytes which other blocks
// send. A receiver waits for these bytes only, where a cluster barrier with fences would wait for
// all writes.

/// Initialises an inbox. One thread calls it, before cluster_arrive().
WICK_DEVICE void make_inbox(u64* inbox) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(inbox));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// One thread announces how many bytes arrive in the next round.
WICK_DEVICE void expect(u64* inbox, u32 bytes) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(inbox));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
               : "memory");
}
/// Writes x to the shared memory of block `part` of the cluster, at the address that `here` has in
/// this block. That block must have arrived at the cluster barrier before.
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
/// Waits until all bytes of a round have arrived, and makes them visible to this thread.
WICK_DEVICE void wait_for_inbox(u64* inbox, u32 round) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(inbox));
  asm volatile(
      "{\n.reg .pred there;\n"
      "again%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 there, [%0], %1;\n"
      "@!there bra again%=;\n}" ::"r"(at),
      "r"(round & 1)
      : "memory");
}

/// The rank of the thread block in its cluster, and the index of the cluster along the first axis.
WICK_DEVICE u32 cluster_rank() {
  u32 n;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(n));
  return n;
}
WICK_DEVICE u32 cluster_index() {
  u32 n;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(n));
  return n;
}
/// Loads from the shared memory of another block of the cluster, from the address that `here` has
/// in this block's.
WICK_DEVICE float load_of_cluster_block(u32 rank, const float* here) {
  u32 at = static_cast<u32>(__cvta_generic_to_shared(here));
  float x;
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
  return x;
}
/// Whether a condition holds for any thread of the thread block. This is also a sync().
WICK_DEVICE bool any_of_block(bool is) { return __syncthreads_or(is ? 1 : 0) != 0; }

#else

WICK_DEVICE void cluster_arrive() {}
WICK_DEVICE void cluster_wait() { sync(); }
WICK_DEVICE void make_inbox(u64*) {}
WICK_DEVICE void expect(u64*, u32) {}
WICK_DEVICE void send(u32, float* here, u64*, float x) { *here = x; }
WICK_DEVICE void wait_for_inbox(u64*, u32) { sync(); }

#endif

}  // namespace wick::gpu
