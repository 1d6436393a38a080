#pragma once

// A device's memory in stream order: a block that is freed serves the next request of its size at
// once, because all work that uses it is in front of that request's in the device's one stream.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/driver.h"

namespace wick::gpu {

class Pool {
 public:
  /// `total`: what the device has.
  Pool(const Driver& driver, Device device, size_t total);
  /// Gives all memory back. The device must have finished.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// At least `bytes`, aligned to 256. The smallest free block that is large enough and at most
  /// twice as large as need be, else new memory; where there is none, cached blocks go back to the
  /// driver first. Errors: out of memory; names what was asked for, is in use and cached, and the
  /// limit.
  void* take(size_t bytes);
  void give(void* data) noexcept;

  /// The memory of a graph, until nobody holds it: what was taken while it was made, and what
  /// was in use at that time, which the graph may name, even if it is given back later.
  class Arena;
  std::shared_ptr<Arena> make_arena();
  /// The arena that the calling thread's blocks come from; null: none. An arena that was in use is
  /// whole from then on.
  void use(std::shared_ptr<Arena> arena);

  /// Most that may be held, in use and cached; 0: whatever the device has.
  void set_limit(size_t bytes);
  void reset_peak();
  /// Gives cached blocks back. Work that still uses them is waited for by the driver.
  void trim();
  MemoryInfo info() const;

 private:
  using Free = std::multimap<size_t, void*>;
  struct Used {
    size_t bytes = 0;
    std::weak_ptr<Arena> arena;
    uint64_t birth = 0;
  };

  void* from_driver(size_t bytes);
  [[noreturn]] void fail(size_t requested, size_t bytes) const;
  /// A free block that fits; null if there is none. `taken` gets its size.
  static void* from_free(Free& free, size_t size, size_t& taken);
  void trim_locked() noexcept;
  void close(Arena& arena) noexcept;
  /// A block that nobody uses goes to a graph that may name it, else to the free ones.
  void put_back(void* data, size_t bytes, uint64_t birth) noexcept;

  const Driver& driver_;
  const Device device_;
  mutable std::mutex mutex_;
  MemoryInfo info_;
  Free free_;
  std::unordered_map<void*, Used> used_;
  std::vector<Arena*> arenas_;  // that live
  uint64_t clock_ = 0;
};

}  // namespace wick::gpu
