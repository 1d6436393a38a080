#pragma once

// Work distribution of reductions, shared by reduce.cpp and norm.cpp.

#include <cstdint>

#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {

/// The kept dims, those with the input's smallest strides innermost, and the reduced dims in their
/// order. The operands of `kept` are the input and the output; that of `reduced` is the input.
struct Reduction {
  CollapsedDims<2> kept;
  CollapsedDims<1> reduced;
  int64_t n = 1;  ///< elements of a result

  Reduction(const Layout& in, const Layout& out, uint32_t dims);

  /// The input's stride from one reduced element to the next.
  int64_t reduced_step() const { return reduced.dims.empty() ? 1 : reduced.dims.back().stride[0]; }
  /// Whether neighbours in memory belong to different results.
  bool is_across() const;
  /// Whether the elements of a result are vectors of `each` neighbours: see Access.
  bool is_dense(const void* data, DType dtype, int64_t each) const;
  /// is_dense for the innermost of several reduced dims.
  bool has_dense_runs(const void* data, DType dtype, int64_t each) const;
  /// Whether neighbouring columns are vectors of `each` elements.
  bool has_dense_columns(const void* data, DType dtype, int64_t each) const;

  Line line() const;
  /// The most threads that a result takes.
  int64_t most_threads() const;
};

/// The columns of a piece of a reduction's kept dims; the innermost kept dim counts columns. Blocks
/// and threads are left to the caller.
Columns columns_of(const StridedIndex<2>& kept, int64_t n);

}  // namespace wick::gpu
