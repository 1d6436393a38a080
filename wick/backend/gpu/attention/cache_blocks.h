#pragma once

// KV caches whose pages hold blocks of q8_0 or q4_0 (base/block_pages.h):
// kernels/attention/cache_blocks.gpu.

#include <optional>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/block_pages.h"

namespace wick::gpu {

/// Pages of blocks as a view [pages, g, 256, width] whose strides count bytes. Keys: stride 2 is 1,
/// stride 3 leads to the next group of 32 elements. Values: stride 2 leads to the next position,
/// stride 3 is meaningless.
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
  /// The part of view() that holds the elements of v, if the pages v are whole groups of elements
  /// of the pages `pages` that were expanded, as those of latent attention are.
  std::optional<ConstView> part(const ConstView& pages, const ConstView& v,
                                const BlockPages& of_v) const;

 private:
  BlockPages of_;
  Scratch memory_;
};

}  // namespace wick::gpu
