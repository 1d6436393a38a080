#pragma once

// What NVIDIA's sm_90a has beyond the dialect of device.h: barriers that count bytes, copies of
// whole pieces of memory into shared memory behind a program's back, and products of matrices whose
// operands lie there. Source: PTX ISA, "mbarrier", "cp.async.bulk", "wgmma". WICK_HOPPER says
// whether they are there.

#include "wick/backend/gpu/kernels/device.h"

#if !WICK_AMD && defined(__CUDA_ARCH_FEAT_SM90_ALL)

#define WICK_HOPPER 1

namespace wick::gpu {

/// Where something lies in shared memory, as instructions are told.
WICK_DEVICE u32 shared_address(const void* p) {
  return static_cast<u32>(__cvta_generic_to_shared(p));
}

/// A barrier in shared memory that completes a phase when `arrivals` have come and all announced
/// bytes have been copied.
struct PhaseBarrier {
  u64 state;

  /// By one item; seen by the others, and by copies, after a fence_barriers and a sync.
  WICK_DEVICE void init(u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state)),
                 "r"(arrivals)
                 : "memory");
  }
  WICK_DEVICE void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state))
                 : "memory");
  }
  /// Arrives, and announces bytes of copies for this phase.
  WICK_DEVICE void expect(u32 bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)),
        "r"(bytes)
        : "memory");
  }
  /// Until the phase of this parity (0 for the first, then 1, 0, …) has completed.
  WICK_DEVICE void wait(u32 parity) {
    u32 done;
    do {
      asm volatile(
          "{\n.reg .pred done;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
          "selp.u32 %0, 1, 0, done;\n}"
          : "=r"(done)
          : "r"(shared_address(&state)), "r"(parity)
          : "memory");
    } while (done == 0);
  }
};
WICK_DEVICE void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Copies bytes, a multiple of 16, from memory into shared memory, both aligned to 16; the barrier
/// hears of them.
WICK_DEVICE void copy_piece(void* to, const void* from, u32 bytes, PhaseBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&barrier.state))
      : "memory");
}

/// Some of the group's items meet at a barrier of number 1 … 15; a multiple of 32 of them.
WICK_DEVICE void sync_some(u32 number, u32 count) {
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(number), "r"(count) : "memory");
}

/// The lanes of a warp meet.
WICK_DEVICE void sync_warp() { __syncwarp(); }
/// Whether it is so in any of a warp's lanes.
WICK_DEVICE bool any_lane(bool is) { return __any_sync(~0u, is) != 0; }

/// Two f16 at once: x + y, x·y + z, rounded once.
WICK_DEVICE u32 add_halves(u32 x, u32 y) {
  u32 z;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
  return z;
}
WICK_DEVICE u32 fma_halves(u32 x, u32 y, u32 z) {
  u32 w;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(w) : "r"(x), "r"(y), "r"(z));
  return w;
}
/// Byte i of the result is number (which >> 4·i) & 7 of the eight bytes of x and y.
WICK_DEVICE u32 pick_bytes(u32 x, u32 y, u32 which) { return __byte_perm(x, y, which); }

/// Registers of each item of a group of four warps from here on: given back, or more asked for.
template <u32 kCount>
WICK_DEVICE void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <u32 kCount>
WICK_DEVICE void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// A matrix in shared memory, 64 rows of 64 f16 (128 bytes) each, whose 16-byte pieces lie at
/// number (piece ^ row % 8); at a multiple of 1024 bytes. Steps of 32 bytes along the rows: add 2
/// each.
WICK_DEVICE u64 matrix_descriptor(const void* p) {
  constexpr u64 kSwizzle128 = u64{1} << 62, kLeading = u64{1} << 16;
  constexpr u64 kEightRows = u64{1024 / 16} << 32;
  return (shared_address(p) & 0x3ffffu) >> 4 | kLeading | kEightRows | kSwizzle128;
}

/// Before the first product after registers of one were written.
WICK_DEVICE void products_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Products up to here are a batch.
WICK_DEVICE void products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most kLeft batches are under way.
template <u32 kLeft>
WICK_DEVICE void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

/// sums, which for `kAdd` count, + 64 rows by 64 columns, 16 deep, in f16 with f32 sums. Four warps
/// have 16 rows each; lane 4·g + t: a = {row g: k 2t, 2t + 1; row g + 8: the same; row g: k 2t + 8,
/// 2t + 9; row g + 8}; sums[4·j + i]: row g + i / 2 · 8, column 8·j + 2·t + i % 2.
template <bool kAdd>
WICK_DEVICE void product_64x64x16(float (&s)[32], const u32* a, u64 b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, %37, 1, 1, 0;"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]),
        "+f"(s[7]), "+f"(s[8]), "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]),
        "+f"(s[14]), "+f"(s[15]), "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]),
        "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]),
        "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0));
}

/// The values are the products', once these were waited for: the compiler doesn't know.
WICK_DEVICE void arrived(float (&s)[32]) {
#pragma unroll
  for (u32 i = 0; i < 32; ++i) asm volatile("" : "+f"(s[i])::"memory");
}

}  // namespace wick::gpu

#endif
