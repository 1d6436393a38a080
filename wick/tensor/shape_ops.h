#pragma once

// Functions that move elements and compute nothing. What wick/tensor/ops.h says of all functions
// holds here. Each element of a result is written once.

#include <cstdint>
#include <initializer_list>
#include <span>

#include "wick/backend/view.h"
#include "wick/base/export.h"
#include "wick/base/list_of.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// A view with dims (none named: all) running backwards; nothing is copied. Any shape, kept. All
/// ten real dtypes. Class exact. Errors: a dim out of range or named twice.
WICK_API Tensor flip(const Tensor& x, ListOf<int> dims = {});

/// Elements moved on by `shifts` along `dims`, one shift a dim; what leaves at an end comes back at
/// the other. Any shape, kept. All ten real dtypes. Class exact. Errors: other numbers of shifts
/// and dims, a dim out of range or named twice.
WICK_API Tensor roll(const Tensor& x, ListOf<int64_t> shifts, ListOf<int> dims);

/// x laid out counts[d] times along each dim. counts for the last dims, or for more than x has:
/// → [.., size · count, ..]. All ten real dtypes, kept. Class exact. Errors: a negative count, more
/// than 8 dims, too many elements.
WICK_API Tensor repeat(const Tensor& x, ListOf<int64_t> counts);

enum class PadMode : uint8_t {
  constant,   ///< a value
  reflect,    ///< mirrored at the first and the last element, which aren't repeated
  replicate,  ///< the first and the last element again and again
};
/// Elements in front of a dim and behind it.
struct Padding {
  int64_t before = 0, after = 0;
};
/// x with elements around it in its last dims, in their order: {{1, 1}, {0, 2}} is for dims -2 and
/// -1. All ten real dtypes, kept; `value` is converted as by cast. Class exact. Errors: more dims
/// than x has, negative padding, reflecting by a size or more, replicating nothing.
WICK_API Tensor pad(const Tensor& x, ListOf<Padding> padding, PadMode mode = PadMode::constant,
                    Scalar value = 0);

/// The lower (upper) triangle of matrices: elements [.., i, j] with j - i <= diagonal (>=); the
/// others are 0. [.., m, n], kept. All ten real dtypes, kept. Class exact. Errors: a rank below 2.
WICK_API Tensor tril(const Tensor& x, int64_t diagonal = 0);
WICK_API Tensor triu(const Tensor& x, int64_t diagonal = 0);

/// 1 on the diagonal and 0 elsewhere. → [rows, columns]. Any real dtype. Class exact. Errors: a
/// negative size.
WICK_API Tensor eye(int64_t rows, int64_t columns, DType dtype = DType::f32, Device device = {});
inline Tensor eye(int64_t size, DType dtype = DType::f32, Device device = {}) {
  return eye(size, size, dtype, device);
}

/// Writes a value over all elements of target, or over those of `where`, a layout made from
/// target's by views: `const_set(x, 0, x.layout().narrow(1, 2, 3))`. All ten real dtypes; the value
/// is converted as by cast. Class exact. Errors: target is mapped, or its storage is shared and
/// it is no leaf; a gradient is wanted; elements that overlap or lie outside the storage.
WICK_API void const_set(Tensor& target, Scalar value);
WICK_API void const_set(Tensor& target, Scalar value, const Layout& where);

}  // namespace wick
