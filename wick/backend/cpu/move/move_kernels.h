#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/dtype.h"

namespace wick::cpu {

/// Transposes a block of rows × cols elements: out[r][c] = in[c][r]. The output is dense along c,
/// the input along r. Strides in bytes.
using TransposeKernel = void (*)(char* out, int64_t out_stride, const char* in, int64_t in_stride,
                                 int64_t rows, int64_t cols, bool stream);
/// Indexed by log2 of the element size.
using TransposeKernels = TransposeKernel[4];

// Kernels over dense runs of n elements, which loops.h and strided.h provide. `stream` asks for
// non-temporal stores.

using CopyKernel = void (*)(int64_t bytes, void* out, const void* in, bool stream);
/// Writes one value n times.
using FillKernel = void (*)(int64_t n, void* out, const void* value, bool stream);
using CastKernel = void (*)(int64_t n, void* out, const void* in, bool stream);

struct MoveKernels {
  CopyKernel copy;
  CopyKernel reverse[4];  // `in` is the last element; by log2 of the element size
  FillKernel fill[4];     // by log2 of the element size, as is transpose
  TransposeKernels transpose;
};
/// By source and target dtype; null if they are equal.
struct CastKernels {
  CastKernel run[kRealDTypeCount][kRealDTypeCount];
};

/// True when there is a kernel for every element size.
constexpr bool complete(const MoveKernels& table) {
  for (int size = 0; size < 4; ++size) {
    if (table.reverse[size] == nullptr || table.fill[size] == nullptr) return false;
    if (table.transpose[size] == nullptr) return false;
  }
  return table.copy != nullptr;
}

WICK_DECLARE_KERNELS(MoveKernels, move_kernels)
WICK_DECLARE_KERNELS(CastKernels, cast_kernels)

}  // namespace wick::cpu
