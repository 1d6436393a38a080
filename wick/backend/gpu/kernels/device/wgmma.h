#pragma once

// Hopper instructions: warpgroup multiplication (wgmma) with operands in shared memory, tensor
// copies (TMA), and mbarriers that count copied bytes. Source: PTX ISA 8.0, "Asynchronous Warpgroup
// Level Matrix Instructions", "Data Movement and Conversion Instructions: Tensor copy", "Parallel
// Synchronization: mbarrier".

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/layout/copy_map.h"

#if WICK_WGMMA

namespace wick::gpu {

// ---- Barriers in shared memory. A phase ends when all arrivals and announced bytes have come.

struct alignas(8) Barrier {
  u64 state;
};
WICK_DEVICE void init(Barrier& b, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&b)), "r"(arrivals)
               : "memory");
}
/// Makes the barriers that this thread has initialised visible to copies, and to the other threads
/// after the next sync().
WICK_DEVICE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
WICK_DEVICE void arrive(Barrier& b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&b)) : "memory");
}
/// Arrives, and announces the bytes that the phase waits for.
WICK_DEVICE void arrive_for(Barrier& b, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&b)),
               "r"(bytes)
               : "memory");
}
/// Waits until the phase of this parity has ended. At a new barrier the phase before the first one
/// counts as ended.
WICK_DEVICE void wait(Barrier& b, u32 parity) {
  u32 done = 0;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(&b)), "r"(parity)
        : "memory");
  } while (done == 0);
}

// ---- Tensor copies (TMA).

/// Copies the box at these coordinates, in elements; x counts along the dim that is contiguous in
/// memory. Elements outside the matrix become zeros. The bytes count at the barrier.
WICK_DEVICE void copy_box(void* to, const CopyMap& map, i32 x, i32 y, i32 z, Barrier& b) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&b))
      : "memory");
}

/// Makes a map in global memory, which the host has written, visible to this thread's copies.
/// Source: CUDA C++ Programming Guide, "Using tensor maps in global memory".
WICK_DEVICE void acquire(const CopyMap& map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(&map) : "memory");
}

/// copy_box for tensors of four and five dims. `to` is a shared-memory address.
WICK_DEVICE void copy_box(u32 to, const CopyMap& map, const i32 (&at)[4], Barrier& b) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(&map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(shared_address(&b))
      : "memory");
}
WICK_DEVICE void copy_box(u32 to, const CopyMap& map, const i32 (&at)[5], Barrier& b) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
      "l"(&map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]), "r"(shared_address(&b))
      : "memory");
}

// ---- Registers are moved between the warpgroups of a thread block (setmaxnreg).

/// Lowers the warpgroup's registers to kRegisters a thread. It is the first statement of a branch
/// that whole warpgroups take.
template <u32 kRegisters>
WICK_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
/// Raises the warpgroup's registers to kRegisters a thread. It is the first statement of a branch
/// that whole warpgroups take.
template <u32 kRegisters>
WICK_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// ---- Warpgroup multiplication: 64 rows of a, 16 of k. It is asynchronous: the accumulators must
// not be touched until wait_multiply().

/// Matrix descriptor of an operand in shared memory with the 128-byte swizzle: chunk c of 16 bytes
/// of line r lies at c ^ r % 8. Not turned (K-major), a line is a row with 64 of k, and eight lines
/// are 1 KiB. Turned (MN-major), a line is one k with 64 rows, and the next 64 rows lie kLines
/// lines behind.
template <bool kTurned, u32 kLines = 64>
WICK_DEVICE u64 describe(u32 address) {
  constexpr u64 kMixed = u64{1} << 62, kEightLines = u64{1024 >> 4} << 32;
  constexpr u64 kMoreRows = u64{kTurned ? kLines * 128 >> 4 : 1} << 16;
  return kMixed | kEightLines | kMoreRows | (address & 0x3ffffu) >> 4;
}
/// Byte offset of chunk `chunk` (16 bytes) of line `line` in this layout.
WICK_DEVICE u32 swizzled(u32 line, u32 chunk) { return line * 128 + (chunk ^ line % 8) * 16; }
/// Dynamic shared memory in units of 1024 bytes, to which the swizzle needs operands aligned.
struct alignas(1024) KiB {
  u8 bytes[1024];
};
/// The increment of a descriptor for the next 16 of k.
template <bool kTurned>
inline constexpr u64 kNextK = (kTurned ? 16 * 128 : 16 * 2) >> 4;

WICK_DEVICE void begin_multiply() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
WICK_DEVICE void commit_multiply() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Makes this thread's earlier writes to shared memory, and the copies that it has waited for,
/// visible to wgmma. Other threads' wgmma see them after the next sync().
WICK_DEVICE void publish_to_wgmma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Waits until at most kMost committed groups are pending.
template <u32 kMost>
WICK_DEVICE void wait_multiply() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kMost) : "memory");
}
/// Keeps the compiler from using the accumulators before the preceding wait.
template <u32 kCount>
WICK_DEVICE void settle(float (&d)[kCount]) {
#pragma unroll
  for (u32 i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// The accumulators d as operands of an asm statement, and their names in its text. hopper.h uses
// them, too.
#define WICK_EIGHT(i)                                                                         \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define WICK_D32 WICK_EIGHT(0), WICK_EIGHT(8), WICK_EIGHT(16), WICK_EIGHT(24)
#define WICK_D64 WICK_D32, WICK_EIGHT(32), WICK_EIGHT(40), WICK_EIGHT(48), WICK_EIGHT(56)
#define WICK_D128                                                                           \
  WICK_D64, WICK_EIGHT(64), WICK_EIGHT(72), WICK_EIGHT(80), WICK_EIGHT(88), WICK_EIGHT(96), \
      WICK_EIGHT(104), WICK_EIGHT(112), WICK_EIGHT(120)
#define WICK_NAMES_32                                                                \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WICK_NAMES_64                                                                  \
  WICK_NAMES_32                                                                        \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WICK_NAMES_128                                                                   \
  WICK_NAMES_64                                                                          \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "   \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "     \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "     \
  "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, " \
  "%124, %125, %126, %127"

/// Defines wgmma_multiply for `columns` rows of b, whose d are `count` floats. The other arguments
/// are the names of the operands behind d.
#define WICK_WGMMA_ASM(type, count, columns, a_b, add_name, turns)                   \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " add_name                          \
               ", 0;\n"                                                              \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type \
               " {" WICK_NAMES_##count "}, " a_b ", p, 1, 1, " turns ";\n}"          \
               : WICK_D##count                                                       \
               : "l"(a), "l"(b), "r"(add), "n"(kTurnA), "n"(kTurnB))
#define WICK_WGMMA_MULTIPLY(count, columns, a_b, add_name, turns)            \
  template <class T, u32 kTurnA, u32 kTurnB>                                 \
  WICK_DEVICE void wgmma_multiply(float(&d)[count], u64 a, u64 b, u32 add) { \
    if constexpr (kSame<T, bf16>) {                                          \
      WICK_WGMMA_ASM("bf16", count, columns, a_b, add_name, turns);          \
    } else {                                                                 \
      WICK_WGMMA_ASM("f16", count, columns, a_b, add_name, turns);           \
    }                                                                        \
  }

/// d = a·bᵀ, or d += a·bᵀ if `add` isn't 0, with 64, 128 or 256 rows of b of f16 or bf16 (T).
/// kTurnA and kTurnB are 1 for MN-major operands.
WICK_WGMMA_MULTIPLY(32, 64, "%32, %33", "%34", "%35, %36")
WICK_WGMMA_MULTIPLY(64, 128, "%64, %65", "%66", "%67, %68")
WICK_WGMMA_MULTIPLY(128, 256, "%128, %129", "%130", "%131, %132")

#undef WICK_WGMMA_MULTIPLY
#undef WICK_WGMMA_ASM

}  // namespace wick::gpu

#endif
