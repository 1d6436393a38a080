#pragma once

// Pieces of matrices of 16-bit floats in the registers of a warp, as NVIDIA's matrix units from
// sm_80 on take them. Source: PTX ISA, "Matrix Fragments for mma.m16n8k16", "ldmatrix".
//
// A fragment of a is 16 rows by 16 of k, four words a lane; of b 16 of k by 8 columns, two words; a
// sum 16 by 8, four floats: lane / 4 is the row of the first two, the next eight rows have the
// others; 2 · (lane % 4) is the column.

#include "wick/backend/gpu/kernels/device/device.h"

#if WICK_MMA
#define WICK_FRAGMENTS 1

namespace wick::gpu {

/// Where something in shared memory lies there, in bytes.
/// Four 8 by 8 blocks out of shared memory; lane 8i + r says where row r of block i lies, 16 bytes.
WICK_DEVICE void load_blocks(u32 (&to)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}
/// The same, each block transposed.
WICK_DEVICE void load_blocks_transposed(u32 (&to)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// Whether it is so for any thread of the thread block; also a sync().
WICK_DEVICE bool any_thread(bool is) { return __syncthreads_or(is ? 1 : 0) != 0; }

/// x, which all lanes of a warp have alike, as a number of the warp's.
WICK_DEVICE u32 uniform(u32 x) { return __shfl_sync(~0u, x, 0); }

/// (x & mask) ^ flip by one instruction, though both are constants.
WICK_DEVICE u32 and_xor(u32 x, u32 mask, u32 flip) {
  u32 y;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(y) : "r"(x), "r"(mask), "r"(flip));
  return y;
}

/// 2 to the power x, within 2^-22 of it; what would be denormal is 0.
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
