#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/op/op.h"

namespace wick::cpu {

/// Rows [first, last) of a pooled plane. Strides in elements.
struct PoolArgs {
  const void* in;
  int64_t in_size[2], in_stride[2];
  void* out;
  int64_t out_width, out_stride[2];
  int64_t kernel[2], stride[2], padding[2];
  bool count_include_pad;
  int64_t first, last;
  void* scratch;  ///< kPoolElemBytes · (in_size[1] + out_width)
};
/// Bytes of an element of the input row and of the sums; sums of i64 have 128 bits.
inline constexpr int64_t kPoolElemBytes = 16;

/// The gradient of a whole plane.
struct PoolGradArgs {
  const void* in;  ///< for max: the pooled input
  int64_t in_size[2], in_stride[2];
  const void* grad_out;
  int64_t out_size[2], grad_out_stride[2];
  void* grad_in;
  int64_t grad_in_stride[2];
  int64_t kernel[2], stride[2], padding[2];
  bool count_include_pad;
  void* scratch;  ///< 8 bytes for each element of the input
};

/// By dtype; null where the op's row doesn't name it. Gradients are of floats.
struct PoolKernels {
  using Rows = void (*)(const PoolArgs&);
  using Grad = void (*)(const PoolGradArgs&);
  Rows max[kRealDTypeCount], avg[kRealDTypeCount];
  Grad max_grad[kRealDTypeCount], avg_grad[kRealDTypeCount];
};

constexpr bool complete(const PoolKernels& table) {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (info(Op::max_pool2d).dtypes.contains(dtype) != (table.max[d] != nullptr)) return false;
    if (info(Op::avg_pool2d).dtypes.contains(dtype) != (table.avg[d] != nullptr)) return false;
    if (is_float(dtype) != (table.max_grad[d] != nullptr)) return false;
    if (is_float(dtype) != (table.avg_grad[d] != nullptr)) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(PoolKernels, pool_kernels)

}  // namespace wick::cpu
