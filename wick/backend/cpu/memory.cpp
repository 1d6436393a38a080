#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/cpu/weight_memory.h"
#include "wick/base/error.h"
#include "wick/base/pages.h"
#include "wick/base/process_wide.h"

namespace wick::cpu {
namespace {

constexpr size_t kHuge = size_t{2} << 20;

/// Sizes are rounded up to four classes per power of two (by at most 25 %), so that a freed block
/// serves the next request of nearly its size: page faults of fresh memory cost more than most
/// kernels.
struct SizeClass {
  size_t index;
  size_t bytes;
};

SizeClass size_class(size_t bytes) {
  bytes = std::max<size_t>(bytes, 64);
  const auto top = static_cast<size_t>(63 - __builtin_clzll(bytes));
  const size_t step = size_t{1} << (top - 2);
  const size_t rounded = (bytes + step - 1) & ~(step - 1);
  const auto rounded_top = static_cast<size_t>(63 - __builtin_clzll(rounded));
  return {rounded_top * 4 + ((rounded >> (rounded_top - 2)) & 3), rounded};
}

/// The process's cache of free blocks, shared by every CpuBackend.
class Allocator {
 public:
  static Allocator& global() { return ProcessWide<Allocator>::get(); }

  void* take(size_t bytes) {
    if (bytes > kMost) fail(bytes, info());
    const SizeClass cls = size_class(bytes);
    {
      std::lock_guard lock(mutex_);
      std::vector<void*>& blocks = free_[cls.index];
      if (!blocks.empty()) {
        void* data = blocks.back();
        blocks.pop_back();
        info_.cached_bytes -= cls.bytes;
        count(cls.bytes);
        return data;
      }
      // Linux overcommits: it would allocate more memory than there is, and kill the process that
      // uses it.
      know_total();
      if (cls.bytes > left(info_.cached_bytes)) trim_locked();
      if (cls.bytes > left(0)) fail(bytes, info_);
    }
    void* data = system_alloc(cls.bytes);
    if (data == nullptr) {
      trim();
      data = system_alloc(cls.bytes);
    }
    std::lock_guard lock(mutex_);
    if (data == nullptr) fail(bytes, info_);
    count(cls.bytes);
    return data;
  }

  void give(void* data, size_t bytes) noexcept {
    const SizeClass cls = size_class(bytes);
    std::lock_guard lock(mutex_);
    info_.in_use_bytes -= cls.bytes;
    try {
      free_[cls.index].push_back(data);
      info_.cached_bytes += cls.bytes;
    } catch (const std::bad_alloc&) {
      std::free(data);
    }
  }

  void trim() {
    std::lock_guard lock(mutex_);
    trim_locked();
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  MemoryInfo info() {
    std::lock_guard lock(mutex_);
    know_total();
    return info_;
  }

  void set_limit(size_t bytes) {
    std::lock_guard lock(mutex_);
    know_total();
    info_.limit_bytes = bytes == 0 ? info_.total_bytes : std::min(bytes, info_.total_bytes);
    if (info_.in_use_bytes + info_.cached_bytes > info_.limit_bytes) trim_locked();
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    info_.peak_bytes = info_.in_use_bytes;
  }

  /// Counts bytes in use that aren't blocks of this cache; negative when they are freed.
  void account(ptrdiff_t delta) {
    std::lock_guard lock(mutex_);
    info_.in_use_bytes += static_cast<size_t>(delta);
    info_.peak_bytes = std::max(info_.peak_bytes, info_.in_use_bytes);
  }

 private:
  static constexpr size_t kMost = size_t{1} << 62;

  [[noreturn]] static void fail(size_t bytes, const MemoryInfo& now) {
    throw Error(ErrorKind::memory, "alloc", "out of memory",
                fmt::format("requested {} bytes on cpu, in use {}, cached {}, limit {}", bytes,
                            now.in_use_bytes, now.cached_bytes, now.limit_bytes));
  }

  static void* system_alloc(size_t bytes) {
    const size_t alignment = bytes >= kHuge ? kHuge : 64;
    void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    // Weights are read once per token. With 4 KiB pages that takes up to 1.8 times as long: page
    // tables are walked, and hardware prefetchers stop at the end of each page.
    if (data != nullptr && bytes >= kHuge) madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  }

  /// Bytes that may still be taken from the system while the cache keeps `cached` bytes.
  size_t left(size_t cached) const {
    const size_t held = info_.in_use_bytes + cached;
    return held < info_.limit_bytes ? info_.limit_bytes - held : 0;
  }

  /// Asks the system the first time.
  void know_total() {
    if (info_.total_bytes == 0) info_.total_bytes = info_.limit_bytes = usable_memory();
  }

  void trim_locked() {
    for (std::vector<void*>& blocks : free_) {
      for (void* data : blocks) std::free(data);
      blocks.clear();
    }
    info_.cached_bytes = 0;
  }

  void count(size_t bytes) {
    info_.in_use_bytes += bytes;
    info_.peak_bytes = std::max(info_.peak_bytes, info_.in_use_bytes);
  }

  std::mutex mutex_;
  std::array<std::vector<void*>, 256> free_;
  MemoryInfo info_;
};

}  // namespace

void account_outside_bytes(ptrdiff_t delta) { Allocator::global().account(delta); }

CpuBackend::~CpuBackend() = default;

std::string CpuBackend::description() const {
  const int threads = ThreadPool::global().threads();
  return fmt::format("CPU, {} thread{}, kernels for {}", threads, threads == 1 ? "" : "s",
                     name(isa_));
}

void* CpuBackend::alloc(size_t bytes) { return Allocator::global().take(bytes); }

void CpuBackend::free(void* data, size_t bytes) noexcept { Allocator::global().give(data, bytes); }

void CpuBackend::upload(void* to_device, const void* from_host, size_t bytes) {
  if (bytes > 0) std::memcpy(to_device, from_host, bytes);
}

void CpuBackend::download(void* to_host, const void* from_device, size_t bytes) {
  if (bytes > 0) std::memcpy(to_host, from_device, bytes);
}

namespace {

class CpuReadback final : public Readback {
 public:
  CpuReadback(const void* from, size_t bytes)
      : bytes_(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + bytes) {}
  void finish(void* to_host) override {
    std::copy(bytes_.begin(), bytes_.end(), static_cast<std::byte*>(to_host));
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<Readback> CpuBackend::start_readback(const void* from_device, size_t bytes) {
  return std::make_unique<CpuReadback>(from_device, bytes);
}

MemoryInfo CpuBackend::memory_info() const { return Allocator::global().info(); }

size_t CpuBackend::free_memory() const {
  const MemoryInfo now = memory_info();
  const size_t held = now.in_use_bytes + now.cached_bytes;
  const size_t left = held < now.total_bytes ? now.total_bytes - held : 0;
  std::ifstream file("/proc/meminfo");
  std::string word;
  size_t kib = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kib) return std::min(left, kib * 1024);
  }
  return left;
}

void CpuBackend::set_memory_limit(size_t bytes) { Allocator::global().set_limit(bytes); }

void CpuBackend::reset_peak_memory() { Allocator::global().reset_peak(); }

int64_t CpuBackend::rows_in_cache() const {
  constexpr int64_t kRowsOfACore = 64;  // in its L2 cache
  return kRowsOfACore * ThreadPool::global().threads();
}

void CpuBackend::trim() { Allocator::global().trim(); }

}  // namespace wick::cpu
