#pragma once

// What calls are remembered with beside their tensors, where one number isn't all.

#include <cstdint>

#include "wick/backend/view.h"
#include "wick/base/shape.h"
#include "wick/tensor/tensor.h"

namespace wick::tape {

/// Of a reduction.
struct Reduced {
  Shape kept;  ///< the result's shape with sizes of one where dims were reduced
};

/// Of an op that chooses elements along a dim.
struct Chosen {
  Tensor ids;
  int dim;
};

/// Of group_norm.
struct Groups {
  int64_t count;
  float eps;
};

/// Of an elementwise function of one operand and one number or two.
struct Numbers {
  Scalar p, q;
};

}  // namespace wick::tape
