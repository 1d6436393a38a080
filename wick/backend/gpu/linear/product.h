#pragma once

// Products of matrices on their way to kernels.

#include <cstdint>

#include "wick/backend/gpu/gpu.h"
#include "wick/backend/gpu/kernels/product.h"
#include "wick/backend/gpu/space.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// One product, or a batch of them: a [.., m, k] times b [.., n, k] to out [.., m, n].
struct ProductJob {
  Product shape;   ///< all but the batch
  Space<4> batch;  ///< of out, a, b and the residual
  void* out = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  DType a_dtype = DType::f32, b_dtype = DType::f32;
  int out_bytes = 4;  ///< of an element

  /// Says how sums are stored; when everything else is known.
  void store_to(DType dtype);
};

/// How floats of a dtype lie in memory.
OutFormat out_format(DType dtype);
/// Multiplies with the fastest main loop that takes the operands: two of one dtype, or f32 and f16.
void multiply(Gpu& gpu, const ProductJob& job);

}  // namespace wick::gpu
