#pragma once

#include <cstdint>

namespace wick::cpu {

/// Distances in bytes for processors that haven't been measured. Float weights are read as several
/// streams at once, more than hardware prefetchers follow. Block weights are read as one stream:
/// with a distance of 4 KiB, a Xeon with AMX decodes q4_0 at 1.3 times (16 threads) to 1.6 times (1
/// thread) the speed without prefetches.
inline constexpr int64_t kPrefetchFloats = 8192, kPrefetchBlocks = 4096;

/// The prefetch distance of a stream of packed weights in bytes; `otherwise` on processors that
/// haven't been measured. With 0 a kernel prefetches the data that it reads next.
int64_t prefetch_bytes(int64_t otherwise);

}  // namespace wick::cpu
