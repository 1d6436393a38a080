#include "wick/backend/gpu/memory/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/error.h"

namespace wick::gpu {
namespace {

constexpr size_t kUnit = 512, kLargeUnit = size_t{2} << 20;

/// Kernels read the whole words that hold a tensor's first and last elements.
size_t words(size_t bytes) { return std::max<size_t>((bytes + 3) / 4 * 4, 4); }

}  // namespace

size_t Pool::rounded(size_t bytes) {
  const size_t unit = bytes < kLargeUnit ? kUnit : kLargeUnit;
  return std::max((bytes + unit - 1) / unit * unit, kUnit);
}

/// Guarded by the pool's mutex.
class Pool::Arena {
 public:
  explicit Arena(Pool& of) : pool(of) {}
  ~Arena() { pool.close(*this); }

  struct Held {
    void* data;
    size_t bytes;
    uint64_t birth;
  };
  Pool& pool;
  Free free;               // blocks taken during the capture that are free for reuse in it
  std::vector<Held> held;  // blocks freed since then that the graph may still use
  uint64_t whole_at = UINT64_MAX;
};

namespace {
thread_local std::shared_ptr<Pool::Arena> current_arena;
}  // namespace

std::shared_ptr<Pool::Arena> Pool::make_arena() {
  auto arena = std::make_shared<Arena>(*this);
  std::lock_guard lock(mutex_);
  arenas_.push_back(arena.get());
  return arena;
}

void Pool::use(std::shared_ptr<Arena> arena) {
  std::lock_guard lock(mutex_);
  if (current_arena != nullptr) current_arena->whole_at = ++clock_;
  current_arena.swap(arena);
}

void Pool::close(Arena& arena) noexcept {
  std::lock_guard lock(mutex_);
  std::erase(arenas_, &arena);
  for (const auto& [bytes, data] : arena.free) put_back(data, bytes, clock_);
  for (const Arena::Held& block : arena.held) put_back(block.data, block.bytes, block.birth);
}

void Pool::put_back(void* data, size_t bytes, uint64_t birth) noexcept {
  try {
    for (Arena* arena : arenas_) {
      if (birth >= arena->whole_at) continue;
      arena->held.push_back({data, bytes, birth});
      return;
    }
    if (exact_) {
      driver_.api.mem_free(data);
    } else {
      free_.emplace(bytes, data);
      info_.cached_bytes += bytes;
    }
  } catch (const std::bad_alloc&) {
    driver_.api.mem_free(data);  // waits for the device
  }
  info_.in_use_bytes -= bytes;
}

void* Pool::from_free(Free& free, size_t size, size_t& taken) const {
  const auto at = free.lower_bound(size);
  const size_t most = exact_ ? size : 2 * size;
  if (at == free.end() || at->first > most) return nullptr;
  void* const data = at->second;
  taken = at->first;
  free.erase(at);
  return data;
}

Pool::Pool(const Driver& driver, Device device, size_t total, bool exact)
    : driver_(driver), device_(device), exact_(exact) {
  info_.total_bytes = info_.limit_bytes = total;
}

Pool::~Pool() {
  for (const auto& [data, block] : used_) driver_.api.mem_free(data);
  trim_locked();
}

void* Pool::from_driver(size_t bytes) {
  const size_t most = info_.limit_bytes;
  if (bytes > most || info_.in_use_bytes + info_.cached_bytes > most - bytes) return nullptr;
  driver_.enter(device_.index);
  void* data = nullptr;
  const int code = driver_.api.mem_alloc(&data, bytes);
  if (code == 0) return data;
  if (driver_.is_out_of_memory(code)) return nullptr;
  driver_.check(code, device_.index, fmt::format("allocating {} bytes", bytes));
  return nullptr;
}

void Pool::fail(size_t requested, size_t bytes) const {
  const size_t held = info_.in_use_bytes + info_.cached_bytes;
  size_t free = 0, total = 0;
  std::string rule;  // stays empty if the limit is the reason
  if (held <= info_.limit_bytes && bytes <= info_.limit_bytes - held &&
      driver_.api.mem_info(&free, &total) == 0) {
    rule = fmt::format("the device has {} bytes free", free);
  }
  throw Error(ErrorKind::memory, "alloc", "out of memory",
              fmt::format("requested {} bytes on {}, in use {}, cached {}, limit {}", requested,
                          device_.str(), info_.in_use_bytes, info_.cached_bytes, info_.limit_bytes),
              rule);
}

void* Pool::take(size_t bytes) {
  std::lock_guard lock(mutex_);
  const bool countable = bytes < (size_t{1} << 62);
  const size_t size = !countable ? bytes : exact_ ? words(bytes) : rounded(bytes);
  const std::shared_ptr<Arena> arena =
      current_arena != nullptr && &current_arena->pool == this ? current_arena : nullptr;
  size_t taken = size;
  if (arena != nullptr && countable) {
    if (void* const again = from_free(arena->free, size, taken)) {
      used_[again] = {taken, arena, ++clock_};  // the block was counted as in use all along
      return again;
    }
  }
  void* data = countable ? from_free(free_, size, taken) : nullptr;
  if (data != nullptr) {
    info_.cached_bytes -= taken;
  } else if (countable) {
    data = from_driver(size);
    if (data == nullptr) {
      trim_locked();
      data = from_driver(size);
    }
  }
  if (data == nullptr) fail(bytes, size);
  used_[data] = {taken, arena, ++clock_};
  info_.in_use_bytes += taken;
  info_.peak_bytes = std::max(info_.peak_bytes, info_.in_use_bytes);
  return data;
}

void Pool::give(void* data) noexcept {
  std::shared_ptr<Arena> arena;  // outlives the lock, because its destructor takes the lock too
  std::lock_guard lock(mutex_);
  const auto at = used_.find(data);
  if (at == used_.end()) return;
  const Used block = at->second;
  arena = block.arena.lock();
  used_.erase(at);
  if (arena == nullptr) return put_back(data, block.bytes, block.birth);
  try {
    arena->free.emplace(block.bytes, data);
  } catch (const std::bad_alloc&) {
    info_.in_use_bytes -= block.bytes;
    driver_.api.mem_free(data);
  }
}

void Pool::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  info_.limit_bytes = bytes == 0 ? info_.total_bytes : std::min(bytes, info_.total_bytes);
  if (info_.in_use_bytes + info_.cached_bytes > info_.limit_bytes) trim_locked();
}

void Pool::reset_peak() {
  std::lock_guard lock(mutex_);
  info_.peak_bytes = info_.in_use_bytes;
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
