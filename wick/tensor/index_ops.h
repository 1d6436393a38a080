#pragma once

// Functions that gather, scatter, sort and accumulate elements along a dim. The conventions of
// wick/tensor/ops.h hold here.
//
// ids are u8, u32, i32 or i64 tensors of any layout. The largest value of an unsigned id dtype is
// padding. Any other id that is out of range is an error that names the id; a GPU reports it at the
// next synchronisation.

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// out[.., i, ..] = x[.., ids[.., i, ..], ..] along `dim`; padding gives 0. ids has x's rank, any
/// size along `dim` and no larger sizes than x elsewhere → ids' shape. All ten real dtypes and
/// bool, kept. Class exact. Errors: shapes don't fit; an id is out of range.
WICK_API Tensor gather(const Tensor& x, const Tensor& ids, int dim);

/// Returns a copy of x with out[.., ids[.., i, ..], ..] = source[.., i, ..] along `dim`; of several
/// sources for one element the last is kept, and padding is ignored. ids and source have one shape:
/// x's rank, any size along `dim` and no larger sizes than x elsewhere → x's shape. All ten real
/// dtypes and bool, kept. Class exact. Errors: shapes don't fit; an id is out of range.
WICK_API Tensor scatter(const Tensor& x, const Tensor& ids, const Tensor& source, int dim);

/// Returns x plus source, added in source order at the elements where scatter would write. Shapes
/// and errors are those of scatter. All ten real dtypes, kept; integers wrap, narrow floats are
/// summed in f32 and rounded once. Class tree.
WICK_API Tensor scatter_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim);

/// Returns x plus slices of source, added in source order: out[.., ids[i], ..] += source[.., i,
/// ..]; padding is ignored. ids [n]; source has x's shape, except for size n along `dim` → x's
/// shape. All ten real dtypes, kept; integers wrap, narrow floats are summed in f32 and rounded
/// once. Class tree. Errors: shapes don't fit; an id is out of range.
WICK_API Tensor index_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim);

/// 1 at [.., ids[..]] and 0 elsewhere; padding gives zeros. ids of any shape → [.., depth]. Any
/// real dtype. Class exact. Errors: depth is negative; ids has rank 8; an id is out of range.
WICK_API Tensor one_hot(const Tensor& ids, int64_t depth, DType dtype = DType::f32);

/// Sorted elements along a dim, and their indices in the operand.
struct [[nodiscard]] Sorted {
  Tensor values;   ///< of x's dtype
  Tensor indices;  ///< u32
};
/// Sorts along a dim, ascending or descending. The sort is stable; NaN comes last in either order,
/// and -0 < +0. Any shape, kept. All ten real dtypes and bool. Class exact. Errors: the dim is out
/// of range, or has more elements than u32 can count.
WICK_API Sorted sort(const Tensor& x, int dim = -1, bool descending = false);
/// Returns the indices of sort alone. Shapes, dtypes, class and errors are those of sort.
WICK_API Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);
/// The k largest (or smallest) elements along a dim: the first k of a descending (or ascending)
/// sort. [.., n, ..] → [.., k, ..]. Dtypes and class are those of sort. Errors: those of sort; k is
/// above n.
WICK_API Sorted topk(const Tensor& x, int64_t k, int dim = -1, bool largest = true);

/// The cumulative sum along a dim. Any shape, kept. All ten real dtypes, kept; bool gives i64;
/// integers wrap, narrow floats are summed in f32 and rounded at the store. Class tree. Errors: the
/// dim is out of range.
WICK_API Tensor cumsum(const Tensor& x, int dim = -1);
/// The cumulative product along a dim. Any shape, kept. All ten real dtypes, kept; bool gives i64;
/// integers wrap. Floats are multiplied in f64 with an unbounded exponent and rounded to the dtype
/// at the store. An overflow or underflow doesn't affect later elements: [1e30, 1e30, 1e-30] gives
/// [1e30, inf, 1e30], and behind a 0 the result is NaN only if an element is infinite or NaN. Class
/// tree. The gradient is computed in f64: it is NaN if a product of a prefix leaves f64's range.
/// Errors: the dim is out of range.
WICK_API Tensor cumprod(const Tensor& x, int dim = -1);

}  // namespace wick
