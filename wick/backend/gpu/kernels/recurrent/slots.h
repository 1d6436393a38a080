#pragma once

// The state of a thread block's sequence.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/recurrent/recurrent_abi.h"

namespace wick::gpu {

/// The slot of a sequence, or −1 if it is out of range or another sequence has it, which is
/// reported. The whole block must call it; it ends with a barrier.
WICK_DEVICE i64 slot_of(const Slots& slots, u32 sequence) {
  WICK_SHARED u32 taken;
  if (thread_index() == 0) taken = 0;
  sync();
  const u32 slot = slots.data[sequence * slots.step];
  for (u32 i = thread_index(); i < slots.count; i += block_threads()) {
    if (i == sequence || slots.data[i * slots.step] != slot) continue;
    report(slots.line, kSlotTwice, slots.note, slot);
    count_in_block(&taken);
  }
  if (thread_index() == 0 && slot >= slots.held) {
    report(slots.line, kIdOutOfRange, slots.note, slot);
    count_in_block(&taken);
  }
  sync();
  return taken == 0 ? i64{slot} : -1;
}

}  // namespace wick::gpu
