#pragma once

#include <cstddef>

namespace wick {

/// Bytes of a page of memory.
size_t page_bytes() noexcept;

/// Gives the contents of the whole pages inside [begin, begin + bytes) back to the system. The
/// pages at either end also hold somebody else's bytes and stay. Memory mapped from a file reads as
/// before, anonymous memory as zeros.
void release_whole_pages(const void* begin, size_t bytes) noexcept;

}  // namespace wick
