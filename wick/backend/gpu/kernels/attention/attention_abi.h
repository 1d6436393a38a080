#pragma once

// Arguments of the kernels of attention and of rotary positions.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"
#include "wick/math/fn.h"

namespace wick::gpu {

using math::i32;

/// Keys that are joined at once: the chunks of docs/design/numerics/attention.md.
inline constexpr u32 kAttentionChunk = 256;

/// dtypes of queries and results, which kernels tell apart as they run.
enum AttentionDType : u32 { kAttentionBf16 = 0, kAttentionF16 = 1, kAttentionF32 = 2 };

/// Where keys and values lie in pages. Without tables every sequence's lie in one piece.
struct KeyPages {
  const u32* tables;   ///< [batch, entries]: the page of each `keys` positions of a sequence
  const u32* lengths;  ///< [batch]: how many keys each has; null: by positions, or all
  i64 table_row, table_step, length_step;
  u32 count;           ///< of pages
  u32 keys;            ///< that a page holds
  u32 chunks;          ///< of kAttentionChunk keys that a page holds, where that is a whole number
  i64 k_page, v_page;  ///< elements from a page to the next
  FaultLine* faults;
  u32 note, length_note;  ///< for pages, and for lengths or positions
};

/// Operands and parameters. Strides count elements; [batch, head, query or key, element]. Keys in
/// pages have no stride from one batch element to the next.
struct AttentionCall {
  const void *q, *k, *v;
  void* out;
  i64 q_batch, q_head, q_query, q_step;
  i64 k_batch, k_head, k_key, k_step;
  i64 v_batch, v_head, v_key, v_step;
  i64 out_batch, out_head, out_query, out_step;
  /// Where on the device the positions are, [batch, queries]; null: queries are the last of the
  /// keys.
  const u32* positions;
  KeyPages pages;
  u32 batch, heads, group;  ///< `thread block` query heads share a key head
  u32 queries, keys, d, e;  ///< `keys`: with positions or lengths the most there may be
  u32 causal, window;       ///< window 0: none
  float scale, soft_cap;
  u32 dtype;  ///< of q and out
};

/// Threads of a thread block of fill_cache, and tokens whose keys or values it stores.
inline constexpr u32 kFillThreads = 256, kFillTokens = 32;

/// Rows that a call of attention computes on their way into the caches (Backend::cached_attention).
struct CacheCall {
  const float *qkv, *cos, *sin;
  i64 qkv_row, qkv_step, cos_row, cos_step, sin_row, sin_step;
  void *keys, *values;
  i64 key_head, key_position, key_step, value_head, value_position, value_step;
  const u32* positions;
  KeyPages pages;
  u32 t, each, heads, key_heads, d, e, half;  ///< `each`: rows of a sequence
  u32 limit;  ///< of positions: what the tables of pages and of angles hold
};

/// What a chunk of keys gave to a row, for the join: the largest score, the sum of exponentials,
/// and e elements of output. Rows count as [batch, head, query].
struct AttentionPartials {
  float* largest_sum;  ///< [rows, chunks, 2]
  float* out;          ///< [rows, chunks, e]
  u32 chunks;
};

/// How the thread blocks of decode.gpu share the work.
struct DecodePlan {
  u32 rows, tiles;  ///< heads that a thread block takes at most; thread blocks for the heads of a
                    ///< key head
  u32 splits;       ///< thread blocks that share the chunks of the same heads
  u32 fresh;        ///< room for keys that aren't in the cache
  u32 partials;     ///< thread blocks that share a chunk, a power of two
  u32 slices;    ///< pieces into which they cut its outputs' elements; parts / slices those of rows
  u32* arrived;  ///< a zero for every (batch, query, key head, tile, part)
  Blocks blocks;  ///< where results go as blocks; without q: to `out`
};

/// attention_ROWS_DTYPE: thread blocks take blocks of rows, slabs of a value's elements, and of the
/// chunks one of so many splits.
struct AttentionRowsArgs {
  AttentionCall call;
  AttentionPartials partials;
  u32 blocks, slabs, splits;
};
/// Threads of a thread block; elements of a value that it takes.
inline constexpr u32 kRowsThreads = 256, kRowsWidth = 128;

/// attention_combine and flash_combine: parts to results.
struct CombineArgs {
  AttentionCall call;
  AttentionPartials partials;
};
inline constexpr u32 kCombineThreads = 128;

/// fill_cache_DTYPE. q: where rotated queries go; null: nowhere.
struct FillCacheArgs {
  CacheCall cache;
  float* q;
};

/// flash_WIDTH_DTYPE. alone: thread blocks that have a multiprocessor of their own at first.
struct FlashArgs {
  AttentionCall call;
  CacheCall cache;
  AttentionPartials partials;
  u32 blocks, splits, alone;
};
/// Threads of a thread block; its rows; keys of a tile.
inline constexpr u32 kFlashThreads = 128, kFlashRows = 64, kFlashKeys = 64;
/// Numbers of 16 bits that a query's elements are split into.
WICK_FN constexpr u32 flash_parts(bool of_f16) { return of_f16 ? 2 : 3; }
/// Shared memory: queries in parts, two tiles each of keys and values, a float a row.
WICK_FN constexpr u32 flash_bytes(u32 width, u32 partials) {
  return width * 2 * (partials * kFlashRows + 4 * kFlashKeys) + kFlashRows * 4;
}

/// decode_DTYPE, decode_staged_DTYPE, decode_stream_DTYPE and decode_parts_DTYPE.
struct DecodeArgs {
  AttentionCall call;
  CacheCall cache;
  DecodePlan plan;
  AttentionPartials partials;
};
inline constexpr u32 kDecodeThreads = 256;
/// Where thread blocks share a chunk there are 4 or 8, and each has so many keys of it at most, a
/// bit apart from the next row for the banks' sake, and 32 elements of values.
inline constexpr u32 kClusterKeys = 64, kClusterPitch = kClusterKeys + 8, kClusterWidth = 32;
/// The ring of decode_stream: pieces, and bytes of each.
inline constexpr u32 kStreamPieces = 4, kStreamPieceBytes = 16384;
/// Heads of a thread block at most.
inline constexpr u32 kDecodeRows = 4;

/// rope_DTYPE, rope_singles_DTYPE and rope_interleaved_DTYPE: the nest has the output, the input,
/// cosines and sines. The other element of a pair is so many elements behind.
struct RopeArgs {
  void* out;
  const void* in;
  const float *cos, *sin;
  StridedIndex<4> strided;
  i64 out_second, in_second;
};

}  // namespace wick::gpu
