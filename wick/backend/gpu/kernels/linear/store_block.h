#pragma once

// Stores of blocks in file layout.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

/// Stores a block at an address that is a multiple of two bytes.
template <class Block>
WICK_DEVICE void store_block(Block* to, const Block& block) {
  if constexpr (WICK_AMD && alignof(Block) == 2) {
    // Clang would merge the stores into word stores, which would be misaligned.
    struct Halves {
      u16 h[sizeof(Block) / 2];
    };
    const Halves halves = __builtin_bit_cast(Halves, block);
#pragma unroll
    for (u32 i = 0; i < sizeof(Block) / 2; ++i) {
      u32 at = i;
      forget(at);
      reinterpret_cast<u16*>(to)[at] = halves.h[i];
    }
  } else {
    *to = block;
  }
}

}  // namespace wick::gpu
