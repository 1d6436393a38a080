#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/op/op.h"

namespace wick::cpu {

/// Rows to sort. Steps in elements: `step` between the elements of a row, `next` from one row to
/// the next. Outputs without data aren't written.
struct SortRows {
  const void* x;
  int64_t x_step, x_next;
  void* values;
  int64_t values_step, values_next;
  uint32_t* indices;
  int64_t indices_step, indices_next;
  int64_t lines, n;  ///< n < 2^32
  int64_t keep;      ///< how many of the first elements are written, at most n
  bool descending;
};

struct SortKernels {
  /// `scratch` is aligned to 64 and has bytes(rows) bytes.
  using Rows = void (*)(const SortRows& lines, void* scratch);
  using Bytes = int64_t (*)(const SortRows& lines);
  Rows run[kRealDTypeCount];
  Bytes bytes[kRealDTypeCount];
};

constexpr bool complete(const SortKernels& table) {
  static_assert(info(Op::sort).dtypes == dtypes::kAny && info(Op::topk).dtypes == dtypes::kAny);
  for (int d = 0; d < kRealDTypeCount; ++d) {
    if (table.run[d] == nullptr || table.bytes[d] == nullptr) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(SortKernels, sort_kernels)

}  // namespace wick::cpu
