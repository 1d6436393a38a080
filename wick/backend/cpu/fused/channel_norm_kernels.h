#pragma once

// group_norm and batch_norm, whose weights and biases belong to channels. Numbers here have the
// compute type (A). An absent weight is 1 and an absent bias −0, which change no bit.

#include <cstdint>

#include "wick/backend/cpu/fused/fused_kernels.h"

namespace wick::cpu {

/// Contiguous elements of a row of group_norm, from element `first` on.
struct GroupRun {
  const void* x;
  void* y;
  int64_t n, first;
  int64_t pixels;             // elements of a channel
  const void *mean, *scale;   // one number each, of the row
  const void *weight, *bias;  // of the row's channels, from the first one on
  bool stream;
};

/// A run of batch_norm; steps count elements.
struct ChannelRun {
  const void* x;
  void* y;
  int64_t n, x_step, y_step;
  /// The first element's mean, scale and bias, `apart` numbers from each other. `channel_step`
  /// leads to those of the next element: 0 within a channel.
  const void* numbers;
  int64_t apart, channel_step;
  bool stream;
};

struct ChannelNormKernels {
  /// The sums of the chunks of a dense run, which starts with a chunk of its row.
  using Sums = void (*)(const void* x, int64_t n, void* sums);
  /// The sums of (x − mean)² of the chunks of a dense run.
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
