#pragma once

// Hopper instructions for attention and gemms with quantised weights, beyond those of wgmma.h:
// one-dimensional bulk copies, barriers of some warps, pairs of f16, and wgmma with a in registers.
// Source: PTX ISA, "cp.async.bulk", "bar", "Asynchronous Warpgroup Level Matrix Instructions".

#include "wick/backend/gpu/kernels/device/wgmma.h"

#if WICK_WGMMA

namespace wick::gpu {

/// Bulk copy of `bytes`, a multiple of 16, from global to shared memory; both addresses are aligned
/// to 16. The bytes count at the barrier.
WICK_DEVICE void copy_piece(void* to, const void* from, u32 bytes, Barrier& b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&b))
      : "memory");
}

/// Starts to copy 16 bytes to a shared-memory address; both addresses are aligned to 16.
WICK_DEVICE void copy_sixteen(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// copy_sixteen, or writes zeros without reading `from`.
WICK_DEVICE void copy_sixteen_or_zeros(u32 to, const void* from, bool copy) {
  const u32 bytes = copy ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
/// Stores a word at a shared-memory address.
WICK_DEVICE void store_shared(u32 to, u32 x) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
/// Arrives at the barrier when this thread's copies by copy_sixteen are complete.
WICK_DEVICE void arrive_when_copied(Barrier& b) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&b))
               : "memory");
}

/// The stage whose turn it is in a ring of stages in shared memory, and the parity of its barriers.
template <u32 kStages>
struct PipelineState {
  u32 at = 0, parity = 0;
  /// stages: of the ring; at most kStages.
  WICK_DEVICE void advance(u32 stages = kStages) {
    if (++at < stages) return;
    at = 0;
    parity ^= 1;
  }
};

/// Barriers of some warps of a thread block (bar.sync, bar.arrive). `id` is 1 to 15. A barrier
/// opens when `threads` threads have called one of the two; the others don't wait.
WICK_DEVICE void wait_at(u32 id, u32 threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
WICK_DEVICE void arrive_at(u32 id, u32 threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Whether `is` holds in any lane of the warp.
WICK_DEVICE bool any_lane(bool is) { return __any_sync(~0u, is) != 0; }

/// x + y of two pairs of f16.
WICK_DEVICE u32 add_halves(u32 x, u32 y) {
  u32 z;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
  return z;
}
/// x · y of two pairs of f16.
WICK_DEVICE u32 multiply_halves(u32 x, u32 y) {
  u32 z;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
  return z;
}
/// Byte i of the result is byte number (which >> 4·i) & 7 of the eight bytes of x and y.
WICK_DEVICE u32 pick_bytes(u32 x, u32 y, u32 which) { return __byte_perm(x, y, which); }

/// Defines multiply_held for `columns` rows of b, whose d are `count` floats. The other arguments
/// are the names of the operands behind d.
#define WICK_WGMMA_ASM(type, count, columns, a_names, b_add, turn)                      \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type    \
               " {" WICK_NAMES_##count "}, {" a_names "}, " b_add ", 1, 1, " turn ";"   \
               : WICK_D##count                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0), \
                 "n"(kTurnB))
#define WICK_MULTIPLY_HELD(count, columns, a_names, b_add, turn)          \
  template <bool kAdd, class T = f16, u32 kTurnB = 0>                     \
  WICK_DEVICE void multiply_held(float(&d)[count], const u32* a, u64 b) { \
    if constexpr (kSame<T, bf16>) {                                       \
      WICK_WGMMA_ASM("bf16", count, columns, a_names, b_add, turn);       \
    } else {                                                              \
      WICK_WGMMA_ASM("f16", count, columns, a_names, b_add, turn);        \
    }                                                                     \
  }

/// wgmma of f16 or bf16 (T): d = a·bᵀ, or d += a·bᵀ for kAdd, with 64 rows of a in registers, 64,
/// 128 or 256 rows of b in shared memory (describe<kTurnB>) and 16 of k. Lane 4·g + t of a warp
/// holds four words of a: {row g, k 2t and 2t + 1}, {row g + 8, the same k}, {row g, k 2t + 8 and
/// 2t + 9}, {row g + 8, the same k}. d[4·j + i] is row g + i / 2 · 8, column 8·j + 2·t + i % 2.
WICK_MULTIPLY_HELD(32, 64, "%32, %33, %34, %35", "%36, %37", "%38")
WICK_MULTIPLY_HELD(64, 128, "%64, %65, %66, %67", "%68, %69", "%70")
WICK_MULTIPLY_HELD(128, 256, "%128, %129, %130, %131", "%132, %133", "%134")

#undef WICK_MULTIPLY_HELD
#undef WICK_WGMMA_ASM

/// mma.sync of f16: d = a·bᵀ with 16 rows of a, 8 rows of b and 8 of k. Lane 4·g + t holds of a
/// {row g, k 2t and 2t + 1}, {row g + 8, the same k}, and of b row g, k 2t and 2t + 1. d[i] is row
/// g + i / 2 · 8, column 2·t + i % 2. Source: PTX ISA, "Matrix Fragments for mma.m16n8k8".
WICK_DEVICE void multiply_eight(float (&d)[4], const u32 (&a)[2], u32 b) {
  const float zero = 0;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%7, %7, %7, %7};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b), "f"(zero));
}

}  // namespace wick::gpu

#endif
