#include "wick/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace wick {

void release_whole_pages(void* begin, size_t bytes) noexcept {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace wick
