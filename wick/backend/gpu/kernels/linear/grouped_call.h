#pragma once

// What kernels of products with a weight of its own for each row are told: made by the host, handed
// over by value.

#include "wick/backend/gpu/kernels/device/fault.h"

namespace wick::gpu {

/// Weights of a mixture of experts and which of them each pair, a row of x and one of its n ids,
/// takes. A grid's second axis are pairs.
struct Experts {
  static constexpr math::u32 kMost = 256;  // of a launch: kernels take 4 KiB of arguments

  const void* weights[kMost] = {};
  math::u32 first = 0;  ///< whose weight weights[0] is
  math::u32 held = 0;   ///< weights that there are here
  math::u32 count = 0;  ///< of all experts
  math::u32 first_pair = 0;
  math::u32 each = 1;              ///< n
  const math::u32* ids = nullptr;  ///< of each pair
  FaultLine* line = nullptr;
  math::u32 note = 0;  ///< for a fault
};

}  // namespace wick::gpu
