#include "wick/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace wick {

size_t page_bytes() noexcept {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void release_whole_pages(const void* begin, size_t bytes) noexcept {
  const uintptr_t page = page_bytes();
  const auto start = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace wick
