#pragma once

#include <cstdint>

namespace wick::cpu {

/// Distances for processors that haven't been measured. Float weights are read as several streams
/// at once, more than hardware prefetchers follow; blocks are one stream.
inline constexpr int64_t kPrefetchFloats = 8192, kPrefetchBlocks = 0;

/// The prefetch distance of a stream of packed weights in bytes; `otherwise` on processors that
/// haven't been measured. With 0 a kernel prefetches what it reads next.
int64_t prefetch_bytes(int64_t otherwise);

}  // namespace wick::cpu
