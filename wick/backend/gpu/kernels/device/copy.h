#pragma once

// Copies from memory to a thread block's shared memory that go on while the thread block does other
// things, where hardware has them; elsewhere they are done at once.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

#if WICK_ASYNC_COPIES

/// Starts copying 16 bytes; both places are aligned to them.
WICK_DEVICE void start_copy(Bytes16* shared_to, const Bytes16* from) {
  const u32 to = shared_address(shared_to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// The same for 4 bytes.
WICK_DEVICE void start_copy(u32* shared_to, const u32* from) {
  const u32 to = shared_address(shared_to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
/// Copies 16 bytes, or writes zeros: `from` is then not read.
WICK_DEVICE void start_copy_or_zeros(Bytes16* shared_to, const Bytes16* from, bool copy) {
  const u32 to = shared_address(shared_to), bytes = copy ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
/// Copies the first `size` of 4 or 16 bytes and writes zeros behind them: of none `from` isn't
/// read.
template <u32 kBytes>
WICK_DEVICE void start_copy_of(float* shared_to, const float* from, u32 size) {
  const u32 to = shared_address(shared_to);
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size)
                 : "memory");
  } else {
    static_assert(kBytes == 4);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(size)
                 : "memory");
  }
}
/// Ends a set of copies of this thread's.
WICK_DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all sets of this thread's copies but the last kSets. The thread block sees them after
/// a sync().
template <u32 kSets>
WICK_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kSets) : "memory");
}

#else

WICK_DEVICE void start_copy(Bytes16* shared_to, const Bytes16* from) { *shared_to = *from; }
WICK_DEVICE void start_copy(u32* shared_to, const u32* from) { *shared_to = *from; }
WICK_DEVICE void start_copy_or_zeros(Bytes16* shared_to, const Bytes16* from, bool copy) {
  *shared_to = copy ? *from : Bytes16{};
}
WICK_DEVICE void end_copies() {}
template <u32 kSets>
WICK_DEVICE void wait_for_copies() {}

#endif

}  // namespace wick::gpu
