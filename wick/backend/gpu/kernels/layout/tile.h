#pragma once

// A transposing copy as the host hands it to a kernel.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Matrices of rows × cols units: dense along columns in the input, along rows in the output.
/// `outer` counts matrices.
struct Transposition {
  u32 rows = 0, cols = 0;
  i64 in_row = 0;      ///< units from one row to the next in the input
  i64 out_col = 0;     ///< units from one column to the next in the output
  Divider tiles_wide;  ///< tiles along columns
  Divider tiles;       ///< of a matrix
  StridedIndex<2> outer;
};

/// Units along either side of a tile, of so many bytes each, of which `together` share a word.
WICK_FN constexpr u32 tile_side(u32 bytes, u32 together) {
  return bytes > 4 ? 32 : together == 4 ? 128 : 64;
}

}  // namespace wick::gpu
