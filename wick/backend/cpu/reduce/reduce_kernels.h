#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"

namespace wick::cpu {

/// Elements of a chunk of the row sum: every kernel call gets at most this many.
inline constexpr int64_t kReduceChunk = 4096;
/// Columns that a column kernel takes at a time: eight such buffers fit the first-level cache.
inline constexpr int64_t kReduceColumns = 512;

enum class Reduction : unsigned char { sum, max, min };

/// Tables are indexed by dtype. Partial results are of the accumulator type: float for floats up to
/// 32 bits, double for f64; sums of integers are uint32_t, of i64 uint64_t; the largest or smallest
/// integer has its own type.
struct ReduceKernels {
  /// Reduces n <= kReduceChunk elements, `step` elements apart, into one partial result.
  using Chunk = void (*)(const void* x, int64_t step, int64_t n, void* result);
  /// The same for `width` <= kReduceColumns neighbouring columns. Row c of the chunk starts
  /// rows[c] elements after x.
  using Columns = void (*)(const void* x, const int64_t* rows, int64_t n, int64_t width,
                           void* results);
  /// into = into (op) from, for `count` partial results.
  using Join = void (*)(void* into, const void* from, int64_t count);
  /// Partial results to elements of the dtype, `step` apart; a mean's are divided by `divisor`.
  using Finish = void (*)(const void* results, int64_t count, double divisor, void* y,
                          int64_t step);
  /// Index of the best of n elements.
  using Arg = int64_t (*)(const void* x, int64_t step, int64_t n, bool largest);
  /// The same for `width` <= kReduceColumns neighbouring columns, rows `row_step` apart.
  using ArgColumns = void (*)(const void* x, int64_t row_step, int64_t n, int64_t width,
                              bool largest, uint32_t* y, int64_t y_step);
  Chunk chunk[3][10];  // Reduction, dtype
  Columns columns[3][10];
  Join join[3][10];
  Finish finish[2][10];  // sums and means; max and min
  Arg arg[10];
  ArgColumns arg_columns[10];
};

WICK_DECLARE_KERNELS(ReduceKernels, reduce_kernels)

}  // namespace wick::cpu
