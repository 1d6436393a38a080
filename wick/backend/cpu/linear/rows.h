#pragma once

#include <cstdint>
#include <vector>

#include "wick/base/collapsed_dims.h"

namespace wick::cpu {

/// The rows of a layout [.., k]: all dims but the last.
inline CollapsedDims<1> rows_of(const Layout& layout) {
  return CollapsedDims<1>({&layout}, (1u << (layout.rank() - 1)) - 1);
}

/// Where the rows of a layout [.., k] start, relative to the layout's offset: one stride if the
/// rows have a common one, else a table.
struct RowStarts {
  int64_t stride = 0;
  std::vector<int64_t> offsets;  ///< empty if the rows have a common stride

  explicit RowStarts(const Layout& layout) {
    const CollapsedDims<1> rows = rows_of(layout);
    if (rows.rank() <= 1) {
      if (rows.rank() == 1) stride = rows.inner(0).stride[0];
      return;
    }
    offsets.resize(static_cast<size_t>(rows.elems));
    for (int64_t row = 0; row < rows.elems; ++row) {
      offsets[static_cast<size_t>(row)] = rows.at(row)[0] - layout.offset();
    }
  }
  int64_t at(int64_t row) const {
    return offsets.empty() ? row * stride : offsets[static_cast<size_t>(row)];
  }
  const int64_t* table() const { return offsets.empty() ? nullptr : offsets.data(); }
};

}  // namespace wick::cpu
