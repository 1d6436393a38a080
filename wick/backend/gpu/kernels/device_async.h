#pragma once

// Copies from memory to shared memory that go on while the items that asked for them do other work:
// NVIDIA from sm_80 on. Source: PTX ISA 7.0, "Asynchronous copy: cp.async".

#include "wick/backend/gpu/kernels/device.h"

#if !WICK_AMD && __CUDA_ARCH__ >= 800
#define WICK_ASYNC_COPIES 1
#else
#define WICK_ASYNC_COPIES 0
#endif

namespace wick::gpu {

inline constexpr bool kAsyncCopies = WICK_ASYNC_COPIES != 0;

#if WICK_ASYNC_COPIES

/// Copies an item's 4 or 16 bytes, or puts zeros where there is nothing: `from` isn't read then.
template <u32 kBytes>
WICK_DEVICE void copy_async(void* to, const void* from, bool there) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(to)), size = there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(size)
                 : "memory");
  } else {
    static_assert(kBytes == 4);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(size)
                 : "memory");
  }
}
/// Closes a bundle of the item's copies.
WICK_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most so many bundles of the item's are under way. Others see them behind a sync().
template <u32 kMost>
WICK_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kMost) : "memory");
}

#else

template <u32 kBytes>
WICK_DEVICE void copy_async(void*, const void*, bool) {}
WICK_DEVICE void commit_copies() {}
template <u32 kMost>
WICK_DEVICE void wait_copies() {}

#endif

}  // namespace wick::gpu
