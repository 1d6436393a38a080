#pragma once

// Arguments of the kernels of the gradients of norms and softmax. Pointers point to elements of the
// dtype in a kernel's name; those of statistics, sums, means and scales to its compute type.

#include "wick/backend/gpu/kernels/norm/norm_abi.h"

namespace wick::gpu {

/// The most threads of a thread block that holds rows, and of one that sums columns.
inline constexpr u32 kNormGradThreads = 512, kNormColumnThreads = 512;

/// norm_grad_DTYPE_PACKS, norm_grad_DTYPE_by_f32_PACKS and norm_grad_DTYPE_by_channel_PACKS: dense
/// rows, vectors are aligned. norm_grad_strided_DTYPE: rows of any length and layout.
struct NormGradArgs {
  void* out;
  const void *in, *grad;
  void* statistics;
  Affine affine;           ///< without a bias
  NormRows rows;           ///< of x and of the result
  StridedIndex<2> beside;  ///< offsets of the same rows in grad and in statistics
  i64 grad_step;
  u32 grad_packs;  ///< not 0: four neighbours of grad may be loaded at once
  u32 copies;      ///< of a row's numbers in statistics
  i64 second;      ///< from a mean to its scale in statistics
  u32 centred;
  float eps;
};

/// Offsets of the elements that are summed to one result, in x, grad, mean and scale. Dims are
/// outermost first; there are fewer than 2^53 elements.
struct NormLine {
  static constexpr u32 kMaxRank = 8, kOperands = 4;
  u32 rank = 0;
  // The divider of a size above 2^31 is 2^31, which no index below it reaches.
  Divider divider[kMaxRank];
  i64 size[kMaxRank] = {};
  i64 stride[kOperands][kMaxRank] = {};

  WICK_FN void locate(u64 index, i64 (&at)[kOperands]) const {
    for (u32 k = 0; k < kOperands; ++k) at[k] = 0;
    u32 d = rank;
#if defined(__CUDACC__) || defined(__HIP__)
#pragma unroll 1
#endif
    for (; d > 1; --d) {
      const u64 outer = index >> 31 == 0 ? divider[d - 1].divide(static_cast<u32>(index))
                                         : index / static_cast<u64>(size[d - 1]);
      const i64 here = static_cast<i64>(index) - static_cast<i64>(outer) * size[d - 1];
      for (u32 k = 0; k < kOperands; ++k) at[k] += here * stride[k][d - 1];
      index = outer;
    }
    for (u32 k = 0; k < kOperands; ++k) at[k] += static_cast<i64>(index) * stride[k][0];
  }
};

/// norm_columns_DTYPE, norm_wide_columns_DTYPE and norm_rows_DTYPE. Block b of result o gives
/// partial results, [results][blocks] or [outer][blocks][columns].
struct NormSumsArgs {
  void* out;  ///< results, or partial results
  const void *in, *grad;
  const void *mean, *scale;  ///< null: they aren't applied
  // Offsets of each result's first element in x, grad, mean and scale, and of the result. For
  // columns without the innermost kept dim.
  StridedIndex<5> kept;
  i64 step[5];  ///< from one column to the next
  NormLine line;
  u64 n;       ///< elements of a result
  u64 block;   ///< elements of each block but the last
  u32 blocks;  ///< blocks of a result
  u32 columns;
  u32 strips;                 ///< thread blocks along a row of columns
  u32 lanes_log, across_log;  ///< log2 of the threads that share a column, and along the columns
  u32 width_log, chunks_log;  ///< log2 of the threads of a chunk, and of the chunks of a block
  u32 packs;                  ///< not 0: four neighbouring elements may be loaded at once
  u32 partial;                ///< whether partial results are stored
  i64 second;                 ///< from a sum of products to its sum of gradients in out
};

/// softmax_grad_DTYPE_PACKS: dense rows, vectors are aligned. softmax_grad_strided_DTYPE: rows of
/// any length and layout.
struct SoftmaxGradArgs {
  void* out;
  const void *in, *grad;
  NormRows rows;              ///< of y and of the result
  StridedIndex<1> grad_rows;  ///< offsets of the same rows in grad
  i64 grad_step;
  u32 grad_packs, log;
};
/// softmax_grad_by_sums_DTYPE: any layout, with the rows' sums. The operands of the strided index
/// are the result, y, grad and the sums.
struct SoftmaxGradBySumsArgs {
  void* out;
  const void *in, *grad, *sums;
  StridedIndex<4> strided;
  u32 log;
};

}  // namespace wick::gpu
