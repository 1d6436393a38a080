#pragma once

// Asynchronous copies from global to shared memory (cp.async). Devices without them copy
// synchronously.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

#if WICK_ASYNC_COPIES

/// Starts to copy 16 bytes. Both addresses are aligned to 16.
WICK_DEVICE void start_copy(Bytes16* shared_to, const Bytes16* from) {
  const u32 to = shared_address(shared_to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// Starts to copy 4 bytes. Both addresses are aligned to 4.
WICK_DEVICE void start_copy(u32* shared_to, const u32* from) {
  const u32 to = shared_address(shared_to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
/// Starts to copy 16 bytes, or writes zeros without reading `from`.
WICK_DEVICE void start_copy_or_zeros(Bytes16* shared_to, const Bytes16* from, bool copy) {
  const u32 to = shared_address(shared_to), bytes = copy ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
/// Starts to copy the first `size` of kBytes (4 or 16) bytes, and writes zeros behind them. With
/// size 0 `from` isn't read.
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
/// Commits this thread's copies since the last call as one set (cp.async.commit_group).
WICK_DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most the last kSets sets of this thread's copies are pending. Other threads see
/// the data after a sync().
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
template <u32 kBytes>
WICK_DEVICE void start_copy_of(float* shared_to, const float* from, u32 size) {
  if constexpr (kBytes == 16) {
    Bytes16 x = {};
    if (size == 16) {
      x = load_whole(reinterpret_cast<const Bytes16*>(from));
    } else {
#pragma unroll
      for (u32 i = 0; i < 3; ++i) {
        if (4 * i < size) x.w[i] = f32_bits(from[i]);
      }
    }
    store_whole(reinterpret_cast<Bytes16*>(shared_to), x);
  } else {
    static_assert(kBytes == 4);
    *shared_to = size != 0 ? *from : 0.0f;
  }
}
WICK_DEVICE void end_copies() {}
template <u32 kSets>
WICK_DEVICE void wait_for_copies() {}

#endif

}  // namespace wick::gpu
