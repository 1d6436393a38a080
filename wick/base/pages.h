#pragma once

#include <cstddef>

namespace wick {

/// The size of a memory page in bytes.
size_t page_bytes() noexcept;

/// Physical memory in bytes, or the limit of the process's control group (or one above it) where
/// that is lower.
size_t usable_memory();

/// Returns the whole pages inside [begin, begin + bytes) to the system. Pages that the range covers
/// partly are kept, because they also hold other data. File mappings read their file again
/// afterwards, anonymous memory reads zeros.
void release_whole_pages(const void* begin, size_t bytes) noexcept;

}  // namespace wick
