#pragma once

// A device's memory in stream order. A freed block serves the next request of its size at once,
// because all work that uses it precedes the new user's work in the device's only stream.

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
  /// `total`: the device's memory. `exact`: each block has the size that is asked for, in whole
  /// words, and is returned to the driver when it is freed, so that a driver that checks accesses
  /// sees those beyond its end, and reads of what a former user wrote. Only graphs reuse blocks
  /// then.
  Pool(const Driver& driver, Device device, size_t total, bool exact = false);
  /// Frees all memory. The device must be idle.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Returns at least `bytes`, aligned to 256: the smallest free block that is large enough and at
  /// most twice as large as needed, otherwise new memory. If the driver has none left, cached
  /// blocks are returned to it first. Errors: out of memory, with the numbers of requested, used
  /// and cached bytes, and the limit.
  void* take(size_t bytes);
  /// The size of the block that take() asks the driver for: close to the request, with few enough
  /// sizes for blocks to be reused.
  static size_t rounded(size_t bytes);
  void give(void* data) noexcept;

  /// The memory of a graph: blocks taken during the capture, and blocks in use at that time, which
  /// the graph may access even if they are freed later. The arena keeps all of them while it lives.
  class Arena;
  std::shared_ptr<Arena> make_arena();
  /// Sets the arena that the calling thread's blocks come from; null: none. The arena used before
  /// is complete from then on.
  void use(std::shared_ptr<Arena> arena);

  /// Sets the most bytes that may be held, in use and cached; 0: the device's memory.
  void set_limit(size_t bytes);
  void reset_peak();
  /// Frees cached blocks. The driver waits for work that still uses them.
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
  /// A free block that fits, or null. `taken` gets its size.
  void* from_free(Free& free, size_t size, size_t& taken) const;
  void trim_locked() noexcept;
  void close(Arena& arena) noexcept;
  /// Gives an unused block to a graph that may still access it, otherwise to the free blocks.
  void put_back(void* data, size_t bytes, uint64_t birth) noexcept;

  const Driver& driver_;
  const Device device_;
  const bool exact_;
  mutable std::mutex mutex_;
  MemoryInfo info_;
  Free free_;
  std::unordered_map<void*, Used> used_;
  std::vector<Arena*> arenas_;  // live arenas
  uint64_t clock_ = 0;
};

}  // namespace wick::gpu
