#pragma once

// Functions that move elements without computing. The conventions of wick/tensor/ops.h hold here.
// Each element of a result is written once.

#include <cstdint>
#include <initializer_list>
#include <span>

#include "wick/backend/view.h"
#include "wick/base/export.h"
#include "wick/base/list_of.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// Reverses dims (all dims if none are given). A view. Any shape, kept. All ten real dtypes and
/// bool. Class exact. Errors: a dim is out of range or given twice.
WICK_API Tensor flip(const Tensor& x, ListOf<int> dims = {});

/// Rolls elements by `shifts` along `dims`, one shift per dim; elements shifted past the last
/// position reappear at the first. Any shape, kept. All ten real dtypes and bool. Class exact.
/// Errors: the numbers of shifts and dims differ; a dim is out of range or given twice.
WICK_API Tensor roll(const Tensor& x, ListOf<int64_t> shifts, ListOf<int> dims);

/// Repeats x along each dim. counts apply to the last dims; more counts than dims add leading dims
/// → [.., size · count, ..]. All ten real dtypes and bool, kept. Class exact. Errors: a count is
/// negative; the result has more than 8 dims or too many elements.
WICK_API Tensor repeat(const Tensor& x, ListOf<int64_t> counts);

enum class PadMode : uint8_t {
  constant,   ///< a constant value
  reflect,    ///< elements mirrored at the first and the last element, which aren't repeated
  replicate,  ///< repetitions of the first and the last element
};
/// Numbers of elements before and after a dim's elements.
struct Padding {
  int64_t before = 0, after = 0;
};
/// Pads the last dims of x, in the order of the dims: {{1, 1}, {0, 2}} pads dims -2 and -1. All ten
/// real dtypes and bool, kept; `value` is converted as by cast. Class exact. Errors: more paddings
/// than dims; negative padding; reflect padding not below the size; replicate padding of an empty
/// dim.
WICK_API Tensor pad(const Tensor& x, ListOf<Padding> padding, PadMode mode = PadMode::constant,
                    Scalar value = 0);

/// Keeps the lower (tril) or upper (triu) triangle of matrices: elements [.., i, j] with j - i <=
/// diagonal (>= for triu); the others become 0. [.., m, n], kept. All ten real dtypes and bool,
/// kept. Class exact. Errors: the rank is below 2.
WICK_API Tensor tril(const Tensor& x, int64_t diagonal = 0);
WICK_API Tensor triu(const Tensor& x, int64_t diagonal = 0);

/// The identity matrix [rows, columns]. Any real dtype. Class exact. Errors: a size is negative.
WICK_API Tensor eye(int64_t rows, int64_t columns, DType dtype = DType::f32, Device device = {});
inline Tensor eye(int64_t size, DType dtype = DType::f32, Device device = {}) {
  return eye(size, size, dtype, device);
}

/// Writes a value to all elements of target, or to those of `where`, a layout made from target's by
/// views: `const_set(x, 0, x.layout().narrow(1, 2, 3))`. All ten real dtypes and bool; the value is
/// converted as by cast. Class exact. Errors: target is mapped; its storage is shared and target
/// isn't a leaf; a gradient would be needed; the elements overlap or lie outside the storage.
WICK_API void const_set(Tensor& target, Scalar value);
WICK_API void const_set(Tensor& target, Scalar value, const Layout& where);

}  // namespace wick
