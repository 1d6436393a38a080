#pragma once

// Arguments of the copy that writes rows in windows of 16 bytes.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Rows of n units, dense in the output and `step` apart in the input. The last dim of the strided
/// index counts a row's windows: one more than its bytes fill if rows may begin at any address.
struct Windows {
  i64 n = 0;
  i64 step = 0;
};

}  // namespace wick::gpu
