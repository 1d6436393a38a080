#pragma once

// Positions of the outputs of resampling (docs/design/numerics/convolution.md).

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/spatial/spatial_abi.h"

namespace wick::gpu {

/// The inputs between which an output of an axis lies. `low` and `high` are whole numbers.
struct Between {
  double low, high;
  double part;  ///< the weight of `high`
};

WICK_DEVICE double smaller_of(double a, double b) { return b < a ? b : a; }

/// The input nearest to output `at` of an axis.
WICK_DEVICE double nearest(const Resampling& resampling, u32 axis, double at) {
  const double last = static_cast<double>(resampling.in_size[axis] - 1);
  return smaller_of(floor(at * resampling.scale[axis]), last);
}

WICK_DEVICE Between between(const Resampling& resampling, u32 axis, double at) {
  const double last = static_cast<double>(resampling.in_size[axis] - 1);
  const double scale = resampling.scale[axis];
  const double moved = (at + 0.5) * scale - 0.5;
  const double place = resampling.align != 0 ? at * scale : moved > 0.0 ? moved : 0.0;
  Between result;
  result.low = smaller_of(floor(place), last);
  result.high = smaller_of(result.low + 1.0, last);
  result.part = smaller_of(place - result.low, 1.0);
  return result;
}

}  // namespace wick::gpu
