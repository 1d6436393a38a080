#pragma once

#include <cstddef>

#include "wick/backend/cpu/cpu_backend.h"

namespace wick::cpu {

/// Scratch memory of one call, from the allocator's cache. Taken before a parallel region starts,
/// because a region's body must not throw.
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

 private:
  // The allocator is the process's; which kernels the backend has doesn't matter.
  static CpuBackend allocator() { return CpuBackend(Isa::v2); }

  size_t bytes_;
  void* data_;
};

}  // namespace wick::cpu
