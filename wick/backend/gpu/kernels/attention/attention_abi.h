#pragma once

// Arguments of the kernels of attention and of rotary positions. The host passes them by value.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/layout/copy_map.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"
#include "wick/math/fn.h"
#include "wick/math/orders.h"

namespace wick::gpu {

using math::i32;

/// Keys of a chunk, as in docs/design/numerics/attention.md.
inline constexpr u32 kAttentionChunk = math::kAttentionChunk;

/// Dtypes of queries and results, which kernels distinguish at run time.
enum AttentionDType : u32 { kAttentionBf16 = 0, kAttentionF16 = 1, kAttentionF32 = 2 };

/// Pages of keys and values. Without tables each sequence is contiguous.
struct KeyPages {
  const u32* tables;   ///< [batch, entries]: the page of each run of `keys` positions
  const u32* lengths;  ///< [batch]: keys of each sequence; null: by positions, or all
  i64 table_row, table_step, length_step;
  u32 count;           ///< number of pages
  u32 keys;            ///< keys of a page
  u32 chunks;          ///< chunks of kAttentionChunk keys in a page, if that is a whole number
  i64 k_page, v_page;  ///< elements from one page to the next
  FaultLine* faults;
  u32 note, length_note;  ///< for faults of pages, and of lengths or positions
};

/// Operands and parameters. Strides count elements of [batch, head, query or key, element]. Paged
/// keys have no batch stride.
struct AttentionCall {
  const void *q, *k, *v;
  void* out;
  i64 q_batch, q_head, q_query, q_step;
  i64 k_batch, k_head, k_key, k_step;
  i64 v_batch, v_head, v_key, v_step;
  i64 out_batch, out_head, out_query, out_step;
  /// Positions in device memory, [batch, queries]. Null: the queries are the last ones of the keys.
  const u32* positions;
  KeyPages pages;
  u32 batch, heads, group;  ///< `group` query heads share a key head (GQA)
  u32 queries, keys, d, e;  ///< `keys`: with positions or lengths, the upper bound
  u32 causal, window;       ///< window 0: no window
  float scale, soft_cap;
  u32 dtype;  ///< of q and out
};

/// Threads and tokens of a thread block of fill_cache.
inline constexpr u32 kFillThreads = 256, kFillTokens = 32;

/// Projected rows that cached attention rotates and writes to the caches
/// (Backend::cached_attention).
struct CacheCall {
  const float *qkv, *cos, *sin;
  i64 qkv_row, qkv_step, cos_row, cos_step, sin_row, sin_step;
  void *keys, *values;
  i64 key_head, key_position, key_step, value_head, value_position, value_step;
  const u32* positions;
  KeyPages pages;
  u32 t, each, heads, key_heads, d, e, half;  ///< `each`: rows of a sequence
  /// Number of positions that the page tables and the tables of angles hold.
  u32 limit;
};

/// Partial results of chunks of keys for each row: the largest score, the sum of exponentials, and
/// e elements of output. Rows are [batch, head, query].
struct AttentionPartials {
  float* largest_sum;  ///< [rows, chunks, 2]
  float* out;          ///< [rows, chunks, e]
  u32 chunks;
};

/// How the thread blocks of decode.gpu share the work.
struct DecodePlan {
  /// rows: the most heads of a thread block. tiles: thread blocks for the heads of a key head.
  u32 rows, tiles;
  u32 splits;   ///< thread blocks that share the chunks of the same heads
  u32 fresh;    ///< room for keys that aren't in the cache
  u32 cluster;  ///< thread blocks that share a chunk, a power of two
  /// Slices into which the cluster cuts the elements of the outputs; cluster / slices thread blocks
  /// share the rows.
  u32 slices;
  u32* arrived;  ///< arrival counters, zeros: one for every (batch, query, key head, tile, slice)
  /// Destination of results that are quantised to blocks. If q is null, results go to `out`.
  Blocks blocks;
};

/// attention_ROWS_DTYPE: a thread block takes one of `blocks` blocks of rows, one of `slabs` slabs
/// of the elements of a value, and one of `splits` ranges of chunks.
struct AttentionRowsArgs {
  AttentionCall call;
  AttentionPartials partials;
  u32 blocks, slabs, splits;
};
/// Threads of a thread block; elements of a slab.
inline constexpr u32 kRowsThreads = 256, kRowsWidth = 128;

/// attention_combine and flash_combine: combine partial results.
struct CombineArgs {
  AttentionCall call;
  AttentionPartials partials;
};
inline constexpr u32 kCombineThreads = 128;

/// Masks that are added to the scores, and u8 masks, which hide the keys where they are 0.
enum MaskKind : u32 { kMaskHides = 0, kMaskF32 = 1, kMaskF16 = 2, kMaskBf16 = 3 };

/// Terms that are added to the scores, and the sinks of the heads; they are absent if their pointer
/// is null. Strides count elements of [batch, head, query, key], of the slopes and of the sinks.
struct ScoreBias {
  const void* mask;
  const float *slopes, *sinks;
  i64 mask_batch, mask_head, mask_query, mask_key, slope_step, sink_step;
  u32 kind;  ///< MaskKind
  /// 1: neighbouring keys of the mask are contiguous, and every row begins at a multiple of 4
  /// elements. Kernels of the bound form then load 2 or 4 elements at once.
  u32 vectors;
};
/// attention_bias_ROWS_DTYPE.
struct BiasedRowsArgs {
  AttentionRowsArgs rows;
  ScoreBias bias;
};
/// attention_bias_combine and flash_combine_bias.
struct BiasedCombineArgs {
  CombineArgs rows;
  ScoreBias bias;
};

/// fill_cache_DTYPE. q: the destination of rotated queries; null: they aren't stored.
struct FillCacheArgs {
  CacheCall cache;
  float* q;
};

/// flash_WIDTH_DTYPE. section: key heads whose thread blocks follow one another. alone: thread
/// blocks from this index on take blocks of rows in reverse order, which pairs light thread blocks
/// with heavy ones on a multiprocessor.
struct FlashArgs {
  AttentionCall call;
  CacheCall cache;
  AttentionPartials partials;
  u32 blocks, splits, section, alone;
};
/// flash_bias_WIDTH_DTYPE and flash_mma_bias_WIDTH_DTYPE.
struct BiasedFlashArgs {
  FlashArgs flash;
  ScoreBias bias;
};
/// Threads of a thread block; rows of a thread block; keys of a tile.
inline constexpr u32 kFlashThreads = 128, kFlashRows = 64, kFlashKeys = 64;
/// Keys of a tile of flash.gpu, and tiles of keys and of values in shared memory.
WICK_FN constexpr u32 flash_keys(u32 width) { return width > 128 ? 32 : kFlashKeys; }
WICK_FN constexpr u32 flash_buffers(u32 width) { return width > 128 ? 1 : 2; }
/// Terms of 16 bits into which an element of a query is split.
WICK_FN constexpr u32 flash_terms(bool of_f16) { return of_f16 ? 2 : 3; }
/// Bytes of shared memory: `terms` terms of the queries, the tiles, and an f32 for each row.
WICK_FN constexpr u32 flash_bytes(u32 width, u32 terms) {
  return width * 2 * (terms * kFlashRows + 2 * flash_buffers(width) * flash_keys(width)) +
         kFlashRows * 4;
}

/// flash_mma_WIDTH_DTYPE takes FlashArgs, without `alone`. Threads and rows of a thread block on
/// devices whose waves have `wave` lanes.
WICK_FN constexpr u32 flash_mma_threads(u32 width, u32 wave) {
  return width > 128 && wave == 64 ? 2 * kFlashThreads : kFlashThreads;
}
WICK_FN constexpr u32 flash_mma_rows(u32 width, u32 wave) {
  return width > 128 && wave == 32 ? kFlashRows / 2 : kFlashRows;
}
/// Bytes of shared memory: 128 elements of a tile, `terms` terms of the queries, and for f16 an f32
/// for each row. Queries of more than 128 elements are in registers if waves have 64 lanes.
WICK_FN constexpr u32 flash_mma_bytes(u32 width, u32 terms, u32 wave, bool of_f16) {
  const u32 rows = flash_mma_rows(width, wave), chunk = width > 128 ? 128 : width;
  const u32 query = width * 2 * terms + (of_f16 ? 4 : 0);
  return chunk * 2 * kFlashKeys + (width > 128 && wave == 64 ? 0 : rows * query);
}

/// flash_wgmma_TERMS_WIDTH_DTYPE_TURNED: TERMS is exact or fast; TURNED is 1 if neighbouring keys
/// are contiguous. The maps have dims for elements, keys, key heads, and
/// sequences or pages; that of the queries has elements, heads of a key head, queries, key heads
/// and sequences. copied: 1 if the queries are copied by their map; they then are one term. `alone`
/// of `flash` has no meaning.
struct WgmmaFlashArgs {
  FlashArgs flash;
  CopyMap q, k, v;
  u32 copied;
};
/// flash_wgmma_bias_TERMS_WIDTH_DTYPE_TURNED.
struct BiasedWgmmaFlashArgs {
  WgmmaFlashArgs rows;
  ScoreBias bias;
};
/// The most keys of a tile, and the most tiles of keys and of values in shared memory.
inline constexpr u32 kFlashWgmmaKeys = 128, kFlashWgmmaStages = 2;
WICK_FN constexpr u32 flash_wgmma_keys(u32 width) { return width > 128 ? 64 : kFlashWgmmaKeys; }
/// Beside several terms of queries of 256 elements, there is no memory for a second tile.
WICK_FN constexpr u32 flash_wgmma_stages(u32 width, u32 terms) {
  return width > 128 && terms > 1 ? 1 : kFlashWgmmaStages;
}
/// Warpgroups that multiply, with 64 rows each; another one copies. With heads of 64 elements and
/// exponentials of one term, three fit the registers.
WICK_FN constexpr u32 flash_wgmma_groups(u32 width, bool fast, bool biased) {
  return fast && !biased && width == 64 ? 3 : 2;
}
/// Bytes of shared memory: `terms` terms of the queries, the tiles, the barriers, and an f32 for
/// each row.
WICK_FN constexpr u32 flash_wgmma_bytes(u32 width, u32 rows, u32 terms) {
  return width * 2 *
             (terms * rows + 2 * flash_wgmma_stages(width, terms) * flash_wgmma_keys(width)) +
         (4 * kFlashWgmmaStages + 2) * 8 + rows * 4;
}

/// decode_DTYPE, decode_staged_DTYPE, decode_stream_DTYPE and decode_cluster_DTYPE.
struct DecodeArgs {
  AttentionCall call;
  CacheCall cache;
  DecodePlan plan;
  AttentionPartials partials;
};
/// The sinks of the heads, `step` elements apart.
struct HeadSinks {
  const float* of;
  i64 step;
};
/// decode_sinks_DTYPE and so on.
struct SinkDecodeArgs {
  DecodeArgs rows;
  HeadSinks sinks;
};
inline constexpr u32 kDecodeThreads = 256;
/// Threads of a thread block of decode on AMD's devices: one for each pair of a chunk's keys, and
/// for each pair of heads.
WICK_FN constexpr u32 decode_threads_on_amd(u32 rows) {
  return rows <= 1 ? kDecodeThreads / 2 : kDecodeThreads;
}
/// decode_cluster: clusters of 4 or 8 thread blocks share a chunk. kClusterKeys: the most keys of a
/// chunk that a block takes. kClusterPitch: elements from one row of keys to the next; the padding
/// avoids bank conflicts. kClusterWidth: elements of each value that a block takes.
inline constexpr u32 kClusterKeys = 64, kClusterPitch = kClusterKeys + 8, kClusterWidth = 32;
/// The ring buffer of decode_stream: number of pieces, and bytes of a piece.
inline constexpr u32 kStreamPieces = 4, kStreamPieceBytes = 16384;
/// decode_ring: buffers, bytes in front of them, and bytes of one for heads of `head` elements of
/// 16 bits.
inline constexpr u32 kRingBuffers = 3, kRingBarrierBytes = 128;
WICK_FN constexpr u32 ring_piece_bytes(u32 head) { return head / 2 * kAttentionChunk * 2; }
/// The most heads of a thread block.
inline constexpr u32 kDecodeRows = 4;

/// rope_DTYPE, rope_scalar_DTYPE and rope_interleaved_DTYPE. The operands of the strided index are
/// the output, the input, cosines and sines. The second element of a pair is `out_second` elements
/// behind the first one in the output and `in_second` elements in the input.
struct RopeArgs {
  void* out;
  const void* in;
  const float *cos, *sin;
  StridedIndex<4> strided;
  i64 out_second, in_second;
};

}  // namespace wick::gpu
