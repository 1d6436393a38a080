#include "wick/backend/gpu/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/error.h"

namespace wick::gpu {
namespace {

constexpr size_t kUnit = 512, kLargeUnit = size_t{2} << 20;

/// Sizes that blocks have: close enough to what is asked for, few enough to come again.
size_t rounded(size_t bytes) {
  const size_t unit = bytes < kLargeUnit ? kUnit : kLargeUnit;
  return std::max((bytes + unit - 1) / unit * unit, kUnit);
}

}  // namespace

Pool::Pool(const Driver& driver, Device device, size_t total) : driver_(driver), device_(device) {
  info_.total_bytes = total;
}

Pool::~Pool() {
  for (const auto& [data, bytes] : used_) driver_.api.mem_free(data);
  trim_locked();
}

void* Pool::from_driver(size_t bytes) {
  const size_t most = limit_ == 0 ? info_.total_bytes : limit_;
  if (bytes > most || info_.in_use_bytes + info_.cached_bytes > most - bytes) return nullptr;
  void* data = nullptr;
  const int code = driver_.api.mem_alloc(&data, bytes);
  if (code == 0) return data;
  if (driver_.is_out_of_memory(code)) return nullptr;
  throw Error("alloc", "the device gives no memory",
              fmt::format("{} bytes on {}", bytes, device_.str()), driver_.text(code));
}

void* Pool::take(size_t bytes) {
  std::lock_guard lock(mutex_);
  const bool countable = bytes < (size_t{1} << 62);
  const size_t size = countable ? rounded(bytes) : bytes;
  void* data = nullptr;
  size_t taken = size;
  if (const auto at = free_.lower_bound(size); at != free_.end() && at->first <= 2 * size) {
    data = at->second;
    taken = at->first;
    info_.cached_bytes -= taken;
    free_.erase(at);
  } else if (countable) {
    data = from_driver(size);
    if (data == nullptr) {
      trim_locked();
      data = from_driver(size);
    }
  }
  if (data == nullptr) {
    throw Error("alloc", "out of memory",
                fmt::format("requested {} bytes on {}, in use {}, cached {}, limit {}", bytes,
                            device_.str(), info_.in_use_bytes, info_.cached_bytes,
                            limit_ == 0 ? info_.total_bytes : limit_));
  }
  used_[data] = taken;
  info_.in_use_bytes += taken;
  info_.peak_bytes = std::max(info_.peak_bytes, info_.in_use_bytes);
  return data;
}

void Pool::give(void* data) noexcept {
  std::lock_guard lock(mutex_);
  const auto at = used_.find(data);
  if (at == used_.end()) return;
  info_.in_use_bytes -= at->second;
  try {
    free_.emplace(at->second, data);
    info_.cached_bytes += at->second;
  } catch (const std::bad_alloc&) {
    driver_.api.mem_free(data);
  }
  used_.erase(at);
}

void Pool::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
  if (bytes != 0 && info_.in_use_bytes + info_.cached_bytes > bytes) trim_locked();
}

void Pool::trim() {
  std::lock_guard lock(mutex_);
  trim_locked();
}

void Pool::trim_locked() noexcept {
  for (const auto& [bytes, data] : free_) driver_.api.mem_free(data);
  free_.clear();
  info_.cached_bytes = 0;
}

MemoryInfo Pool::info() const {
  std::lock_guard lock(mutex_);
  return info_;
}

}  // namespace wick::gpu
