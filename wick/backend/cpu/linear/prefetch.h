#pragma once

#include <cstdint>

namespace wick::cpu {

/// The prefetch distances of processors that no row of prefetch.cpp names. A Xeon with AMX decodes q4_0
/// at 1.3 (16 threads) to 1.6 times (1 thread) the speed with 4 KiB: its hardware prefetchers alone
/// don't keep enough misses in flight.
inline constexpr int64_t kPrefetchFloats = 8192, kPrefetchBlocks = 4096;

/// How far ahead of its loads a stream of packed weights asks for memory, in bytes; `otherwise` on
/// processors that nobody has measured. With 0 a kernel asks for what it reads next anyway.
int64_t prefetch_bytes(int64_t otherwise);

}  // namespace wick::cpu
