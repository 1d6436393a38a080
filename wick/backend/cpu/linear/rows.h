#pragma once

#include <cstdint>
#include <vector>

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

/// Where the rows of a layout [.., k] start, counted from the layout's offset: one stride if they
/// have a common one, else a table.
struct RowStarts {
  int64_t stride = 0;
  std::vector<int64_t> offsets;  ///< empty when the stride says it all

  RowStarts(const Layout& layout, int64_t rows) {
    const int dims = layout.rank() - 1;
    const Shape& shape = layout.shape();
    bool uniform = true;
    int64_t covered = 1;
    for (int d = dims - 1; d >= 0; --d) {
      if (shape[d] == 1) continue;
      if (covered == 1) {
        stride = layout.stride(d);
      } else {
        uniform = uniform && layout.stride(d) == covered * stride;
      }
      covered *= shape[d];
    }
    if (uniform) return;
    offsets.resize(static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      offsets[static_cast<size_t>(row)] = row_offset(layout, row) - layout.offset();
    }
  }
  int64_t at(int64_t row) const {
    return offsets.empty() ? row * stride : offsets[static_cast<size_t>(row)];
  }
  const int64_t* table() const { return offsets.empty() ? nullptr : offsets.data(); }
};

}  // namespace wick::cpu
