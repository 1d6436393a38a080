#pragma once

// grouped_linear: finds the weight that a thread block multiplies by.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/linear/grouped_abi.h"

namespace wick::gpu {

/// The thread block's pair of a row of x and an expert.
struct Pair {
  u32 index, token;    ///< row of the result, row of x
  const void* weight;  ///< null if another launch has the weight or the id is out of range
  bool missing;        ///< the id is out of range; one launch stores zeros

  /// Waits for the kernel before (PDL), which may write the ids, and reports an id that is out of
  /// range.
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
