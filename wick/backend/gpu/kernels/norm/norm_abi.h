#pragma once

// Arguments of the kernels of norms and softmax. Pointers are to elements of the dtype that a
// kernel is named after.

#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"

namespace wick::gpu {

/// Weights of the norm's dtype, or of f32, `step` elements apart.
struct Weights {
  const void* data;
  i64 step;
  u32 f32;
};

/// Threads of a thread block at most: of rms_norm_DTYPE_PACKS, on AMD more, which share the
/// weights; of rms_norm_row; of kernels of lines, and of softmax_short.
inline constexpr u32 kNormThreads = 512, kSharingThreads = 1024;
inline constexpr u32 kNormRowThreads = 1024;
inline constexpr u32 kNormLineThreads = 256;
/// Chunks of a row of rms_norm_row_long at most.
inline constexpr u32 kRowChunks = 4;
/// Rows of a thread of kernels whose threads hold rows, by the packs that it holds of each.
WICK_FN constexpr u32 held_rows(u32 steps) { return steps == 1 ? 2 : 1; }

/// rms_norm_DTYPE_PACKS and rms_norm_DTYPE_by_f32_PACKS: dense rows whose packs are aligned.
struct RmsNormArgs {
  void* out;
  const void *in, *weight;
  NormRows rows;
  float eps;
};
/// rms_norm_row_short and rms_norm_row_long: n elements of f32 a row, a row a thread block.
struct RmsNormRowArgs {
  float* out;
  const float* in;
  StridedIndex<2> rows;
  const float* weight;
  u32 n;
  Spread out_spread, in_spread, weight_spread;
  float eps;
};
/// rms_norm_lines_DTYPE: rows of any length and layout.
struct RmsNormLinesArgs {
  void* out;
  const void* in;
  Weights weights;
  NormRows rows;
  float eps;
};

/// softmax_DTYPE_PACKS, softmax_anywhere_DTYPE_PACKS and softmax_lines_DTYPE. log: not 0 for the
/// logarithm.
struct SoftmaxArgs {
  void* out;
  const void* in;
  NormRows rows;
  u32 log;
};
/// softmax_parts_DTYPE: `parts` neighbouring thread blocks share a row.
struct SoftmaxPartsArgs {
  void* out;
  const void* in;
  NormRows rows;
  u32 log, cluster;
};
/// softmax_columns_DTYPE: rows are so many elements apart.
struct SoftmaxColumnsArgs {
  void* out;
  const void* in;
  Columns columns;
  i64 in_row, out_row;
  u32 log;
};
/// softmax_short_DTYPE_ROWS: columns of up to 8 or 32 rows.
struct SoftmaxShortArgs {
  void* out;
  const void* in;
  Columns columns;
  u32 in_row, out_row, log;
};

}  // namespace wick::gpu
