#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/dtype.h"

namespace wick::cpu {

/// Moves a block of rows × cols elements: out[r][c] = in[c][r], elements contiguous along c in the
/// output and along r in the input. Strides in bytes.
using TransposeKernel = void (*)(char* out, int64_t out_stride, const char* in, int64_t in_stride,
                                 int64_t rows, int64_t cols, bool stream);
/// By the logarithm of the element's size.
using TransposeKernels = TransposeKernel[4];

/// One run of n elements of a size known to the kernel; strides in bytes, 0 repeats the input.
using CopyKernel = void (*)(int64_t n, char* out, int64_t out_stride, const char* in,
                            int64_t in_stride, bool stream);
/// Writes one value n times.
using FillKernel = void (*)(int64_t n, char* out, int64_t out_stride, const char* value,
                            bool stream);
/// One run of a cast between two dtypes.
using CastKernel = void (*)(int64_t n, char* out, int64_t out_stride, const char* in,
                            int64_t in_stride, DType to, DType from, bool stream);
/// Consecutive blocks to floats; see wick/math/blocks.h.
using DequantizeKernel = void (*)(int64_t blocks, float* out, const char* in);

struct MoveKernels {
  CopyKernel copy[4];  // by log2 of the element's size, like the next two
  FillKernel fill[4];
  TransposeKernels transpose;
  DequantizeKernel dequantize[kDTypeCount - kRealDTypeCount];  // null: not a source of index_select
};
struct CastKernels {
  CastKernel run;
};

WICK_DECLARE_KERNELS(MoveKernels, move_kernels)
WICK_DECLARE_KERNELS(CastKernels, cast_kernels)

}  // namespace wick::cpu
