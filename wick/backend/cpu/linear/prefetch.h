#pragma once

#include <cstdint>

namespace wick::cpu {

/// What unmeasured processors get: float weights, whose panels are read at several places at once,
/// more than their prefetchers follow; blocks are one stream.
inline constexpr int64_t kPrefetchFloats = 8192, kPrefetchBlocks = 0;

/// How far ahead of its loads a stream of packed weights asks for memory, in bytes; `otherwise` on
/// processors that nobody has measured. With 0 a kernel asks for what it reads next anyway.
int64_t prefetch_bytes(int64_t otherwise);

}  // namespace wick::cpu
