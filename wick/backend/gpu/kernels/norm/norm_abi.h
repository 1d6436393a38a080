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

/// The most threads of a thread block of rms_norm_DTYPE_PACKS, layer_norm_DTYPE_PACKS and
/// group_norm_DTYPE_PACKS; on AMD, where the threads share the weights, kSharingThreads.
inline constexpr u32 kNormThreads = 512, kSharingThreads = 1024;
/// The most bytes of weights, or of weights and biases, that the rows of a thread block share.
inline constexpr u32 kMostSharedBytes = 32 << 10;
/// The most threads of a thread block of rms_norm_row.
inline constexpr u32 kNormRowThreads = 1024;
/// Threads of a thread block of the strided kernels and of softmax_short.
inline constexpr u32 kNormLineThreads = 256;
/// Threads of a thread block of rms_norm_warps, and the most elements of its rows.
inline constexpr u32 kNormWarpsThreads = 128, kMostOfWarp = 512;
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
/// A tensor of f32 and its norm.
struct RmsNormTensor {
  float* out;
  const float* in;
  StridedIndex<2> rows;
  const float* weight;
  Spread out_spread, in_spread, weight_spread;
  const float* residual = nullptr;  ///< null: none; otherwise added to the result, in its layout
  Spread residual_spread = {};
};
/// rms_norm_row_short and rms_norm_row_long: rows of n f32; a thread block takes a row.
struct RmsNormRowArgs {
  RmsNormTensor of;
  u32 n;
  float eps;
};
/// rms_norm_warps: rows of n f32 of one or two tensors, n at most kMostOfWarp and a multiple of 4;
/// a warp takes a row. Without a second tensor, its rows.elems is 0.
struct RmsNormWarpsArgs {
  RmsNormTensor of[2];
  u32 n;
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

/// Division by the number of elements of a channel, for any dividend.
struct ChannelDivider {
  Divider near;  ///< for numbers below 2^31
  u64 by = 1;

  ChannelDivider() = default;
  explicit ChannelDivider(u64 divisor)
      : near(static_cast<u32>(divisor >> 31 == 0 ? divisor : 1)), by(divisor) {}
  WICK_FN u64 divide(u64 n) const {
    return (n | by) >> 31 == 0 ? near.divide(static_cast<u32>(n)) : n / by;
  }
};

/// Weights and biases of a norm; absent if their data is null. Row r belongs to group (r +
/// first_group) mod groups. A group has `channels` channels, each of which has a weight and a bias
/// for `each` neighbouring elements of the row. layer_norm has one group, and channels of one
/// element.
struct Affine {
  Weights weight, bias;
  Divider groups;
  u32 first_group = 0;
  u32 channels = 0;
  ChannelDivider each;
};

/// Bytes of the weights and biases that the rows of a thread block of group_norm_DTYPE_PACKS share
/// on AMD.
WICK_FN constexpr u64 channel_numbers_bytes(u64 rows, u32 channels) {
  return rows * channels * 2 * sizeof(float);
}

/// layer_norm_DTYPE_PACKS and layer_norm_DTYPE_by_f32_PACKS: dense rows, vectors are aligned,
/// weights and biases too. group_norm_DTYPE_PACKS: vectors don't cross channels.
/// mean_norm_strided_DTYPE: rows of at most 8 chunks and any layout.
struct MeanNormArgs {
  void* out;
  const void* in;
  Affine affine;
  NormRows rows;
  float eps;
};
/// mean_norm_sums_DTYPE, mean_norm_squares_DTYPE and mean_norm_split_DTYPE: a thread block takes
/// 2^chunks_log chunks of a row. The first two store partial sums of x and of (x − mean)²; the
/// third stores the result.
struct MeanNormSplitArgs {
  void* out;
  const void* in;
  void *sums, *squares;  ///< [rows, blocks] of the compute type
  u32 blocks;            ///< of a row
  Affine affine;
  NormRows rows;
  float eps;
};

/// batch_norm_DTYPE: the output and the input are vectors of 16 bytes, each in a channel. The
/// strided index counts vectors, and `rest` elements follow the last vector.
/// batch_norm_scalar_DTYPE: any layout; the strided index counts elements. Operand 2 of the strided
/// index is the channel, counted from first_channel.
struct BatchNormArgs {
  void* out;
  const void* in;
  StridedIndex<3> strided;
  u32 rest;
  i64 first_channel;
  Weights mean, variance, weight, bias;
  float eps;
};

}  // namespace wick::gpu
