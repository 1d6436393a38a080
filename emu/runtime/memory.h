#pragma once

// The memory of all devices, and pinned host memory: one arena, so that an address tells whose it
// is, and kernels use addresses as they are.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu/runtime/shadow.h"

namespace emu {

enum class MemoryKind : uint8_t { device, managed, host, registered, internal };

struct Allocation {
  uintptr_t base = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  int device = 0;
  unsigned flags = 0;
  uint64_t serial = 0;  // counts allocations of the process
  const void* pool = nullptr;
  std::string label;  // of internal ones: a module's name, …

  bool holds(uintptr_t address) const { return address - base < bytes; }
};

/// "1024 bytes (#7, device 0)".
std::string describe(const Allocation& allocation);

class Memory {
 public:
  /// Reserves address space for devices of these sizes. With `checks`, freed blocks are kept apart
  /// for a while and what is known of each byte is written down.
  Memory(std::vector<size_t> device_bytes, bool checks);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// The address, 0 where the device (or the host's part) has too little left.
  uintptr_t allocate(const Allocation& wanted, size_t alignment = 256);
  /// Takes a block back. False where none of a caller's starts there.
  bool free(uintptr_t address);
  /// Makes a host range known, as registered. False where it overlaps one that is known.
  bool add_registered(uintptr_t address, size_t bytes, unsigned flags, int device);
  bool remove_registered(uintptr_t address);

  /// The block that holds the address.
  std::optional<Allocation> find(uintptr_t address) const;
  /// Whether the whole range is within one block.
  bool covers(uintptr_t address, size_t bytes) const;
  /// For reports: "4 bytes past the end of an allocation of 1024 bytes (#7, device 0)".
  std::string describe(uintptr_t address) const;

  size_t total(int device) const { return regions_[static_cast<size_t>(device)].limit; }
  size_t used(int device) const;
  /// How much of what such a block would be a part of is taken, and how much that is in all.
  struct Fill {
    size_t used = 0, total = 0;
  };
  Fill fill_of(const Allocation& wanted) const;
  const Shadow& shadow() const { return shadow_; }
  /// Notes that bytes were copied: those that nothing wrote stay so. Bytes of host memory count as
  /// written, whether or not they lie in the arena.
  void copied(uintptr_t to, uintptr_t from, size_t bytes) const;
  /// Whether the address is in the arena, allocated or not.
  bool in_arena(uintptr_t address) const { return address - base_ < bytes_; }
  /// Blocks of callers that are still there.
  std::vector<Allocation> live() const;

 private:
  struct Block {
    Allocation allocation;
    size_t span = 0;  // with the room after it that nobody gets
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
  void* reserved_ = nullptr;  // that the arena lies in
  Shadow shadow_;
  bool checks_;
  mutable std::mutex mutex_;
  std::vector<Region> regions_;  // one a device, the last one the host's
  std::map<uintptr_t, Block> blocks_;
  std::map<uintptr_t, Allocation> registered_;
  uint64_t serial_ = 0;
};

}  // namespace emu
