#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/op/op.h"

namespace wick::cpu {

// Kernels over a dense run of n elements of every operand, which loops.h and strided.h provide.
// `stream` asks for non-temporal stores. Inputs don't overlap the output.
using UnaryKernel = void (*)(int64_t n, void* out, const void* in, bool stream);
/// False when an integer was divided by zero.
using BinaryKernel = bool (*)(int64_t n, void* out, const void* a, const void* b, bool stream);
/// p and q point to one value each, in the compute type (f32 for narrow floats).
using UnaryWithKernel = void (*)(int64_t n, void* out, const void* in, const void* p, const void* q,
                                 bool stream);
/// The output is u8.
using CompareKernel = void (*)(int64_t n, void* out, const void* a, const void* b, bool stream);
using WhereKernel = void (*)(int64_t n, void* out, const void* condition, const void* a,
                             const void* b, bool stream);

/// By op and dtype; null if the op's row doesn't name the dtype.
struct UnaryKernels {
  UnaryKernel run[kOpCount][kRealDTypeCount];
};
struct BinaryKernels {
  BinaryKernel run[kOpCount][kRealDTypeCount];
};
struct UnaryWithKernels {
  UnaryWithKernel run[kOpCount][kRealDTypeCount];
};
struct CompareKernels {
  CompareKernel run[kOpCount][kRealDTypeCount];
  UnaryKernel test[kOpCount][kRealDTypeCount];
};
/// By log2 of the size of a condition (1, 4 or 8 bytes) and of an element.
struct WhereKernels {
  WhereKernel run[4][4];
};

/// True when a table has a kernel for every dtype of every row of a kind, and no other.
template <class Kernel>
constexpr bool complete(const Kernel (&run)[kOpCount][kRealDTypeCount], OpKind kind) {
  for (int op = 0; op < kOpCount; ++op) {
    for (int d = 0; d < kRealDTypeCount; ++d) {
      const OpInfo& row = kOps[static_cast<size_t>(op)];
      const bool wanted = row.kind == kind && row.dtypes.contains(static_cast<DType>(d));
      if ((run[op][d] != nullptr) != wanted) return false;
    }
  }
  return true;
}

/// True when there is a kernel for every dtype of conditions and of `where`'s values, and no other
/// condition.
constexpr bool complete(const WhereKernels& table) {
  bool conditions[4] = {};
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (dtypes::kConditions.contains(dtype)) {
      conditions[__builtin_ctz(static_cast<unsigned>(info(dtype).block_bytes))] = true;
    }
  }
  for (int c = 0; c < 4; ++c) {
    for (int d = 0; d < kRealDTypeCount; ++d) {
      if (!info(Op::where).dtypes.contains(static_cast<DType>(d))) return false;
      const int size =
          __builtin_ctz(static_cast<unsigned>(kDTypes[static_cast<size_t>(d)].block_bytes));
      if ((table.run[c][size] != nullptr) != conditions[c]) return false;
    }
  }
  return true;
}

WICK_DECLARE_KERNELS(UnaryKernels, unary_kernels)
WICK_DECLARE_KERNELS(BinaryKernels, binary_kernels)
WICK_DECLARE_KERNELS(UnaryWithKernels, unary_with_kernels)
WICK_DECLARE_KERNELS(CompareKernels, compare_kernels)
WICK_DECLARE_KERNELS(WhereKernels, where_kernels)

}  // namespace wick::cpu
