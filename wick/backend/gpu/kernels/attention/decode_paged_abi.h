#pragma once

// Arguments of decode_paged.gpu, and the layout of its shared memory.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Query heads of a thread block. They share a key head.
inline constexpr u32 kPagedHeads = 4;
/// The most chunks that the thread blocks of a cluster share: each lane of a warp holds the factors
/// of one chunk.
inline constexpr u32 kMostSharedChunks = 32;

/// decode_paged_SIZE: one query for each sequence; SIZE is d and e. Strides count elements.
struct PagedArgs {
  const float *qkv, *cos, *sin;  ///< rows are contiguous
  const u32 *positions, *tables;
  math::u16 *k, *v;  ///< f16; k is contiguous along keys, v along elements
  i64 k_page, v_page;
  u32 qkv_row, cos_row, sin_row, table_row;
  u32 k_head, k_step, v_head, v_key;
  u32 heads, key_heads;
  u32 tiles;  ///< thread blocks (or clusters) for the heads of a key head
  u32 half;   ///< pairs of elements that are rotated
  u32 limit;  ///< upper bound of positions
  u32 pages, sequences;
  u32 log_splits;  ///< log2 of the thread blocks of a cluster, which share chunks
  float scale;
  float *out;  ///< [sequences, heads, SIZE]; used if blocks.q is null
  i64 out_row, out_head, out_step;
  Blocks blocks;
  FaultLine *faults;
  u32 note, length_note;
};

/// Offsets in the shared memory of a thread block, in bytes.
template <u32 kSize>
struct PagedPlaces {
  static constexpr u32 kQueries = 0;                                            // f32 [4][kSize]
  static constexpr u32 kScores = kQueries + kPagedHeads * kSize * 4;            // f32 [4][256]
  static constexpr u32 kWeights = kScores + kPagedHeads * kAttentionChunk * 4;  // f32 [4][256]
  static constexpr u32 kSoft = kWeights + kPagedHeads * kAttentionChunk * 4;    // f32 [4][2]
  static constexpr u32 kKeys = kSoft + kPagedHeads * 2 * 4;                     // f16 [kSize][256]
  static constexpr u32 kValues = kKeys + kSize * kAttentionChunk * 2;           // f16 [256][kSize]
  static constexpr u32 kKept = kValues + kAttentionChunk * kSize * 2;
  /// Partial results of a chunk, in a cluster: outputs, then largest scores and sums.
  static constexpr u32 kKeptOutputs = kPagedHeads * kSize * 4;
  static constexpr u32 kKeptBytes = kKeptOutputs + kPagedHeads * 2 * 4;
};

}  // namespace wick::gpu
