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

// Kernels over runs of n elements that lie densely; loops.h and strided.h see to that. `stream`
// asks for stores around the caches.

using CopyKernel = void (*)(int64_t bytes, void* out, const void* in, bool stream);
/// Writes one value n times.
using FillKernel = void (*)(int64_t n, void* out, const void* value, bool stream);
using CastKernel = void (*)(int64_t n, void* out, const void* in, bool stream);

struct MoveKernels {
  CopyKernel copy;
  CopyKernel reverse[4];  // from the last element of the input on, by log2 of the element's size
  FillKernel fill[4];     // by log2 of the element's size, like the next one
  TransposeKernels transpose;
};
/// By source and target; null where they are one.
struct CastKernels {
  CastKernel run[kRealDTypeCount][kRealDTypeCount];
};

/// True when every size of elements is moved.
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
