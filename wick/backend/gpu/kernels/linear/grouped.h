#pragma once

// Products with a weight of its own for each row: which weight a thread block multiplies with.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/linear/grouped_call.h"

namespace wick::gpu {

/// The thread block's pair.
struct Pair {
  u32 index, token;
  const void* weight;  ///< null: another launch has it, or there is none
  bool missing;        ///< there is none: the result is zeros

  /// Ids are read, which work in front may have written: waits for it.
  WICK_DEVICE explicit Pair(const Experts& experts) {
    pdl_wait();
    index = experts.first_pair + block_index_y();
    token = index / experts.each;
    const u32 id = experts.ids[index];
    missing = id >= experts.count && experts.first == 0;
    weight = id >= experts.first && id - experts.first < experts.held
                 ? experts.weights[id - experts.first]
                 : nullptr;
    if (missing && block_index() == 0 && thread_index() == 0) {
      report(experts.line, kIdOutOfRange, experts.note, id);
    }
  }
};

}  // namespace wick::gpu
