#pragma once

// What kernels of products are told of their results. Made by the host, handed over by value.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

enum class Stored : u32 { f32, f16, bf16 };

/// Where y[column][row] goes: a column is a row of activations, a row one of the weight.
struct LinearOut {
  void* data = nullptr;
  const float* residual = nullptr;  ///< null: none; else added to the product, which is f32
  StridedIndex<2> columns;          ///< of the result, of the residual
  i64 row[2] = {1, 1};              ///< elements from one row to the next, of either
  Stored stored = Stored::f32;
  u32 fours = 0;  ///< not 0: four neighbouring rows, from a multiple of four on, go at once
};

}  // namespace wick::gpu
