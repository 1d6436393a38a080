#pragma once

// group_norm and batch_norm, whose numbers belong to channels instead of elements of a row. Numbers
// here are of the type that computes (A). An absent weight is 1 and an absent bias −0: both leave
// every bit as it is.

#include <cstdint>

#include "wick/backend/cpu/fused/fused_kernels.h"

namespace wick::cpu {

/// Neighbours of a row of group_norm, from its element `first` on.
struct GroupRun {
  const void* x;
  void* y;
  int64_t n, first;
  int64_t pixels;             // elements of a channel
  const void *mean, *scale;   // of the row: one number each
  const void *weight, *bias;  // of its channels, from the first on
  bool stream;
};

/// Elements of batch_norm; steps count elements.
struct ChannelRun {
  const void* x;
  void* y;
  int64_t n, x_step, y_step;
  /// The first element's mean, scale and bias, `apart` numbers from each other; `channel_step`
  /// leads to the next element's: 0 within a channel.
  const void* numbers;
  int64_t apart, channel_step;
  bool stream;
};

struct ChannelNormKernels {
  /// Sums of a dense run that begins with a chunk of its row: one a chunk.
  using Sums = void (*)(const void* x, int64_t n, void* sums);
  /// So, of (x − mean)².
  using Squares = void (*)(const void* x, int64_t n, const void* mean, void* sums);
  using Group = void (*)(const GroupRun& run);
  using Batch = void (*)(const ChannelRun& run);
  Sums sums[kRealDTypeCount];
  Squares squares[kRealDTypeCount];
  Group group[kRealDTypeCount];
  Batch batch[kRealDTypeCount];
};

using math::kSumChunk;

WICK_DECLARE_KERNELS(ChannelNormKernels, channel_norm_kernels)

}  // namespace wick::cpu
