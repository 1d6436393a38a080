#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "wick/io/gguf.h"

namespace wick::io::test {

/// Reads everything in a file with every getter, down to the last byte of its tensors. Returns a
/// digest, so that the compiler can't omit a read. Getters may throw Error.
uint64_t walk(const Gguf& file);

/// Opens `bytes` as GGUF and walks it. Returns false if opening throws Error.
bool walk_if_valid(std::span<const std::byte> bytes);

}  // namespace wick::io::test
