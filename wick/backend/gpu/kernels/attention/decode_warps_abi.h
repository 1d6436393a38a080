#pragma once

// Arguments of decode_warps.gpu, and the layout of its shared memory.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Warps of a thread block, each with a chunk of its own; the most elements of a key or value.
inline constexpr u32 kChunkWarps = 2, kChunkWarpThreads = 64, kChunkWarpWidth = 128;
/// A piece of keys: 64 keys, 128 bytes of each. The pitch avoids bank conflicts.
inline constexpr u32 kPieceKeys = 64, kPieceKeyBytes = 128, kPieceKeyPitch = 144;
/// Bytes of a piece; pieces of a warp's ring buffer.
inline constexpr u32 kWarpPiece = kPieceKeys * kPieceKeyPitch, kWarpPieces = 2;
/// Values of a piece, a power of two; `bytes`: of one value, 16 to 512.
WICK_FN constexpr u32 piece_values(u32 bytes) {
  u32 values = 64;
  while (values * bytes > 8192) values /= 2;
  return values;
}
/// Bytes of shared memory: queries [d][rows], and for each warp exponentials [256][rows] and its
/// ring buffer.
WICK_FN constexpr u32 decode_warps_bytes(u32 rows, u32 d) {
  return 4 * rows * (d + kChunkWarps * kAttentionChunk) + kChunkWarps * kWarpPieces * kWarpPiece;
}
/// The most chunks that a warp with one row combines; other kernels combine more.
inline constexpr u32 kMostOwnChunks = 64;

/// decode_warps_ROWS_DTYPE_WIDE. A warp takes a chunk and ROWS rows of a key head: heads of its
/// group, then queries. WIDE: elements of an output that a lane computes. tiles: sets of rows of a
/// key head. splits: thread blocks for the chunks of a set. arrived: for ROWS of 1, a counter for
/// each set; null: another kernel combines the chunks.
struct DecodeWarpsArgs {
  AttentionCall call;
  AttentionPartials partials;
  u32* arrived;
  u32 tiles, splits;
};

}  // namespace wick::gpu
