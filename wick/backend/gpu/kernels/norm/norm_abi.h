#pragma once

// Arguments of the kernels of norms and softmax. Pointers point to elements of the dtype in a
// kernel's name.

#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"

namespace wick::gpu {

/// Weights of the norm's dtype, or of f32, `step` elements apart.
struct Weights {
  const void* data;
  i64 step;
  u32 f32;
};

/// The most threads of a thread block of rms_norm_DTYPE_PACKS; on AMD, where the threads share the
/// weights, kSharingThreads.
inline constexpr u32 kNormThreads = 512, kSharingThreads = 1024;
/// The most threads of a thread block of rms_norm_row.
inline constexpr u32 kNormRowThreads = 1024;
/// Threads of a thread block of the strided kernels and of softmax_short.
inline constexpr u32 kNormLineThreads = 256;
/// The most chunks of a row of rms_norm_row_long.
inline constexpr u32 kRowChunks = 4;
/// Rows that a thread holds in registers, if it holds `steps` vectors of each: several if they are
/// short.
WICK_FN constexpr u32 held_rows(u32 steps) { return steps == 1 ? 2 : 1; }

/// rms_norm_DTYPE_PACKS and rms_norm_DTYPE_by_f32_PACKS: dense rows, vectors are aligned.
struct RmsNormArgs {
  void* out;
  const void *in, *weight;
  NormRows rows;
  float eps;
};
/// rms_norm_row_short and rms_norm_row_long: rows of n f32; a thread block takes a row.
struct RmsNormRowArgs {
  float* out;
  const float* in;
  StridedIndex<2> rows;
  const float* weight;
  u32 n;
  Spread out_spread, in_spread, weight_spread;
  float eps;
};
/// rms_norm_strided_DTYPE: rows of any length and layout.
struct RmsNormStridedArgs {
  void* out;
  const void* in;
  Weights weights;
  NormRows rows;
  float eps;
};

/// softmax_DTYPE_PACKS, softmax_anywhere_DTYPE_PACKS and softmax_strided_DTYPE. log: not 0 for
/// log_softmax.
struct SoftmaxArgs {
  void* out;
  const void* in;
  NormRows rows;
  u32 log;
};
/// softmax_cluster_DTYPE: a cluster of `cluster` thread blocks shares a row.
struct SoftmaxClusterArgs {
  void* out;
  const void* in;
  NormRows rows;
  u32 log, cluster;
};
/// softmax_columns_DTYPE. in_row, out_row: elements from one row to the next.
struct SoftmaxColumnsArgs {
  void* out;
  const void* in;
  Columns columns;
  i64 in_row, out_row;
  u32 log;
};
/// softmax_short_DTYPE_ROWS: columns of at most ROWS rows.
struct SoftmaxShortArgs {
  void* out;
  const void* in;
  Columns columns;
  u32 in_row, out_row, log;
};

}  // namespace wick::gpu
