#pragma once

// Arguments of the kernels of attention's gradients. The host passes them by value.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Operands and results. A row is a query of one head; the rows of a key head are ordered query by
/// query, the query heads of the GQA group side by side. Strides count elements of [batch, head,
/// query or key, element].
struct GradientCall {
  AttentionCall call;  ///< q, k, v and the parameters; `out` isn't used, keys aren't paged
  const void* g;       ///< the gradient of the result, of q's shape with e elements
  void *dq, *dk, *dv;
  i64 g_batch, g_head, g_query, g_step;
  i64 dq_batch, dq_head, dq_query, dq_step;
  i64 dk_batch, dk_head, dk_key, dk_step;
  i64 dv_batch, dv_head, dv_key, dv_step;
  /// [batch, key heads, rows] of RowSums. The first kernel writes them.
  struct RowSums* sums;
};

/// What the softmax of a row needs besides its scores, and the sum that its gradient subtracts.
struct RowSums {
  float largest;  ///< the largest score, in the kernels' unit; 0 if the row sees no key
  float inverse;  ///< the reciprocal of the sum of exponentials; 0 if the row sees no key
  float delta;    ///< Σ weight · (g · v) over the keys
  float limit;    ///< the largest |g · v| over the keys
};

/// sink_gradient: each query's part of the gradient of its head's sink.
struct SinkGradientArgs {
  const RowSums* sums;  ///< [batch, key heads, rows]
  const float* sinks;
  float* out;  ///< [batch, heads, queries]; strides count elements
  i64 sink_step, out_batch, out_head, out_query;
  u64 rows;  ///< of all heads
  u32 heads, group, queries;
};
inline constexpr u32 kSinkGradientThreads = 256;

/// The order of thread blocks. blocks: tiles of rows, or of keys, of a key head. section: so many
/// key heads are taken after one another, so that what their thread blocks stream stays in cache.
struct GradientGrid {
  u32 blocks, section;
};

/// gradient_sums_DTYPE, gradient_queries_DTYPE and gradient_keys_DTYPE. slabs: thread blocks that
/// share the elements of a tile's results.
struct GradientArgs {
  GradientCall of;
  ScoreBias bias;
  GradientGrid grid;
  u32 slabs;
};
/// Rows and keys of a tile, threads of a thread block, and elements of a slab.
inline constexpr u32 kGradientTile = 64, kGradientThreads = 256, kGradientWidth = 128;

/// flash_sums_WIDTH_DTYPE, flash_queries_TERMS_WIDTH_DTYPE and flash_keys_TERMS_WIDTH_DTYPE. TERMS:
/// exact or fast.
struct FlashGradientArgs {
  GradientCall of;
  GradientGrid grid;
};
/// flash_bias_sums_WIDTH_DTYPE and so on, for calls with a soft cap, a mask or slopes.
struct BiasedFlashGradientArgs {
  GradientCall of;
  ScoreBias bias;
  GradientGrid grid;
};
/// Threads of a thread block; the rows, or the keys, that it holds.
inline constexpr u32 kFlashGradientThreads = 128, kFlashGradientTile = 64;
/// Rows or keys of a streamed tile.
WICK_FN constexpr u32 flash_gradient_tile(u32 width) { return width > 128 ? 32 : 64; }
/// Thread blocks of flash_keys_TERMS_WIDTH_DTYPE, or of the other kernels, that share the elements
/// of a tile's results.
WICK_FN constexpr u32 flash_gradient_slabs(u32 width, bool keys) {
  return keys && width > kGradientWidth ? width / kGradientWidth : 1;
}

/// flash_wgmma_sums_WIDTH_DTYPE and so on take the same arguments. Threads of a thread block: 256
/// that multiply and 128 that copy. Rows or keys that a thread block holds, those of a streamed
/// tile, and streamed tiles in shared memory.
inline constexpr u32 kWgmmaGradientThreads = 384, kWgmmaGradientHeld = 128;
inline constexpr u32 kWgmmaGradientTile = 64, kWgmmaGradientStages = 4;
/// Bytes of shared memory: the held tiles, the streamed ones with the sums of their rows, and two
/// barriers for each of them.
WICK_FN constexpr u32 wgmma_gradient_bytes(u32 width) {
  return 2 * kWgmmaGradientHeld * width * 2 +
         kWgmmaGradientStages * kWgmmaGradientTile * (2 * width * 2 + 16) +
         2 * kWgmmaGradientStages * 8;
}

/// flash_mma_sums_WIDTH_DTYPE and so on, AMD's kernels, take the same arguments, and hold as many
/// rows or keys as flash_sums_WIDTH_DTYPE. Rows or keys of a streamed tile.
inline constexpr u32 kMmaGradientTile = 32;
/// Bytes of shared memory: two held tiles, two streamed ones, one of these once more unless the
/// kernel only sums, and the sums of a tile's rows.
WICK_FN constexpr u32 mma_gradient_bytes(u32 width, bool only_sums) {
  const u32 tiles = 2 * kFlashGradientTile + (only_sums ? 2 : 3) * kMmaGradientTile;
  return tiles * width * 2 + (only_sums ? 0 : kMmaGradientTile * 16);
}

/// Terms of 16 bits into which weights and the gradients of scores are split.
inline constexpr u32 kExactTerms = 2, kFastTerms = 1;
/// Bytes of shared memory: two held tiles, and two streamed ones with the sums of their rows, the
/// latter twice up to 128 elements.
WICK_FN constexpr u32 flash_gradient_bytes(u32 width) {
  const u32 buffers = width > 128 ? 1 : 2, tile = flash_gradient_tile(width);
  return 2 * kFlashGradientTile * width * 2 + buffers * tile * (2 * width * 2 + 16);
}

}  // namespace wick::gpu
