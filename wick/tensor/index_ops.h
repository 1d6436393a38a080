#pragma once

// Functions that choose, place, order and accumulate elements along a dim. What wick/tensor/ops.h
// says of all functions holds here.
//
// ids are u8, u32, i32 or i64 of any layout. The maximum of an unsigned id type is padding; any
// other id outside the dim is an error that names it (on a GPU at the next synchronisation).

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// out[.., i, ..] = x[.., ids[.., i, ..], ..] along `dim`; 0 for padding. ids of x's rank, any size
/// along `dim` and no larger elsewhere → ids' shape. All ten real dtypes, kept. Class exact.
/// Errors: shapes that don't fit, an id out of range.
WICK_API Tensor gather(const Tensor& x, const Tensor& ids, int dim);

/// x with out[.., ids[.., i, ..], ..] = source[.., i, ..] along `dim`; of several sources of a
/// place the last one stays, padding is left out. ids and source of one shape, of x's rank, any
/// size along `dim` and no larger elsewhere → x's shape. All ten real dtypes, kept. Class exact.
/// Errors: shapes that don't fit, an id out of range.
WICK_API Tensor scatter(const Tensor& x, const Tensor& ids, const Tensor& source, int dim);

/// x with source added where scatter would put it, one after another. Shapes, dtypes and errors of
/// scatter; integers wrap, narrow floats are summed in f32 and rounded once. Class tree: in source
/// order.
WICK_API Tensor scatter_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim);

/// x with slices of source added: out[.., ids[i], ..] += source[.., i, ..], one after another;
/// padding is left out. ids [n]; source of x's shape but for n along `dim` → x's shape. All ten
/// real dtypes, kept; integers wrap, narrow floats are summed in f32 and rounded once. Class tree:
/// in source order. Errors: shapes that don't fit, an id out of range.
WICK_API Tensor index_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim);

/// 1 at [.., ids[..]] and 0 elsewhere; padding gives zeros. ids of any shape → [.., depth]. Any
/// real dtype. Class exact. Errors: a negative depth, rank 8, an id out of range.
WICK_API Tensor one_hot(const Tensor& ids, int64_t depth, DType dtype = DType::f32);

/// Elements along a dim in order, and where they were.
struct [[nodiscard]] Sorted {
  Tensor values;   ///< of x's dtype
  Tensor indices;  ///< u32
};
/// Sorts along a dim, ascending or descending. Stable: equal elements keep their order; NaN comes
/// last either way, -0 before +0 when ascending. Any shape, kept. All ten real dtypes. Class exact.
/// Errors: the dim is out of range, or longer than u32 counts.
WICK_API Sorted sort(const Tensor& x, int dim = -1, bool descending = false);
/// The indices of sort alone. Shapes, dtypes, class and errors of sort.
WICK_API Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);
/// The k largest (or smallest) along a dim, in order: the first k of sort, descending for the
/// largest. [.., n, ..] → [.., k, ..]. Dtypes and class of sort. Errors: those of sort, k above n.
WICK_API Sorted topk(const Tensor& x, int64_t k, int dim = -1, bool largest = true);

/// Sums of the elements along a dim up to each. Any shape, kept. All ten real dtypes, kept;
/// integers wrap, narrow floats are summed in f32 and rounded at the store. Class tree. Errors: the
/// dim is out of range.
WICK_API Tensor cumsum(const Tensor& x, int dim = -1);
/// Products of the elements along a dim up to each. Any shape, kept. Real dtypes, kept, and bool,
/// which gives i64. Integers wrap. Floats are multiplied in f64 with an unbounded exponent and
/// rounded once more at the store: a product that is too large or too small for the dtype changes
/// no later one, so [1e30, 1e30, 1e-30] gives [1e30, inf, 1e30] and nothing behind a 0 is NaN
/// unless an element is infinite or NaN. Class tree. Errors: the dim is out of range.
WICK_API Tensor cumprod(const Tensor& x, int dim = -1);

}  // namespace wick
