#include "wick/backend/cpu/weight_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"
#include "wick/base/pages.h"
#include "wick/base/process_wide.h"

namespace wick::cpu {
namespace {

constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kSlab = size_t{64} << 20;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

/// Weights lie one behind another in slabs of address space, whose pages take up memory only once
/// they are written. A slab is unmapped when its last weight is freed, since weights come and go by
/// the model. Until then only the whole pages of freed weights are released.
class Slabs {
 public:
  static Slabs& global() { return ProcessWide<Slabs>::get(); }

  /// Null if there is no memory.
  void* take(size_t bytes) {
    bytes = round_up(bytes, 64);
    std::lock_guard lock(mutex_);
    for (Slab& slab : slabs_) {
      if (slab.size - slab.used < bytes) continue;
      void* data = slab.base + slab.used;
      slab.used += bytes;
      slab.live += bytes;
      return data;
    }
    // A large weight has a slab of its own, of its size.
    const size_t size = bytes > kSlab / 2 ? round_up(bytes, page_bytes()) : kSlab;
    std::byte* base = map(size);
    if (base == nullptr) return nullptr;
    try {
      slabs_.push_back({base, size, bytes, bytes});
    } catch (const std::bad_alloc&) {
      munmap(base, size);
      return nullptr;
    }
    return base;
  }

  void give(void* data, size_t bytes) noexcept {
    bytes = round_up(bytes, 64);
    auto* begin = static_cast<std::byte*>(data);
    std::lock_guard lock(mutex_);
    const auto slab = std::find_if(slabs_.begin(), slabs_.end(), [&](const Slab& s) {
      return begin >= s.base && begin < s.base + s.size;
    });
    slab->live -= bytes;
    if (slab->live == 0) {
      munmap(slab->base, slab->size);
      slabs_.erase(slab);
      return;
    }
    release_whole_pages(begin, bytes);
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  struct Slab {
    std::byte* base;
    size_t size, used, live;
  };

  /// Address space that starts on a huge page.
  static std::byte* map(size_t size) {
    void* all = mmap(nullptr, size + kHuge, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    auto* start = static_cast<std::byte*>(all);
    const size_t skip = (kHuge - reinterpret_cast<uintptr_t>(all) % kHuge) % kHuge;
    if (skip > 0) munmap(start, skip);
    if (kHuge - skip > 0) munmap(start + skip + size, kHuge - skip);
    madvise(start + skip, size, MADV_HUGEPAGE);
    return start + skip;
  }

  std::mutex mutex_;
  std::vector<Slab> slabs_;
};

}  // namespace

WeightMemory::WeightMemory(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes <= size_t{1} << 62) {
    data_ = Slabs::global().take(bytes);
    if (data_ == nullptr) {
      backend(Device::cpu()).trim();
      data_ = Slabs::global().take(bytes);
    }
  }
  if (data_ == nullptr) {
    throw Error(ErrorKind::memory, "alloc", "out of memory",
                fmt::format("requested {} bytes on cpu, in use {}", bytes,
                            backend(Device::cpu()).memory_info().in_use_bytes));
  }
  account_outside_bytes(static_cast<ptrdiff_t>(bytes));
}

WeightMemory::~WeightMemory() {
  if (data_ == nullptr) return;
  Slabs::global().give(data_, bytes_);
  account_outside_bytes(-static_cast<ptrdiff_t>(bytes_));
}

WeightMemory::WeightMemory(WeightMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

WeightMemory& WeightMemory::operator=(WeightMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace wick::cpu
