#pragma once

// The memory of all devices, and pinned host memory. All of it is in one arena, so that an address
// determines its owner and kernels use addresses unchanged.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu/runtime/address_space.h"
#include "emu/runtime/allocation.h"
#include "emu/runtime/shadow.h"

namespace emu {

class Memory {
 public:
  /// Reserves address space for devices with these memory sizes. With `checks`, freed blocks are
  /// quarantined for a while and the shadow tracks the state of each byte.
  Memory(std::vector<size_t> device_bytes, bool checks);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Returns the address, or 0 if the device, or the host's share, has too little memory left.
  uintptr_t allocate(const Allocation& wanted, size_t alignment = 256);
  /// Frees a block. Returns false if no block of a caller starts at the address.
  bool free(uintptr_t address);
  /// Registers a range of host memory. Returns false if it overlaps a known range.
  bool add_registered(uintptr_t address, size_t bytes, unsigned flags, int device);
  bool remove_registered(uintptr_t address);

  /// Returns the block that contains the address.
  std::optional<Allocation> find(uintptr_t address) const;
  /// Returns whether one block contains the whole range.
  bool covers(uintptr_t address, size_t bytes) const;
  /// Describes an address for reports: "4 bytes past the end of an allocation of 1024 bytes (#7,
  /// device 0)".
  std::string describe(uintptr_t address) const;

  size_t total(int device) const { return regions_[static_cast<size_t>(device)].limit; }
  size_t used(int device) const;
  /// How much of the region in which such a block is allocated is in use, and the region's size.
  struct Fill {
    size_t used = 0, total = 0;
  };
  Fill fill_of(const Allocation& wanted) const;
  const Shadow& shadow() const { return shadow_; }
  /// Is called for each new block with its address and size.
  std::function<void(uintptr_t, size_t)> when_allocated;
  /// Records that bytes were copied: the copies of uninitialized bytes are uninitialized, too.
  /// Bytes of host memory count as initialized, inside or outside the arena.
  void copied(uintptr_t to, uintptr_t from, size_t bytes) const;
  /// Returns whether the address is in the arena, allocated or not.
  bool in_arena(uintptr_t address) const { return address - base_ < bytes_; }
  /// Takes physical memory of a device, to be mapped. Returns null if too little is left.
  PhysicalPtr create_physical(int device, size_t bytes);
  /// The addresses that callers reserve, and what is mapped there.
  AddressSpace& space() { return *space_; }
  /// Returns the blocks of callers that haven't been freed.
  std::vector<Allocation> live() const;

 private:
  struct Block {
    Allocation allocation;
    size_t span = 0;  // including the gap after it
  };
  struct Region {
    uintptr_t base = 0;
    size_t bytes = 0, limit = 0, used = 0, quarantined = 0;
    std::map<uintptr_t, size_t> gaps;
    std::set<std::pair<size_t, uintptr_t>> gaps_by_size;
    std::vector<bool> committed;
    std::deque<Block> quarantine;
  };

  size_t region_number(const Allocation& allocation) const;
  Region& region_of(const Allocation& a) { return regions_[region_number(a)]; }
  bool commit(Region& region, uintptr_t from, uintptr_t to);
  void decommit(Region& region, uintptr_t from, uintptr_t to);
  static void add_gap(Region& region, uintptr_t base, size_t span);
  static void remove_gap(Region& region, uintptr_t base);
  static void give_gap(Region& region, uintptr_t base, size_t span);
  static void release(Region& region, size_t keep);
  static std::optional<uintptr_t> take_gap(Region& region, size_t span, size_t alignment);
  void mark(const Allocation& allocation);

  uintptr_t base_ = 0;
  size_t bytes_ = 0;
  void* reserved_ = nullptr;  // the reservation that contains the arena
  Shadow shadow_;
  std::unique_ptr<AddressSpace> space_;
  bool checks_;
  mutable std::mutex mutex_;
  std::vector<Region> regions_;  // one per device, then one for the host
  std::map<uintptr_t, Block> blocks_;
  std::map<uintptr_t, Allocation> registered_;
  uint64_t serial_ = 0;
};

}  // namespace emu
