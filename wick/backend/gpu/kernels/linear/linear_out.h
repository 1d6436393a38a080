#pragma once

// The output arguments of linear kernels. The host makes them and passes them by value.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

enum class Stored : u32 { f32, f16, bf16 };

/// The destination of y[column][row]: a column is a row of activations, a row is a row of the
/// weight.
struct LinearOut {
  void* data = nullptr;
  const float* residual = nullptr;  ///< null: none; otherwise added to the result, which is f32
  StridedIndex<2> columns;          ///< offsets in the result and in the residual
  i64 row[2] = {1, 1};              ///< distance of rows in the result and in the residual
  Stored stored = Stored::f32;
  u32 fours = 0;  ///< not 0: four aligned, neighbouring rows may be stored at once
};

}  // namespace wick::gpu
