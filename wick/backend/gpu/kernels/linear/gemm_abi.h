#pragma once

// Arguments of the kernels of products of floats and integers, and what host and kernels agree on
// about their tiles and their shared memory.

#include "wick/backend/gpu/kernels/layout/copy_map.h"
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

  WICK_FN TilePlace(u32 group, u32 rows, u32 columns) {
    constexpr u32 kBand = 8;
    const u32 tiles = rows * columns;
    matrix = group / tiles;
    const u32 at = group - matrix * tiles;
    const u32 band = at / (kBand * columns), first = band * kBand;
    const u32 high = rows - first < kBand ? rows - first : kBand;
    const u32 in_band = at - first * columns;
    column = in_band / high;
    row = first + in_band - column * high;
  }
};

/// product_A and product_A_B of gemm.gpu, product_DTYPE of gemm_small_m.gpu.
struct GemmArgs {
  void* out;
  const void *a, *b;
  Gemm shape;
};
/// product_DTYPE_TILE of gemm_mma.gpu; product_DTYPE_ROWS_KIND of gemm_skinny.gpu.
struct MatrixGemmArgs {
  void* out;
  const void *a, *b;
  Gemm shape;
  MatrixRows rows;
};
/// product_DTYPE_COLUMNS_LAYOUTS of gemm_wgmma.gpu.
struct WgmmaGemmArgs {
  CopyMap map_a, map_b;
  void* out;
  Gemm shape;
  u32 k_of_b;                ///< behind so many k, b starts again
  u32 batched_a, batched_b;  ///< 0: all matrices of the batch have the same operand, otherwise 1
  u32 tiles;
};
/// matvec_DTYPE of gemv_float.gpu. format: OutFormat of x.
struct FloatGemvArgs {
  void* out;
  const void *x, *weights;
  Gemm shape;
  u32 format;
};
/// matvec_DTYPE_ROWS of gemv_stream.gpu. ahead: bytes of the weights that a thread block asks for
/// before it waits for earlier kernels.
struct StreamGemvArgs {
  void* out;
  const void *x, *weights;
  Gemm shape;
  u32 format, ahead;
};

/// Threads of a thread block of gemm.gpu and gemm_mma.gpu; sides of their tiles.
inline constexpr u32 kLoopThreads = 256, kSmallTile = 64, kLargeTile = 128;
/// Columns of a tile of gemm_f32_large where devices copy to shared memory by themselves; it has
/// kLargeTile rows. Elsewhere it has as many columns.
inline constexpr u32 kLargeColumns = 256;
/// Rows of a that gemv_stream.gpu, gemv_float.gpu and gemm_small_m.gpu take at once at most.
inline constexpr u32 kRowsAtOnce = 8;
/// gemm_small_m.gpu: threads of a thread block, and its columns of the result.
inline constexpr u32 kFewThreads = 512, kFewGemmColumns = 32;
/// gemm_skinny.gpu: threads of a thread block, and its columns of the result.
inline constexpr u32 kSkinnyThreads = 256, kSkinnyColumns = 32;
/// gemm_wgmma.gpu: threads of a thread block, rows of its tile, and bytes of the stages of its
/// operands. kWgmmaBesides: bytes of shared memory besides, for alignment and for barriers.
inline constexpr u32 kWgmmaThreads = 384, kWgmmaRows = 128;
inline constexpr u32 kWgmmaStageBytes = 192 << 10, kWgmmaBesides = 1024 + 256;
/// gemv_stream.gpu: threads of a thread block at most.
inline constexpr u32 kStreamThreads = 512;
/// gemv_float.gpu: threads of a thread block at most, threads that it is launched with, and rows of
/// b that a warp takes.
inline constexpr u32 kFloatGemvMost = 512, kFloatGemvThreads = 128, kFloatGemvRows = 4;
/// Bytes that a pack of 16 bytes of weights' activations takes in shared memory (shared_x.h): f32
/// for two of f16, as many as the pack for others.
WICK_FN constexpr u32 shared_x_bytes(bool of_f16) { return of_f16 ? 32 : 16; }

/// pack_rows: a thread takes kPackEach columns.
struct PackRowsArgs {
  void* out;
  const void* in;
  StridedIndex<1> rows;
  Divider row_threads;
  u32 k;
  i64 k_stride, pitch;
  u32 format, in_format;  ///< OutFormat
};
inline constexpr u32 kPackThreads = 256, kPackEach = 4;
/// find_nonfinite: sets *flag where one of so many packs of eight f16 has an infinity or a NaN.
struct FindNonfiniteArgs {
  u32* flag;
  const void* in;
  u64 packs;
};
/// split_rows. parts: 1 or 2; a row of out has so many times `half` elements.
struct SplitRowsArgs {
  void* out;  ///< f16
  float* scale;
  const void* in;
  StridedIndex<1> rows;
  u32 k;
  i64 k_stride;
  u32 half, parts, in_format;
};
inline constexpr u32 kSplitThreads = 256;

}  // namespace wick::gpu
