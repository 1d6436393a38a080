#pragma once

#include <cstdint>

#include "wick/base/layout.h"

namespace wick::cpu {

/// Rows [.., last dimension] of a layout.
inline int64_t row_count(const Layout& layout) {
  int64_t rows = 1;
  for (int dim = 0; dim < layout.rank() - 1; ++dim) rows *= layout.shape()[dim];
  return rows;
}

/// The offset of row number `row` in row-major order.
inline int64_t row_offset(const Layout& layout, int64_t row) {
  int64_t at = layout.offset();
  for (int dim = layout.rank() - 2; dim >= 0; --dim) {
    const int64_t size = layout.shape()[dim];
    at += layout.stride(dim) * (row % size);
    row /= size;
  }
  return at;
}

/// The offsets of all rows, in row-major order.
inline void row_offsets(const Layout& layout, int64_t* out) {
  const int64_t rows = row_count(layout);
  int64_t index[Shape::kMaxRank] = {};
  int64_t at = layout.offset();
  for (int64_t row = 0; row < rows; ++row) {
    out[row] = at;
    for (int dim = layout.rank() - 2; dim >= 0; --dim) {
      at += layout.stride(dim);
      if (++index[dim] < layout.shape()[dim]) break;
      at -= layout.stride(dim) * layout.shape()[dim];
      index[dim] = 0;
    }
  }
}

}  // namespace wick::cpu
