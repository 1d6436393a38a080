#include "wick/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace wick {

size_t page_bytes() noexcept {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

size_t usable_memory() {
  auto total = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  auto limit_by = [&](const std::string& path) {
    std::ifstream file(path);
    size_t limit = 0;
    if (file >> limit && limit > 0) total = std::min(total, limit);
  };
  std::ifstream self("/proc/self/cgroup");
  std::string line, group;
  while (std::getline(self, line)) {
    if (line.rfind("0::/", 0) == 0) group = line.substr(3);
  }
  for (;; group.resize(group.rfind('/'))) {
    limit_by("/sys/fs/cgroup" + group + "/memory.max");
    if (group.find('/') == std::string::npos) break;
  }
  limit_by("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return total;
}

void release_whole_pages(const void* begin, size_t bytes) noexcept {
  const uintptr_t page = page_bytes();
  const auto start = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace wick
