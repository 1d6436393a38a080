#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/base/dtype.h"
#include "wick/base/layout.h"

namespace wick {

/// An operand of a backend: device memory with dtype and layout. `data` is the start of the
/// storage; the layout's offset and strides count elements. A block dtype is dense along the last
/// dim, and the offset and the other strides are multiples of the block.
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Layout layout;
};

/// An output of a backend. Its elements don't overlap.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  Layout layout;

  operator ConstView() const { return {data, dtype, layout}; }
};

/// The stride along dim d, of `rank` dims, of a table that has only the last dims of its operand; 0
/// for the dims that it lacks.
inline int64_t stride_along(const Layout& table, int d, int rank) {
  const int own = d - (rank - table.rank());
  return own < 0 ? 0 : table.stride(own);
}

/// A number that converts to any real dtype without loss.
struct Scalar {
  double f = 0;
  int64_t i = 0;
  bool is_integer = false;

  Scalar(double value) : f(value), i(0), is_integer(false) {}
  Scalar(float value) : Scalar(static_cast<double>(value)) {}
  Scalar(int64_t value) : f(static_cast<double>(value)), i(value), is_integer(true) {}
  Scalar(int value) : Scalar(static_cast<int64_t>(value)) {}
};

}  // namespace wick
