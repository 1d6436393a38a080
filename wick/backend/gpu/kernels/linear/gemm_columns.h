#pragma once

// The columns of a thread block's tile of a gemm y[column][row]: which row of activations a column
// is, and as which column its results are stored. Column 0 is the tile's first one.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/linear/grouped_abi.h"

namespace wick::gpu {

/// Neighbouring columns of a gemm with one weight, kWidth for each thread block along y.
template <u32 kWidth>
struct BlockColumns {
  u32 columns;  ///< of the gemm

  WICK_DEVICE static u32 first() { return block_index_y() * kWidth; }
  /// Number of columns from the tile's first one on, which may exceed the tile's width.
  WICK_DEVICE u32 count() const { return columns - first(); }
  WICK_DEVICE bool has(u32 c) const { return first() + c < columns; }
  /// The row of activations of a column that exists.
  WICK_DEVICE u32 source(u32 c) const { return first() + c; }
  /// The same for any column: past the end it is that of the last column.
  WICK_DEVICE u32 clamped_source(u32 c) const { return has(c) ? first() + c : columns - 1; }
  /// The column of the result of a column that exists.
  WICK_DEVICE u32 place(u32 c) const { return first() + c; }
};

/// Neighbouring columns of a gemm with one weight, from column `first` on; see BlockColumns.
struct NextColumns {
  u32 first, columns;

  WICK_DEVICE u32 count() const { return columns - first; }
  WICK_DEVICE bool has(u32 c) const { return first + c < columns; }
  WICK_DEVICE u32 source(u32 c) const { return first + c; }
  WICK_DEVICE u32 clamped_source(u32 c) const { return has(c) ? first + c : columns - 1; }
  WICK_DEVICE u32 place(u32 c) const { return first + c; }
};

/// The first columns of a gemm with one weight.
struct FirstColumns {
  u32 columns;

  WICK_DEVICE bool has(u32 c) const { return c < columns; }
  WICK_DEVICE u32 source(u32 c) const { return c; }
  WICK_DEVICE u32 place(u32 c) const { return c; }
};

/// Rows of grouped_linear that chose one expert. There is at least one.
struct ChosenColumns {
  const u32 *tokens, *places;
  u32 columns;

  WICK_DEVICE u32 count() const { return columns; }
  WICK_DEVICE bool has(u32 c) const { return c < columns; }
  WICK_DEVICE u32 source(u32 c) const { return tokens[c]; }
  WICK_DEVICE u32 clamped_source(u32 c) const { return tokens[has(c) ? c : columns - 1]; }
  WICK_DEVICE u32 place(u32 c) const { return places[c]; }
};

/// A tile of grouped_linear.
struct ChosenTile {
  const void* weight;
  ChosenColumns columns;  ///< none: the thread block has nothing to do

  /// Tile `index` of `list`. The kernel that makes the list must have ended.
  WICK_DEVICE ChosenTile(const ExpertTileList& list, u32 index) {
    const ExpertTile& tile = list.tiles[index];
    weight = in_global(tile.weight);
    columns = {list.tokens + tile.first, list.places + tile.first, tile.count};
  }
};

}  // namespace wick::gpu
