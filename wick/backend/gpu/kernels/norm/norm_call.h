#pragma once

// What kernels of norms, and of norms in front of products, are told by the host.

#include "wick/math/fn.h"

namespace wick::gpu {

/// Elements `step` apart. wide: side by side, and fours of them aligned to their size.
struct Spread {
  math::i64 step;
  math::u32 wide;
};

/// Weights of the norm's dtype, or of f32, `step` elements apart.
struct Weights {
  const void* data;
  math::i64 step;
  math::u32 f32;
};

}  // namespace wick::gpu
