#pragma once

// A product of matrices as kernels are handed it, by value; made by the host (linear/gemm.h).

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// What a product of floats is stored as.
enum OutFormat : u32 { kStoreF32, kStoreF16, kStoreBf16 };

/// out[i][j] = round(scale[i] · Σ_p a[i][p]·b[j][p]) + residual[i][j], for every matrix of a batch.
/// Rows of b are columns of the result. Strides count elements.
struct Gemm {
  u32 m = 0, n = 0, k = 0;
  i64 a_row = 0, a_k = 0;
  i64 b_row = 0, b_k = 0;
  i64 out_row = 0, out_col = 0;
  i64 residual_row = 0, residual_col = 0;
  const float* scale = nullptr;     ///< of each row of the whole batch; null: 1
  const float* residual = nullptr;  ///< null: 0
  u32 format = kStoreF32;           ///< of floats; other sums are stored in a's dtype
  u32 fours = 0;          ///< not 0: out and residual may be accessed four columns at a time
  u32 first = 0;          ///< the batch's matrix that the first thread blocks take
  StridedIndex<4> batch;  ///< where the matrices of out, a, b and residual start
};

/// How rows of 16-bit elements lie in memory, and so how they are read.
enum RowLayout : u32 {
  kPiecesOfK,    ///< k are neighbours, and every eighth lies on 16 bytes; k is a multiple of 8
  kPairsOfRows,  ///< rows are neighbours, and every second lies on 4 bytes; rows are even
  kScalar,       ///< anything else
};

/// What the matrix units' kernels are told besides.
struct MatrixRows {
  u32 a = kScalar, b = kScalar;  ///< RowLayout of either
  u32 k_of_b = 0;  ///< behind so many k, b starts again; a multiple of 64 if it is below k
};

/// The tile of a thread block: thread blocks take `kBand` rows of tiles column by column, so that
/// those that run together share rows of a and of b in the cache.
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
