#pragma once

// The stores of a wave that may still be on their way. A barrier doesn't wait for stores: without
// an s_waitcnt before it, another wave may read what memory held before.

#include <cstddef>
#include <cstdint>

#include "emu/exec/lanes.h"

namespace emu {

/// A store of some lanes that hasn't been waited for.
struct PendingStore {
  uint64_t base;
  uint32_t offsets[kLanes];
  LaneMask lanes;
  uint32_t bytes;   // of each lane
  uint32_t number;  // position among the instructions that its counter counts
  bool atomic;

  bool overlaps(uint64_t address, uint32_t size) const;
};

/// Stores to one kind of memory in issue order, in which they also arrive.
struct StoreRing {
  static constexpr uint32_t kRoom = 64;

  void start() { first = count = carried = done = arrived = arrived_done = 0; }
  /// Adds a store, which the caller fills in. If the ring is full, the oldest one is forgotten.
  PendingStore& add();
  /// The wave has waited until at most the last `left` of `issued` instructions are outstanding.
  void wait(uint32_t issued, uint32_t left) {
    if (count != 0) settle(issued, left);
  }
  /// The wave arrives at a barrier, or ends.
  void arrive() {
    arrived = count;
    arrived_done = done;
  }
  /// All waves have arrived: forgets stores that had been waited for. Returns whether others are
  /// left.
  bool pass();
  /// Returns whether a store that wasn't waited for before the last barrier touches the range.
  bool is_late(uint64_t address, uint32_t size, bool plain_only) const;

  uint32_t first, count;
  uint32_t carried;                // stores that weren't waited for before the last barrier
  uint32_t done;                   // stores that have been waited for since that barrier
  uint32_t arrived, arrived_done;  // `count` and `done` when the wave arrived
  PendingStore entries[kRoom];

 private:
  void settle(uint32_t issued, uint32_t left);
  void drop(uint32_t number);
};

}  // namespace emu
