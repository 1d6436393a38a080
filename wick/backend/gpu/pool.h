#pragma once

// A device's memory in stream order: a block that is freed serves the next request of its size at
// once, because all work that uses it is in front of that request's in the device's one stream.

#include <cstddef>
#include <map>
#include <mutex>
#include <unordered_map>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver.h"

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

  /// Most that may be held, in use and cached; 0: whatever the device has.
  void set_limit(size_t bytes);
  /// Gives cached blocks back. Work that still uses them is waited for by the driver.
  void trim();
  MemoryInfo info() const;

 private:
  void* from_driver(size_t bytes);
  void trim_locked() noexcept;

  const Driver& driver_;
  const Device device_;
  mutable std::mutex mutex_;
  size_t limit_ = 0;
  MemoryInfo info_;
  std::multimap<size_t, void*> free_;
  std::unordered_map<void*, size_t> used_;
};

}  // namespace wick::gpu
