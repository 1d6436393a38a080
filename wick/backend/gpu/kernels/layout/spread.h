#pragma once

// Work per thread of elementwise kernels. The host, which computes grids, and the kernels use the
// same numbers.

#include "wick/math/fn.h"

namespace wick::gpu {

/// The most threads in a thread block. Small tensors take smaller blocks, so that more
/// multiprocessors have work.
inline constexpr math::u32 kMapThreads = 256;

/// Elements of a vector: 16 bytes of the wider operand, but at least 4 bytes of the narrower one.
WICK_FN constexpr math::u32 map_vec(math::u32 bytes, math::u32 other_bytes) {
  const math::u32 wide = bytes > other_bytes ? bytes : other_bytes;
  const math::u32 narrow = bytes > other_bytes ? other_bytes : bytes;
  return 16 / wide > 4 / narrow ? 16 / wide : 4 / narrow;
}
/// Elements that a thread computes in vectorized kernels: enough loads in flight, and few enough
/// registers.
WICK_FN constexpr math::u32 map_elems(math::u32 bytes, math::u32 other_bytes) {
  return bytes == 8 || other_bytes == 8 ? 8 : 16;
}
/// Vectors that a thread computes.
WICK_FN constexpr math::u32 map_unroll(math::u32 bytes, math::u32 other_bytes) {
  return map_elems(bytes, other_bytes) / map_vec(bytes, other_bytes);
}
/// Elements that a thread computes in scalar kernels.
inline constexpr math::u32 kMapEach = 4;

/// Units of `unit_bytes` that a thread copies or fills.
WICK_FN constexpr math::u32 copy_unroll(math::u32 unit_bytes) { return unit_bytes == 16 ? 4 : 8; }

/// Neighbouring pairs that rope rotates at once.
WICK_FN constexpr math::u32 rope_pairs(math::u32 bytes) {
  return bytes == 8 ? 2 : bytes == 4 ? 4 : 8;
}

/// Neighbouring values of a quantised block that a thread writes.
inline constexpr math::u32 kBlockPart = 8;

}  // namespace wick::gpu
