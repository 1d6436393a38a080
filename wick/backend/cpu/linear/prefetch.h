#pragma once

#include <cstdint>

namespace wick::cpu {

/// How far ahead of its loads a stream of packed weights asks for memory, in bytes; `otherwise` on
/// processors that nobody has measured. With 0 a kernel asks for what it reads next anyway.
int64_t prefetch_bytes(int64_t otherwise);

}  // namespace wick::cpu
