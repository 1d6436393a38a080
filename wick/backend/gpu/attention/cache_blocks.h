#pragma once

// KV caches whose pages hold blocks of q8_0 or q4_0 (base/block_pages.h):
// kernels/attention/cache_blocks.gpu.

#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/block_pages.h"

namespace wick::gpu {

/// Pages of blocks as [pages, g, 256, width] with strides in bytes: of keys, from position to
/// position and from one group of 32 elements to the next; of values, from position to position.
ConstView block_view(const ConstView& pages, const BlockPages& of);

/// Backend::store_in_pages for pages of blocks; rows f32.
void store_blocks(Gpu& gpu, const View& pages, const BlockPages& of, const ConstView& rows,
                  const ConstView& tables, const ConstView& positions);

/// The elements of pages of blocks as f16, in memory that lives as long as this object: [pages, g,
/// 256, width]. Only pages that the sequences have are filled.
class ExpandedPages {
 public:
  ExpandedPages(Gpu& gpu, const ConstView& pages, const BlockPages& of,
                const PagedSequences& sequences);
  ConstView view() const;

 private:
  BlockPages of_;
  Scratch memory_;
};

}  // namespace wick::gpu
