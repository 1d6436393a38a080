#include "emu/exec/stores.h"

#include <algorithm>
#include <bit>

namespace emu {

bool PendingStore::overlaps(uint64_t address, uint32_t size) const {
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const uint64_t from = base + offsets[std::countr_zero(left)];
    if (from < address + size && address < from + bytes) return true;
  }
  return false;
}

void StoreRing::drop(uint32_t number) {
  first = (first + number) % kRoom;
  for (uint32_t* of : {&count, &carried, &done, &arrived, &arrived_done}) {
    *of -= std::min(*of, number);
  }
  if (count == 0) first = 0;  // stays within few cache lines
}

PendingStore& StoreRing::add() {
  if (count == kRoom) drop(1);
  return entries[(first + count++) % kRoom];
}

void StoreRing::settle(uint32_t issued, uint32_t left) {
  while (done < count && issued - entries[(first + done) % kRoom].number >= left) ++done;
  // Stores that weren't waited for before the last barrier stay until the next barrier.
  if (carried == 0 && done != 0) drop(done);
}

bool StoreRing::pass() {
  drop(arrived_done);
  carried = arrived;  // drop() has subtracted those that had been waited for
  arrived = arrived_done = 0;
  return carried != 0;
}

bool StoreRing::is_late(uint64_t address, uint32_t size, bool plain_only) const {
  for (uint32_t i = 0; i < carried; ++i) {
    const PendingStore& store = entries[(first + i) % kRoom];
    if (!(plain_only && store.atomic) && store.overlaps(address, size)) return true;
  }
  return false;
}

}  // namespace emu
