#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/op/op.h"

namespace wick::cpu {

/// The inputs between which each output of an axis lies: low[i] with weight 1 - part[i], high[i]
/// with weight part[i].
struct LinearAxis {
  const int64_t* low;
  const int64_t* high;
  const double* part;
};

/// Rows [first, last) of an interpolated plane. Strides in elements.
struct BilinearArgs {
  const void* in;
  int64_t in_width, in_stride[2];
  void* out;
  int64_t out_width, out_stride[2];
  LinearAxis y, x;
  int64_t first, last;
  void* scratch;  ///< 8 bytes · (in_width + 5 · out_width)
};

/// The gradient of a whole plane; `part` is 0 for nearest.
struct ResampleGradArgs {
  const void* grad_out;
  int64_t out_size[2], grad_out_stride[2];
  void* grad_in;
  int64_t in_size[2], grad_in_stride[2];
  LinearAxis y, x;
  void* scratch;  ///< 8 bytes for each element of the input
};

struct ResampleKernels {
  /// to[i] = from[index[i]] for elements of 1, 2, 4 and 8 bytes. If repeat isn't 0, index[i] is i /
  /// repeat.
  using Pick = void (*)(const void* from, const int64_t* index, int64_t repeat, int64_t n,
                        void* to);
  using Bilinear = void (*)(const BilinearArgs&);
  using Grad = void (*)(const ResampleGradArgs&);
  Pick pick[4];
  Bilinear bilinear[kRealDTypeCount];
  Grad nearest_grad[kRealDTypeCount], bilinear_grad[kRealDTypeCount];
};

constexpr bool complete(const ResampleKernels& table) {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const bool wanted = info(Op::upsample_bilinear2d).dtypes.contains(dtype);
    if (wanted != (table.bilinear[d] != nullptr)) return false;
    if (wanted != (table.bilinear_grad[d] != nullptr)) return false;
    if (wanted != (table.nearest_grad[d] != nullptr)) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(ResampleKernels, resample_kernels)

}  // namespace wick::cpu
