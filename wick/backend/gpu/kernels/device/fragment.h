#pragma once

// Fragments of f16 and bf16 matrices in the registers of a warp, for mma.sync from sm_80 on.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k16", "ldmatrix".
//
// A fragment of a is 16 rows by 16 of k, four words a lane. A fragment of b is 16 of k by 8
// columns, two words a lane. A fragment of sums is 16 rows by 8 columns, four floats a lane: the
// first two floats are in row lane / 4, the other two in row lane / 4 + 8, both in columns 2 ·
// (lane % 4) and the next.

#include "wick/backend/gpu/kernels/device/device.h"

#if WICK_MMA
#define WICK_FRAGMENTS 1

namespace wick::gpu {

/// Loads four blocks of 8 by 8 elements from shared memory (ldmatrix). Lane 8i + r passes the
/// address, in bytes, of row r of block i; a row is 16 bytes.
WICK_DEVICE void load_blocks(u32 (&to)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}
/// Loads four blocks of 8 by 8 elements, each transposed. Lanes pass the addresses as for
/// load_blocks.
WICK_DEVICE void load_blocks_transposed(u32 (&to)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// Whether `is` holds in any thread of the thread block. It is also a barrier.
WICK_DEVICE bool any_thread(bool is) { return __syncthreads_or(is ? 1 : 0) != 0; }

/// x, which is equal in all lanes, as a value that the compiler knows to be uniform in the warp.
WICK_DEVICE u32 uniform(u32 x) { return __shfl_sync(~0u, x, 0); }

/// (x & mask) ^ flip by one instruction. The compiler doesn't fuse the two when mask and flip are
/// constants.
WICK_DEVICE u32 and_xor(u32 x, u32 mask, u32 flip) {
  u32 y;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(y) : "r"(x), "r"(mask), "r"(flip));
  return y;
}

/// 2^x within a relative error of 2^-22. Denormal results are flushed to 0.
WICK_DEVICE float near_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// sums += a · b.
template <class T>
WICK_DEVICE void multiply_fragments(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  if constexpr (kSame<T, bf16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

}  // namespace wick::gpu

#else
#define WICK_FRAGMENTS 0
#endif
