#pragma once

// Stores the sums of grouped_linear's gemms: a tile's rows go to the rows of the result that the
// list of tiles names.

#include "wick/backend/gpu/kernels/linear/gemm_store.h"
#include "wick/backend/gpu/kernels/linear/grouped_abi.h"

namespace wick::gpu {

/// Stores the sums of a tile whose first column is `first_column` of the result. p: a scale for
/// each row of the list; columns of the result are contiguous.
template <class Loop>
WICK_DEVICE void store_chosen(const Loop& loop, void* out, const Gemm& p,
                              const ExpertTileList& list, const ExpertTile& tile,
                              u32 first_column) {
  const u32 shift = p.format == kStoreF32 ? 2 : 1;
  loop.each([&](u32 row, u32 column, const float* sums) {
    column += first_column;
    if (row >= tile.count || column >= p.n) return;
    const float scale = p.scale != nullptr ? p.scale[tile.first + row] : 1.0f;
    float x[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j) x[j] = sums[j] * scale;
    const i64 at = list.places[tile.first + row] * p.out_row + column;
    if (p.fours != 0) {
      store_four_as(static_cast<char*>(out) + (at << shift), p.format, x);
      return;
    }
#pragma unroll 1  // limits the code size
    for (u32 j = 0; j < 4 && column + j < p.n; ++j) {
      store_as(out, p.format, at + j, x[0]);
      x[0] = x[1];
      x[1] = x[2];
      x[2] = x[3];
    }
  });
}

}  // namespace wick::gpu
