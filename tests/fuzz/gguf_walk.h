#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "wick/io/gguf.h"

namespace wick::io::test {

/// Reads all that a file offers, by every getter, down to the last byte of its tensors. Returns a
/// digest of it, so that no read can be left out. Errors of getters are part of the deal.
uint64_t walk(const Gguf& file);

/// Opens `bytes` as GGUF and walks it. False when the bytes are refused with an Error.
bool walk_if_valid(std::span<const std::byte> bytes);

}  // namespace wick::io::test
