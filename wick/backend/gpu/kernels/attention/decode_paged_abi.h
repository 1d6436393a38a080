#pragma once

// What the host hands to decode_paged.gpu, by value, and how much shared memory a block takes.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Query heads of a block, which share a key head.
inline constexpr u32 kPagedHeads = 4;
/// Chunks at most where blocks of a cluster share them: a lane has one's factors.
inline constexpr u32 kMostSharedChunks = 32;

/// One query of each of some sequences. Strides count elements.
struct PagedArgs {
  const float *qkv, *cos, *sin;  ///< neighbours in memory along a row
  const u32 *positions, *tables;
  math::u16 *k, *v;  ///< f16; neighbouring keys of an element, neighbouring elements of a value
  i64 k_page, v_page;
  u32 qkv_row, cos_row, sin_row, table_row;
  u32 k_head, k_step, v_head, v_key;
  u32 heads, key_heads;
  u32 tiles;  ///< blocks, or clusters, for the heads of a key head
  u32 half;   ///< pairs of elements that are rotated
  u32 limit;  ///< of positions
  u32 pages;
  u32 log_splits;  ///< of the blocks that share a sequence's chunks, a cluster
  float scale;
  float *out;  ///< [sequences, heads, size], where `blocks` has no q
  i64 out_row, out_head, out_step;
  Blocks blocks;
  FaultLine *faults;
  u32 note, length_note;
};

/// Where things lie in a block's shared memory, in bytes.
template <u32 kSize>
struct PagedPlaces {
  static constexpr u32 kQueries = 0;                                            // f32 [4][kSize]
  static constexpr u32 kScores = kQueries + kPagedHeads * kSize * 4;            // f32 [4][256]
  static constexpr u32 kWeights = kScores + kPagedHeads * kAttentionChunk * 4;  // so, exponentials
  static constexpr u32 kSoft = kWeights + kPagedHeads * kAttentionChunk * 4;    // f32 [4][2]
  static constexpr u32 kKeys = kSoft + kPagedHeads * 2 * 4;                     // f16 [kSize][256]
  static constexpr u32 kValues = kKeys + kSize * kAttentionChunk * 2;           // f16 [256][kSize]
  static constexpr u32 kKept = kValues + kAttentionChunk * kSize * 2;
  /// Of a chunk, where several blocks share them: outputs, then largest scores and sums.
  static constexpr u32 kKeptOutputs = kPagedHeads * kSize * 4;
  static constexpr u32 kKeptBytes = kKeptOutputs + kPagedHeads * 2 * 4;
};

}  // namespace wick::gpu
