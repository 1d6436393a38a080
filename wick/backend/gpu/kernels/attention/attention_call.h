#pragma once

// What the host hands to attention kernels, by value.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"
#include "wick/math/fn.h"
#include "wick/math/orders.h"

namespace wick::gpu {

using math::i32;
using math::i64;
using math::u32;
using math::u64;

/// Keys that are joined at once: the chunks of docs/design/numerics/attention.md.
inline constexpr u32 kAttentionChunk = math::kAttentionChunk;

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

/// Tokens whose keys or values a thread block of fill_cache stores.
inline constexpr u32 kFillTokens = 32;

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
  u32 cluster;      ///< thread blocks that share a chunk, a power of two
  u32 slices;    ///< pieces into which they cut its outputs' elements; parts / slices those of rows
  u32* arrived;  ///< a zero for every (batch, query, key head, tile, part)
  Blocks blocks;  ///< where results go as blocks; without q: to `out`
};

}  // namespace wick::gpu
