#pragma once

// The arguments of a gemm kernel. The host makes them (linear/gemm.h) and passes them by value.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// The dtype in which float results are stored.
enum OutFormat : u32 { kStoreF32, kStoreF16, kStoreBf16 };

/// out[i][j] = round(scale[i] · Σ_p a[i][p]·b[j][p]) + residual[i][j] for every matrix of a batch.
/// Rows of b are columns of the result. Strides count elements.
struct Gemm {
  u32 m = 0, n = 0, k = 0;
  i64 a_row = 0, a_k = 0;
  i64 b_row = 0, b_k = 0;
  i64 out_row = 0, out_col = 0;
  i64 residual_row = 0, residual_col = 0;
  const float* scale = nullptr;     ///< one for each row of the whole batch; null: 1
  const float* residual = nullptr;  ///< null: 0
  u32 format = kStoreF32;           ///< of float results; other results have a's dtype
  u32 fours = 0;          ///< not 0: out and residual may be accessed four columns at a time
  u32 first = 0;          ///< the matrix of the batch that the first thread blocks take
  StridedIndex<4> batch;  ///< offsets of the matrices of out, a, b and residual
};

/// The layout of rows of 16-bit elements, which decides how they are loaded.
enum RowLayout : u32 {
  /// k are contiguous and aligned to eight (16 bytes); k is a multiple of 8.
  kPiecesOfK,
  /// Rows are contiguous and aligned to two (4 bytes); the number of rows is even.
  kPairsOfRows,
  kScalar,  ///< anything else
};

/// Further arguments of kernels with matrix units.
struct MatrixRows {
  u32 a = kScalar, b = kScalar;  ///< RowLayout of a and of b
  /// b repeats with this period along k; a multiple of 64 if it is below k.
  u32 k_of_b = 0;
};

/// The tile of a thread block. Thread blocks take `kBand` rows of tiles column by column, so that
/// blocks that run at the same time share rows of a and of b in the cache.
struct TilePlace {
  u32 row, column, matrix;

  WICK_FN TilePlace(u32 block, u32 rows, u32 columns) {
    constexpr u32 kBand = 8;
    const u32 tiles = rows * columns;
    matrix = block / tiles;
    const u32 at = block - matrix * tiles;
    const u32 band = at / (kBand * columns), first = band * kBand;
    const u32 high = rows - first < kBand ? rows - first : kBand;
    const u32 in_band = at - first * columns;
    column = in_band / high;
    row = first + in_band - column * high;
  }
};

}  // namespace wick::gpu
