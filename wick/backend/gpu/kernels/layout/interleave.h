#pragma once

// Copies between planes and the same elements interleaved, as the host hands them to a kernel.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Some planes of n units each, `plane` apart, whose units lie side by side on the other side.
/// `outer` counts such images.
struct Interleave {
  u32 count = 0, n = 0;
  i64 plane = 0;
  u32 tile = 0;     ///< places that a thread block has, a multiple of 16
  Divider tiles;    ///< of an image
  Divider each;     ///< by `count`
  Divider windows;  ///< by those of 16 bytes that a tile's part of a plane may touch
  StridedIndex<2> outer;
};

/// Most planes; bytes of a tile, the windows' ends included.
inline constexpr u32 kMostPlanes = 32, kInterleaveBytes = 16384;

}  // namespace wick::gpu
