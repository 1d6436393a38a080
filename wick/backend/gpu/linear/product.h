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
  int out_bytes = 4;    ///< of an element
  uint32_t k_of_b = 0;  ///< > 0: behind so many k, a multiple of 64, b starts again

  /// Says how sums are stored; when everything else is known.
  void store_to(DType dtype);
};

/// Main loops, for tests: WICK_GPU_GEMM=plain, mma or wgmma asks for one wherever it can be had.
enum class MainLoop : uint8_t { best, plain, matrix, wide };
MainLoop forced_main_loop();
/// Whether f16 and bf16 are multiplied by a matrix unit. Only such products take k_of_b.
bool has_matrix_unit(const Gpu& gpu);

/// How floats of a dtype lie in memory.
OutFormat out_format(DType dtype);
/// Multiplies f16 or bf16 by Hopper's matrix unit (wide.cpp). False where that can't be.
bool multiply_wide(Gpu& gpu, const ProductJob& job);
/// Multiplies with the fastest main loop that takes the operands: two of one dtype, or f32 and f16.
void multiply(Gpu& gpu, const ProductJob& job);

}  // namespace wick::gpu
