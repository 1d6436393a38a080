#pragma once

// Arguments of cache_blocks.gpu: pages of a KV cache that hold blocks of q8_0 or q4_0, whose bytes
// wick/base/block_pages.h describes.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Pages of keys, or of values. Strides and steps count bytes.
struct BlockCache {
  math::u8* data;
  i64 page, head;
  u32 by_element;     ///< 1: the layout of keys
  u32 step;           ///< from one group of 32 elements (keys) or position to the next
  u32 heads, blocks;  ///< `blocks`: of a head
};

/// store_blocks_FORMAT: quantises rows f32 [t, heads, 32 · blocks] to pages. Strides count
/// elements.
struct StoreBlocksArgs {
  BlockCache to;
  const float* rows;
  i64 row, head, element;
  const u32* positions;  ///< of the rows, contiguous
  KeyPages pages;
  u32 t, each;  ///< rows in all, and of a sequence
  u32 limit;    ///< number of positions that the page tables hold
};

/// expand_blocks_FORMAT: writes the elements of the pages that sequences have, rounded to f16:
/// [pages, heads, 32 · blocks, 256] (keys), or [pages, heads, 256, 32 · blocks]. The tables have
/// `entries` pages for each sequence.
struct ExpandBlocksArgs {
  BlockCache from;
  void* to;
  KeyPages pages;
  u32 entries;
};
inline constexpr u32 kBlockCacheThreads = 256;
/// Positions of a page.
inline constexpr u32 kBlockPageKeys = 256;

}  // namespace wick::gpu
