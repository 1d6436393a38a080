#pragma once

// The argument of the grouped_linear kernels, which the host fills and passes by value.

#include "wick/backend/gpu/kernels/device/fault.h"

namespace wick::gpu {

/// The weights of a mixture of experts, and the ids that choose one for each pair. A pair is a row
/// of x and one of its n ids; pairs lie along the grid's y axis.
struct Experts {
  static constexpr math::u32 kMost = 256;  // per launch, because a kernel takes 4 KiB of arguments

  const void* weights[kMost] = {};
  math::u32 first = 0;             ///< the id of weights[0]
  math::u32 held = 0;              ///< number of weights in this launch
  math::u32 count = 0;             ///< number of all experts
  math::u32 first_pair = 0;        ///< the pair at block_index_y() 0
  math::u32 each = 1;              ///< n, the number of ids of a row
  const math::u32* ids = nullptr;  ///< one for each pair
  FaultLine* line = nullptr;       ///< where an id that is out of range is reported
  math::u32 note = 0;              ///< of the call, for the report
};

}  // namespace wick::gpu
