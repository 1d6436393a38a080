#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/base/dtype.h"
#include "wick/base/layout.h"

namespace wick {

/// What a backend reads: device memory, how to interpret it, and where each element lies.
/// `data` is the start of the storage; the layout's offset and strides count elements. A block
/// dtype is dense along the last dimension, and its offset and strides there are whole blocks.
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Layout layout;
};

/// What a backend writes. Its elements never overlap each other.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  Layout layout;

  operator ConstView() const { return {data, dtype, layout}; }
};

/// A table's stride along dim d of an operand of `rank` dims, of which the table has the last ones.
inline int64_t stride_along(const Layout& table, int d, int rank) {
  const int own = d - (rank - table.rank());
  return own < 0 ? 0 : table.stride(own);
}

/// A number on its way into a tensor of any real dtype, without loss.
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
