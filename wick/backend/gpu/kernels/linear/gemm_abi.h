#pragma once

// Arguments of the gemm kernels of floats and integers, and the sizes of tiles and of shared memory
// that the host and the kernels share.

#include "wick/backend/gpu/kernels/layout/copy_map.h"
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
  u32 fours = 0;  ///< not 0: out and residual may be accessed four columns at a time
  u32 first = 0;  ///< the matrix of the batch that the first thread blocks take
  /// Products of parts of one gemm's k are a batch: the last of every `parts` matrices has
  /// `shorter` k less than the others. gemm.gpu and gemm_mma.gpu take it.
  u32 parts = 1, shorter = 0;
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

/// gemm_A and gemm_A_B of gemm.gpu, gemm_DTYPE of gemm_small_m.gpu, few_rows_DTYPE_ROWS of
/// gemm_few_rows.gpu.
struct GemmArgs {
  void* out;
  const void *a, *b;
  Gemm shape;
};
/// gemm_DTYPE_TILE of gemm_mma.gpu; gemm_DTYPE_ROWS_KIND of gemm_skinny.gpu.
struct MatrixGemmArgs {
  void* out;
  const void *a, *b;
  Gemm shape;
  MatrixRows rows;
};
/// gemm_DTYPE_COLUMNS_LAYOUTS of gemm_wgmma.gpu.
struct WgmmaGemmArgs {
  CopyMap map_a, map_b;
  void* out;
  Gemm shape;
  u32 k_of_b;                ///< b repeats with this period along k
  u32 batched_a, batched_b;  ///< 0: all matrices of the batch have the same operand, otherwise 1
  u32 tiles;
};
/// gemv_DTYPE of gemv_float.gpu. format: OutFormat of x.
struct FloatGemvArgs {
  void* out;
  const void *x, *weights;
  Gemm shape;
  u32 format;
};
/// gemv_DTYPE_ROWS of gemv_stream.gpu. ahead: bytes of the weights that a thread block prefetches
/// before it waits for preceding kernels.
struct StreamGemvArgs {
  void* out;
  const void *x, *weights;
  Gemm shape;
  u32 format, ahead;
};

/// gemm.gpu and gemm_mma.gpu: threads of a thread block; side of the small and of the large tile.
inline constexpr u32 kLoopThreads = 256, kSmallTile = 64, kLargeTile = 128;
/// Columns of a tile of gemm_f32_large on devices with asynchronous copies to shared memory. On
/// other devices the tile has kLargeTile columns. It has kLargeTile rows on all devices.
inline constexpr u32 kLargeColumns = 256;
/// The most rows of a that gemv_stream.gpu, gemv_float.gpu and gemm_small_m.gpu take at once.
inline constexpr u32 kRowsAtOnce = 8;
/// gemm_small_m.gpu: threads of a thread block; columns of the result that it takes.
inline constexpr u32 kSmallMThreads = 512, kSmallMColumns = 32;
/// gemm_few_rows.gpu: threads of a thread block; columns of the result that it takes; the most rows
/// for f32 and for 16 bits.
inline constexpr u32 kFewRowsThreads = 512, kFewRowsColumns = 32;
inline constexpr u32 kMostFewRowsOfF32 = 16, kMostFewRowsOfHalves = 8;
/// gemm_skinny.gpu: threads of a thread block; columns of the result that it takes.
inline constexpr u32 kSkinnyThreads = 256, kSkinnyColumns = 32;
/// gemm_wgmma.gpu: threads of a thread block; rows of its tile; bytes of the pipeline stages;
/// further bytes of shared memory, for alignment and for barriers.
inline constexpr u32 kWgmmaThreads = 384, kWgmmaRows = 128;
inline constexpr u32 kWgmmaStageBytes = 192 << 10, kWgmmaBesides = 1024 + 256;
/// gemv_stream.gpu: the most threads of a thread block.
inline constexpr u32 kStreamThreads = 512;
/// gemv_float.gpu: the most threads of a thread block; the threads that it is launched with; rows
/// of b that a warp takes.
inline constexpr u32 kFloatGemvMost = 512, kFloatGemvThreads = 128, kFloatGemvRows = 4;
/// Bytes of shared memory for the activations that belong to a 16-byte vector of weights, in f32,
/// or in bf16 for bf16 weights (shared_x.h).
WICK_FN constexpr u32 shared_x_bytes(bool of_f16) { return of_f16 ? 32 : 16; }

/// pack_rows. A thread takes kPackEach columns. Row i of out is row tokens[i] of in, or row i if
/// tokens is null.
struct PackRowsArgs {
  void* out;
  const void* in;
  const u32* tokens;
  u32 count;             ///< rows of out
  StridedIndex<1> rows;  ///< of in
  Divider row_threads;
  u32 k;
  i64 k_stride, pitch;
  u32 format, in_format;  ///< OutFormat
};
inline constexpr u32 kPackThreads = 256, kPackEach = 4;
/// find_nonfinite: sets *flag to 1 if one of `packs` vectors of eight f16 has an infinity or a NaN.
struct FindNonfiniteArgs {
  u32* flag;
  const void* in;
  u64 packs;
};
/// split_rows. parts: terms of an element, 1 or 2. A row of out has `parts` times `half` elements.
/// tokens: as in PackRowsArgs.
struct SplitRowsArgs {
  void* out;  ///< f16
  float* scale;
  const void* in;
  const u32* tokens;
  StridedIndex<1> rows;
  u32 k;
  i64 k_stride;
  u32 half, parts, in_format;
};
inline constexpr u32 kSplitThreads = 256;

}  // namespace wick::gpu
