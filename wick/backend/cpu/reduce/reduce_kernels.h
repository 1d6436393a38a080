#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/math/orders.h"
#include "wick/math/reducers.h"
#include "wick/op/op.h"

namespace wick::cpu {

using math::kSumChunk;
/// The most columns for one call of a column kernel. Sums: eight buffers of so many columns fit L1.
/// Min and max: two buffers do, and longer pieces of rows are read faster.
inline constexpr int64_t kReduceColumns = 512;
inline constexpr int64_t kMinMaxColumns = 2048;

/// The ops that have a reducer, and max and min.
enum class Reduction : unsigned char {
#define WICK_REDUCER(op, reducer) op,
  WICK_REDUCERS(WICK_REDUCER)
#undef WICK_REDUCER
      max,
  min,
  count,
};
inline constexpr int kReductions = static_cast<int>(Reduction::count);
/// The reduction of an op; a mean is a sum whose result is divided.
constexpr Reduction reduction_of(Op op) {
  switch (op) {
#define WICK_REDUCER(op, reducer) \
  case Op::op:                    \
    return Reduction::op;
    WICK_REDUCERS(WICK_REDUCER)
#undef WICK_REDUCER
    case Op::max:
      return Reduction::max;
    case Op::min:
      return Reduction::min;
    default:
      return Reduction::sum;
  }
}

/// Tables are indexed by dtype. The type of partial results is float for floats up to 32 bits,
/// double for f64, uint32_t for integers and uint64_t for i64; for max and min of integers it is
/// the integer type.
struct ReduceKernels {
  /// Reduces n <= kSumChunk elements, `step` elements apart, to one partial result.
  using Chunk = void (*)(const void* x, int64_t step, int64_t n, void* result);
  /// Reduces a chunk of `width` neighbouring columns. Row c of the chunk starts rows[c] elements
  /// after x.
  using Columns = void (*)(const void* x, const int64_t* rows, int64_t n, int64_t width,
                           void* results);
  /// into = into (op) from, for `count` partial results.
  using Combine = void (*)(void* into, const void* from, int64_t count);
  /// Rounds partial results to elements of the dtype, `step` apart; those of a mean are divided by
  /// `divisor` first.
  using Finish = void (*)(const void* results, int64_t count, double divisor, void* y,
                          int64_t step);
  /// The partial result of no elements.
  using Identity = void (*)(void* result);
  /// The index of the largest or smallest of n elements.
  using Arg = int64_t (*)(const void* x, int64_t step, int64_t n, bool largest);
  /// The indices of the largest or smallest in `width` <= kMinMaxColumns neighbouring columns,
  /// whose rows are `row_step` apart.
  using ArgColumns = void (*)(const void* x, int64_t row_step, int64_t n, int64_t width,
                              bool largest, uint32_t* y, int64_t y_step);
  Chunk chunk[kReductions][kRealDTypeCount];  // Reduction, dtype
  Columns columns[kReductions][kRealDTypeCount];
  Combine combine[kReductions][kRealDTypeCount];
  Finish finish[kReductions][kRealDTypeCount];
  Identity identity[kReductions][kRealDTypeCount];  // null: max and min have none
  Arg arg[kRealDTypeCount];
  ArgColumns arg_columns[kRealDTypeCount];
};

/// True when every reduction has kernels for every dtype of its row in ops.def: all ten.
constexpr bool complete(const ReduceKernels& table) {
  static_assert(info(Op::sum).dtypes == dtypes::kAny && info(Op::prod).dtypes == dtypes::kAny &&
                info(Op::max).dtypes == dtypes::kAny && info(Op::min).dtypes == dtypes::kAny &&
                info(Op::argmax).dtypes == dtypes::kAny && info(Op::argmin).dtypes == dtypes::kAny);
  for (int d = 0; d < kRealDTypeCount; ++d) {
    for (int kind = 0; kind < kReductions; ++kind) {
      if (table.chunk[kind][d] == nullptr || table.columns[kind][d] == nullptr) return false;
      if (table.combine[kind][d] == nullptr || table.finish[kind][d] == nullptr) return false;
    }
    if (table.arg[d] == nullptr || table.arg_columns[d] == nullptr) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(ReduceKernels, reduce_kernels)

}  // namespace wick::cpu
