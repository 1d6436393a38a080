#pragma once

// Strided indices: collapsed dims over which several operands are indexed together. The host makes
// them (wick/backend/gpu/layout/collapsed_dims.h) and passes them to kernels by value.

#include "wick/math/fn.h"

namespace wick::gpu {

using math::i64;
using math::u32;
using math::u64;

/// Division by a number that is known in advance, for dividends below 2^31. Source: Granlund and
/// Montgomery, "Division by Invariant Integers using Multiplication", 1994.
struct Divider {
  u32 by = 1, magic = 0, shift = 0;

  Divider() = default;
  WICK_FN explicit Divider(u32 divisor) : by(divisor) {
    if (divisor == 1) return;
    u32 log = 0;  // 2^log is the first power of two not below the divisor
    while ((u64{1} << log) < divisor) ++log;
    magic = static_cast<u32>(((u64{1} << (31 + log)) + divisor - 1) / divisor);
    shift = log - 1;
  }
  WICK_FN u32 divide(u32 n) const {
    return by == 1 ? n : static_cast<u32>(u64{n} * magic >> 32) >> shift;
  }
};

/// Dims, outermost first, each with a stride in elements for each of N operands. Indices are
/// row-major over the dims and below 2^31.
template <u32 N>
struct StridedIndex {
  static constexpr u32 kMaxRank = 8;
  u32 rank = 0;
  u32 elems = 1;
  u32 step = 0;  ///< not 0: index i lies at offset i·step in every operand
  Divider size[kMaxRank];
  i64 stride[N][kMaxRank] = {};

  /// Offsets of an index in each operand.
  WICK_FN void locate(u32 index, i64 (&at)[N]) const {
    for (u32 k = 0; k < N; ++k) at[k] = 0;
#if defined(__CUDACC__) || defined(__HIP__)
#pragma unroll
#endif
    for (u32 i = 0; i < kMaxRank; ++i) {
      if (i >= rank) break;
      const u32 d = rank - 1 - i;
      const u32 outer = d == 0 ? 0 : size[d].divide(index);
      const u32 here = index - outer * size[d].by;
      for (u32 k = 0; k < N; ++k) at[k] += here * stride[k][d];
      index = outer;
    }
  }
};

/// Elements `step` apart. wide: they are contiguous, and aligned to four.
struct Spread {
  i64 step;
  u32 wide;
};

}  // namespace wick::gpu
