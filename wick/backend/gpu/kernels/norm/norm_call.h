#pragma once

// Arguments of norm kernels, and of kernels that norm the activations of a linear layer first.

#include "wick/math/fn.h"

namespace wick::gpu {

/// Elements `step` apart. wide: they are contiguous, and aligned to four.
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
