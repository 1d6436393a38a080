#pragma once

// What products with quantised weights take of NVIDIA's Hopper beside device_wgmma.h: copies of
// plain pieces of memory, pairs of f16, and multiplication with one operand in registers. Source:
// PTX ISA, "cp.async.bulk", "Asynchronous Warpgroup Level Matrix Instructions".

#include "wick/backend/gpu/kernels/device/wgmma.h"

#if WICK_WGMMA

namespace wick::gpu {

/// Copies bytes, a multiple of 16, from memory into shared memory, both aligned to 16. They count
/// at the barrier.
WICK_DEVICE void copy_piece(void* to, const void* from, u32 bytes, Barrier& b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&b))
      : "memory");
}

/// Copies 16 bytes to an address in shared memory, both aligned to them.
WICK_DEVICE void copy_sixteen(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// Arrives when what this thread has asked for by copy_sixteen has come.
WICK_DEVICE void arrive_when_copied(Barrier& b) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&b))
               : "memory");
}

/// Whether it is so in any of a warp's lanes.
WICK_DEVICE bool any_lane(bool is) { return __any_sync(~0u, is) != 0; }

/// Two f16 at once: x + y.
WICK_DEVICE u32 add_halves(u32 x, u32 y) {
  u32 z;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
  return z;
}
/// x · y.
WICK_DEVICE u32 multiply_halves(u32 x, u32 y) {
  u32 z;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
  return z;
}
/// Byte i of the result is number (which >> 4·i) & 7 of the eight bytes of x and y.
WICK_DEVICE u32 pick_bytes(u32 x, u32 y, u32 which) { return __byte_perm(x, y, which); }

/// d = a·bᵀ, or d += a·bᵀ for kAdd: f16, 64 rows of b (describe<false>), and of a, whose rows are
/// in registers: lane 4·g + t of a warp has of its 16 {row g: k 2t, 2t + 1; row g + 8: the same;
/// row g: k 2t + 8, 2t + 9; row g + 8: the same}. d[4·j + i] is row g + i / 2 · 8, column 8·j + 2·t
/// + i % 2.
template <bool kAdd>
WICK_DEVICE void multiply_held(float (&d)[32], const u32* a, u64 b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, %37, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0));
}

/// So, with 128 rows of b: d[32·h + 4·j + i] is of row 64·h + 8·j + 2·t + i % 2 of it.
template <bool kAdd>
WICK_DEVICE void multiply_held(float (&d)[64], const u32* a, u64 b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, %69, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdd ? 1 : 0));
}

/// d = a·bᵀ by a warp alone: f16, 16 rows of a, 8 of b, 8 of k. Lane 4·g + t has of a {row g: k 2t,
/// 2t + 1; row g + 8: the same}, of b row g: k 2t, 2t + 1; d[i] is row g + i / 2 · 8, column
/// 2·t + i % 2. Source: PTX ISA, "Matrix Fragments for mma.m16n8k8".
WICK_DEVICE void multiply_eight(float (&d)[4], const u32 (&a)[2], u32 b) {
  const float zero = 0;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%7, %7, %7, %7};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b), "f"(zero));
}

}  // namespace wick::gpu

#endif
