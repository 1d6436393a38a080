#pragma once

// Memory that the runtime has allocated for GPUs.
//
// Kernels and packets use a GPU's addresses as addresses of the process. Memory that only the GPU
// maps has no mapping there, so it is mapped a second time before the first packet that may need
// it.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emu/exec/fault.h"
#include "emu/exec/hex.h"

namespace emu::model {

/// A range of addresses.
struct Range {
  uint64_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};

/// The memory of all GPUs: addresses are unique, and a GPU may access the memory of another one.
class DeviceMemory {
 public:
  /// `seen_at`: where the GPU's mapping of this allocation lies in the process, once it exists.
  void add(uint64_t address, uint64_t bytes, uint64_t seen_at);
  /// Forgets an allocation and removes its second mapping.
  void remove(uint64_t address);
  /// Makes all allocations accessible at their own addresses. Returns false, with a reason, if the
  /// system doesn't allow it.
  bool reach(std::string& reason);
  /// Returns the allocation that contains an address, or an empty range.
  Range around(uint64_t address);
  /// Describes an address for messages.
  std::string describe(uint64_t address);

 private:
  struct Allocation {
    uint64_t bytes = 0, seen_at = 0;
    bool mapped_here = false;  // by reach()
  };

  std::mutex mutex_;
  std::map<uint64_t, Allocation> allocations_;
  std::vector<uint64_t> pending_;  // allocations that reach() hasn't found accessible
};

/// Calls `work`, which accesses memory that may be gone, and may hold no lock and own no object.
/// Returns false if an access failed.
template <class Work>
bool accessible(const Work& work) {
  FaultGuard guard;
  return survives(guard, work);
}

/// Copies from untrusted memory. Returns false if it can't be read. It makes no faults: AMD's
/// compiler, which may run on other threads, has a handler for them from time to time.
bool copy_from(void* to, uint64_t from, size_t bytes);

template <class T>
bool read_at(uint64_t address, T& value) {
  return copy_from(&value, address, sizeof value);
}

}  // namespace emu::model
