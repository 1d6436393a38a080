#pragma once

// Copies to rows by 16 bytes of the output at a time, as the host hands them to a kernel.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Rows of n units, dense in the output, `step` apart in the input. The nest's last dim counts a
/// row's windows: one more than its bytes fill, where rows begin anywhere.
struct Windows {
  i64 n = 0;
  i64 step = 0;
};

}  // namespace wick::gpu
