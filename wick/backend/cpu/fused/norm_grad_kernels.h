#pragma once

// Kernels of the gradients of norms and softmax. A is the compute type; runs are dense, and a chunk
// has at most 4096 elements.

#include <cstdint>

#include "wick/backend/cpu/fused/fused_kernels.h"

namespace wick::cpu {

using math::kSumAccumulators;
using math::kSumChunk;

/// Elements of a row of norm_grad.
struct NormGradRun {
  const void *x, *grad;
  void* y;
  int64_t n;
  const void* weight;   ///< an A for each element, or null
  const void* numbers;  ///< A: mean, scale and, for `store`, the two means that it subtracts
  bool centred;
};

/// Neighbouring columns of up to 4096 rows. Offsets of rows count elements.
struct NormColumns {
  const void *x, *grad;      ///< columns are contiguous
  const void *mean, *scale;  ///< of A; null: they aren't applied
  const int64_t *x_rows, *grad_rows, *mean_rows, *scale_rows;
  int64_t mean_step, scale_step;  ///< from column to column
  int64_t rows, width;            ///< width: at most kNormColumns
  void* sums;                     ///< A [2][kNormColumns]
};
inline constexpr int64_t kNormColumns = 32;

struct NormGradKernels {
  /// The sums of a chunk: of p = grad · weight, and of p · ((x − mean) · scale), or of p · x if the
  /// norm isn't centred. sums: A [2].
  using Dots = void (*)(const NormGradRun& chunk, void* sums);
  /// y = scale · ((p − m1) − ((x − mean) · scale) · m2), or scale · (p − (x · scale²) · m2).
  using Store = void (*)(const NormGradRun& run);
  /// The sums of a chunk: of grad · ((x − mean) · scale) and of grad, with a mean and a scale of
  /// type A for each element. Without a mean the terms are (grad · x) · scale, without a scale grad
  /// · x.
  using Products = void (*)(const void* x, const void* grad, const void* mean, const void* scale,
                            int64_t n, void* sums);
  /// The same sums for each column, in the order of a chunk of rows.
  using Columns = void (*)(const NormColumns& columns);
  /// y = x · (grad − s), or grad − exp(x) · s if `log`. s: an A for each element if `each`, else
  /// one.
  using Softmax = void (*)(const void* x, const void* grad, void* y, int64_t n, const void* s,
                           bool each, bool log);
  Dots dots[kRealDTypeCount];
  Store store[kRealDTypeCount];
  Products products[kRealDTypeCount];
  Columns columns[kRealDTypeCount];
  Softmax softmax[kRealDTypeCount];
};

WICK_DECLARE_KERNELS(NormGradKernels, norm_grad_kernels)

}  // namespace wick::cpu
