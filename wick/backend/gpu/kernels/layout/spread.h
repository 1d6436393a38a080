#pragma once

// How elementwise work is spread over threads: numbers that the host, which makes grids, and
// kernels have to agree on.

#include "wick/math/fn.h"

namespace wick::gpu {

/// Threads of a thread block at most; few elements take smaller thread blocks, so that more
/// multiprocessors work.
inline constexpr math::u32 kMapThreads = 256;

/// Neighbouring elements that are loaded and stored at once: 16 bytes of the wider operand, but at
/// least 4 of the narrower.
WICK_FN constexpr math::u32 map_vec(math::u32 bytes, math::u32 other_bytes) {
  const math::u32 wide = bytes > other_bytes ? bytes : other_bytes;
  const math::u32 narrow = bytes > other_bytes ? other_bytes : bytes;
  return 16 / wide > 4 / narrow ? 16 / wide : 4 / narrow;
}
/// Elements that a thread computes: enough loads in flight, few enough registers.
WICK_FN constexpr math::u32 map_elems(math::u32 bytes, math::u32 other_bytes) {
  return bytes == 8 || other_bytes == 8 ? 8 : 16;
}
/// Packs that a thread computes.
WICK_FN constexpr math::u32 map_unroll(math::u32 bytes, math::u32 other_bytes) {
  return map_elems(bytes, other_bytes) / map_vec(bytes, other_bytes);
}
/// Elements that a thread computes where each is found on its own.
inline constexpr math::u32 kMapEach = 4;

/// Units, of so many bytes each, that a thread copies or fills.
WICK_FN constexpr math::u32 copy_unroll(math::u32 unit_bytes) { return unit_bytes == 16 ? 4 : 8; }

/// Neighbouring pairs that rope turns at once.
WICK_FN constexpr math::u32 rope_pairs(math::u32 bytes) {
  return bytes == 8 ? 2 : bytes == 4 ? 4 : 8;
}

/// Neighbouring values of a block that a thread makes.
inline constexpr math::u32 kBlockPart = 8;

}  // namespace wick::gpu
