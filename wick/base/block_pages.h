#pragma once

// Pages of a KV cache whose elements are quantised to blocks of 32 (q8_0, q4_0): how their bytes
// lie in tensors of u8. B is the number of bytes of a block: a scale of f16, and then quants.
//
// Keys, [pages, g, d/32, B, 256]: the blocks of the 256 positions of a page are interleaved,
// because kernels vectorise along positions. The first 512 bytes of a group of 256 blocks are their
// scales; then byte i of the quants of all 256 blocks follows, for each i.
//
// Values, [pages, g, 256, e/32, B]: the blocks of a position follow one another, as in a file.

#include <cstdint>
#include <optional>

#include "wick/base/dtype.h"
#include "wick/base/shape.h"

namespace wick {

namespace dtypes {
/// kCacheBlocks: the block dtypes of KV caches. kCaches: all dtypes of KV caches.
inline constexpr DTypeSet kCacheBlocks = DTypeSet::of(DType::q8_0, DType::q4_0);
inline constexpr DTypeSet kCaches = kActivations | kCacheBlocks;
}  // namespace dtypes

/// What the dtype and the shape of a page tensor say.
struct BlockPages {
  static constexpr int64_t kPositions = 256;  ///< positions of a page
  static constexpr int64_t kValues = 32;      ///< values of a block
  static constexpr int64_t kScaleBytes = 2;   ///< bytes of a block's scale

  DType dtype = DType::q8_0;  ///< of the blocks
  bool by_element = false;    ///< the layout of keys; otherwise that of values
  int64_t pages = 0, heads = 0;
  int64_t width = 0;  ///< elements of a head

  int64_t block_bytes() const { return bytes_of(dtype, kValues); }
  /// Bytes from one group of 32 elements to the next (keys), or from one position to the next.
  int64_t step() const {
    return by_element ? block_bytes() * kPositions : width / kValues * block_bytes();
  }

  static Shape keys(DType dtype, int64_t pages, int64_t heads, int64_t width) {
    return {pages, heads, width / kValues, bytes_of(dtype, kValues), kPositions};
  }
  static Shape values(DType dtype, int64_t pages, int64_t heads, int64_t width) {
    return {pages, heads, kPositions, width / kValues, bytes_of(dtype, kValues)};
  }
  /// Nothing if the tensor isn't one of pages of blocks.
  static std::optional<BlockPages> of(DType dtype, const Shape& shape) {
    if (dtype != DType::u8 || shape.rank() != 5) return std::nullopt;
    BlockPages of;
    of.pages = shape[0], of.heads = shape[1];
    of.by_element = shape[4] == kPositions;
    if (!of.by_element && shape[2] != kPositions) return std::nullopt;
    of.width = shape[of.by_element ? 2 : 3] * kValues;
    for (const DType type : {DType::q8_0, DType::q4_0}) {
      of.dtype = type;
      if (shape[of.by_element ? 3 : 4] == of.block_bytes()) return of;
    }
    return std::nullopt;
  }
};

}  // namespace wick
