#pragma once

// Arguments of decode_rows.gpu, and the layout of its shared memory.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Threads of a thread block; the most elements of a key or value.
inline constexpr u32 kDecodeRowsThreads = 256, kDecodeRowsWidth = 256;
/// Thread blocks that a multiprocessor of an H100 holds at once: four have enough shared memory if
/// they take one or two rows.
WICK_FN constexpr u32 decode_rows_at_once(u32 rows) { return rows > 2 ? 3 : 4; }
/// Pieces of the ring buffer; the most bytes of a piece, without padding.
WICK_FN constexpr u32 decode_rows_pieces(bool amd) { return amd ? 2 : 3; }
inline constexpr u32 kDecodeRowsPiece = 16384;
/// Keys, or values, of a piece: the largest power of two up to 128 that fits.
WICK_FN constexpr u32 decode_rows_keys(u32 width, u32 element_bytes) {
  u32 keys = 128;
  while (keys * width * element_bytes > kDecodeRowsPiece) keys /= 2;
  return keys;
}
/// Bytes from one key or value of a piece to the next. An odd multiple of 16 bytes avoids bank
/// conflicts.
WICK_FN constexpr u32 decode_rows_pitch(u32 width, u32 element_bytes) {
  return (width * element_bytes / 16 | 1) * 16;
}
/// Bytes of a piece, with padding.
WICK_FN constexpr u32 decode_rows_piece(u32 d, u32 e, u32 element_bytes) {
  const u32 k = decode_rows_keys(d, element_bytes) * decode_rows_pitch(d, element_bytes);
  const u32 v = decode_rows_keys(e, element_bytes) * decode_rows_pitch(e, element_bytes);
  return k > v ? k : v;
}
/// Bytes of shared memory: queries [rows][d], scores [rows][256], 16 bytes for the state of each
/// row, and the ring buffer.
WICK_FN constexpr u32 decode_rows_bytes(u32 rows, u32 d, u32 e, u32 element_bytes, bool amd) {
  return rows * (d + kAttentionChunk + 4) * 4 +
         decode_rows_pieces(amd) * decode_rows_piece(d, e, element_bytes);
}

/// decode_rows_ROWS_DTYPE. A thread block takes ROWS rows of a key head: heads of its group, then
/// queries. tiles: thread blocks for the rows of a key head. splits: thread blocks that share the
/// chunks of the same rows.
struct DecodeRowsArgs {
  AttentionCall call;
  AttentionPartials partials;
  u32 tiles, splits;
};

}  // namespace wick::gpu
