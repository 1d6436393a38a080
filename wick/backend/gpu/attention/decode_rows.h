#pragma once

// Launches kernels/attention/decode_rows.gpu: attention of few queries over keys whose elements are
// contiguous.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// How decode_rows.gpu takes a call.
struct DecodeRowsPlan {
  bool takes = false;  ///< false: the kernel doesn't take the call
  int64_t rows = 1;    ///< rows of a thread block
  int64_t tiles = 1;   ///< thread blocks for the rows of a key head
  int64_t splits = 1;  ///< thread blocks that share the chunks of the same rows
  int64_t shared = 0;  ///< bytes of shared memory
  int64_t blocks = 0;  ///< thread blocks

  /// The kernel takes up to 8 queries, d and e up to 256, keys and values as takes_rows_layout()
  /// describes, and pages of whole chunks. may_split: whether partial results may be stored.
  DecodeRowsPlan(const Gpu& gpu, const AttentionCall& c, DType dtype, bool may_split);
};

/// Launches the kernel. With splits the caller combines `partials`.
void launch_decode_rows(Gpu& gpu, const DecodeRowsPlan& plan, const AttentionCall& c, DType dtype,
                        const AttentionPartials& partials);

}  // namespace wick::gpu
