#pragma once

// Virtual memory management: address ranges that callers reserve, and physical memory that they map
// into them. Physical memory is part of one file in memory, so that several mappings of it show the
// same bytes. The plane of the shadow that says which bytes have been written is mapped from a
// second file in the same way: what is written through one mapping counts as written in all.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/runtime/allocation.h"
#include "emu/runtime/shadow.h"

namespace emu {

/// Physical memory of a device. The memory is released when the last owner is gone: handles of
/// callers, mappings and exported file descriptors.
struct Physical {
  size_t bytes = 0;
  int device = 0;
  unsigned shareable = 0;  // the hipMemAllocationHandleType that it was created with
  unsigned type = 0;       // the hipMemAllocationType that it was created with
  uint64_t serial = 0;
  size_t offset = 0;  // in the file
  std::function<void(const Physical&)> release;
  int references = 1;  // of its handle; guarded by the owner of the handle

  ~Physical() {
    if (release) release(*this);
  }
};

using PhysicalPtr = std::shared_ptr<Physical>;

enum class Right : uint8_t { none, read, write };

class AddressSpace {
 public:
  /// All sizes and offsets are multiples of this.
  static constexpr size_t kGranularity = size_t{2} << 20;

  /// Manages [base, base + bytes), which is reserved and inaccessible. `file_bytes` limits the
  /// physical memory, including what fragmentation wastes.
  AddressSpace(const Shadow& shadow, uintptr_t base, size_t bytes, size_t file_bytes);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  bool contains(uintptr_t address) const { return address - base_ < bytes_; }

  /// Takes room in the file. Returns false if there is none.
  bool allocate(Physical& physical);
  void release(const Physical& physical);

  /// Reserves addresses, at `wanted` if they are free. Returns 0 if there are too few.
  uintptr_t reserve(size_t bytes, size_t alignment, uintptr_t wanted);
  /// Ends a reservation. Returns false if it isn't exactly this one, or if something is mapped.
  bool unreserve(uintptr_t at, size_t bytes);
  /// Maps the first `bytes` of physical memory without access. Returns false if the range isn't
  /// within one reservation, or if something is mapped in it.
  bool map(uintptr_t at, size_t bytes, PhysicalPtr physical);
  /// Unmaps all mappings in a range. Returns false if it isn't made of whole mappings.
  bool unmap(uintptr_t at, size_t bytes);
  /// Sets what a device may do with the mappings in a range. Returns false if the range isn't made
  /// of whole mappings.
  bool allow(uintptr_t at, size_t bytes, int device, Right right);
  /// Returns what a device may do at an address, or nothing if nothing is mapped there.
  std::optional<Right> access(uintptr_t at, int device) const;
  /// Returns the physical memory that is mapped at the address, or null.
  PhysicalPtr physical_at(uintptr_t at) const;

  /// Returns the mapping that contains the address, as an allocation.
  std::optional<Allocation> find(uintptr_t at) const;
  /// Returns whether mappings without a gap between them cover the range.
  bool covers(uintptr_t at, size_t bytes) const;
  std::string describe(uintptr_t at) const;

 private:
  struct Mapping {
    PhysicalPtr physical;
    size_t bytes;
    std::map<int, Right> access;  // by device
    Right most() const;
    Allocation allocation(uintptr_t at) const;
  };
  using Mappings = std::map<uintptr_t, Mapping>;

  Mappings::const_iterator mapping_at(uintptr_t at) const;
  /// Returns the first mapping of a range that consists of whole mappings without gaps.
  std::optional<Mappings::iterator> whole(uintptr_t at, size_t bytes);
  bool protect(uintptr_t at, const Mapping& mapping);
  void clear(uintptr_t at, size_t bytes);

  const Shadow& shadow_;
  const uintptr_t base_;
  const size_t bytes_;
  mutable std::mutex mutex_;
  int file_ = -1, shadow_file_ = -1;
  size_t file_bytes_;
  std::map<size_t, size_t> room_;             // free parts of the file: offset and size
  std::map<uintptr_t, size_t> reservations_;  // address and size
  Mappings mappings_;
};

}  // namespace emu
