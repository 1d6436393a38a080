#pragma once

// Arguments of the transposing copy.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Matrices of rows × cols units whose rows are dense in the input and whose columns are dense in
/// the output. `outer` counts matrices.
struct Transposition {
  u32 rows = 0, cols = 0;
  i64 in_row = 0;      ///< units from one row to the next in the input
  i64 out_col = 0;     ///< units from one column to the next in the output
  Divider tiles_wide;  ///< divides by the tiles along a row
  Divider tiles;       ///< divides by the tiles of a matrix
  StridedIndex<2> outer;
};

/// Units along a side of a tile, for units of `bytes`, of which `together` share a word.
WICK_FN constexpr u32 tile_side(u32 bytes, u32 together) {
  return bytes > 4 ? 32 : together == 4 ? 128 : 64;
}

}  // namespace wick::gpu
