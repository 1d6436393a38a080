#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/backend/cpu/cpu_backend.h"

namespace wick::cpu {

/// Rounds a size up to whole cache lines.
constexpr int64_t align64(int64_t bytes) { return (bytes + 63) / 64 * 64; }
constexpr size_t align64(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Scratch memory of one call, from the caching allocator. Allocate it before a parallel region
/// starts, because a region's body must not throw.
class Workspace {
 public:
  explicit Workspace(size_t bytes)
      : bytes_(bytes), data_(bytes > 0 ? allocator().alloc(bytes) : nullptr) {}
  ~Workspace() {
    if (data_ != nullptr) allocator().free(data_, bytes_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  char* data() const { return static_cast<char*>(data_); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data_); }

 private:
  // The allocator belongs to the process, so any instruction set does.
  static CpuBackend allocator() { return CpuBackend(Isa::v2); }

  size_t bytes_;
  void* data_;
};

}  // namespace wick::cpu
