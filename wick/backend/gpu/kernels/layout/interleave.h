#pragma once

// Arguments of the kernels that interleave channels and that split them (layout transforms).

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// An image has `count` planes of n units each, `plane` units apart; the interleaved side has the
/// `count` units of one place side by side. `outer` counts images.
struct Interleave {
  u32 count = 0, n = 0;
  i64 plane = 0;
  u32 tile = 0;   ///< places of a thread block, a multiple of 16
  Divider tiles;  ///< divides by the tiles of an image
  Divider each;   ///< divides by `count`
  /// Divides by the number of aligned 16-byte windows that a tile's piece of a plane may touch.
  Divider windows;
  StridedIndex<2> outer;
};

/// The most planes; the bytes of a tile, including the ends of its windows.
inline constexpr u32 kMostPlanes = 32, kInterleaveBytes = 16384;

}  // namespace wick::gpu
