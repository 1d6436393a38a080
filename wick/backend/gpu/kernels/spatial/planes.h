#pragma once

// Index arithmetic over the planes of images [b, c, h, w], which the host and the kernels share.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// A part of the planes of a tensor: `rows` × `columns` elements of each plane, from row first[0]
/// and column first[1] on. Indices are row-major over planes, rows and columns, and below 2^31. The
/// planes have N operands.
template <u32 N>
struct PlanePart {
  StridedIndex<N> planes;
  Divider rows, columns;
  u32 elems = 0;
  i64 first[2] = {};

  /// Row and column of an element, and offsets of its plane in each operand.
  template <class I>
  WICK_FN void locate(u32 index, I& row, I& column, i64 (&at)[N]) const {
    const u32 above = columns.divide(index), plane = rows.divide(above);
    column = static_cast<I>(first[1]) + static_cast<I>(index - above * columns.by);
    row = static_cast<I>(first[0]) + static_cast<I>(above - plane * rows.by);
    planes.locate(plane, at);
  }
};

}  // namespace wick::gpu
