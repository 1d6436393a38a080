#pragma once

// How reductions are spread over a device: shared by reduce.cpp, min_max.cpp and norm.cpp.

#include <bit>
#include <cstdint>

#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {

/// The dims that are kept, those of the input's smallest strides innermost, and the dims that are
/// reduced, in their order. Operands: the input, the output; the input.
struct Reduction {
  CollapsedDims<2> kept;
  CollapsedDims<1> reduced;
  int64_t n = 1;  ///< elements of a result

  Reduction(const Layout& in, const Layout& out, uint32_t dims);

  /// The input's stride from a reduced element to the next.
  int64_t reduced_step() const { return reduced.dims.empty() ? 1 : reduced.dims.back().stride[0]; }
  /// Whether neighbours in memory belong to different results.
  bool is_across() const;
  /// Whether the elements of a result are vectors of `each` neighbours: see Access.
  bool is_dense(const void* data, DType dtype, int64_t each) const;
  /// The same for the innermost of several reduced dims.
  bool has_dense_runs(const void* data, DType dtype, int64_t each) const;
  /// Whether neighbouring columns are vectors of `each`.
  bool has_dense_columns(const void* data, DType dtype, int64_t each) const;

  Line line() const;
  /// Work-threads that a result takes at most.
  int64_t most_threads() const;
};

/// The columns of a piece of a reduction's kept dims, of which the innermost goes across; blocks
/// and threads are to be chosen.
Columns columns_of(const StridedIndex<2>& kept, int64_t n);

/// The smallest power of two not below x, as its logarithm.
inline uint32_t ceil_log(uint64_t x) {
  return x <= 1 ? 0 : static_cast<uint32_t>(std::bit_width(x - 1));
}

}  // namespace wick::gpu
