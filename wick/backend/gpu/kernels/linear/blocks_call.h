#pragma once

// The destination of activations that are quantised to int8 blocks.

#include "wick/math/activation.h"

namespace wick::gpu {

/// Rows of blocks of 32 values. Each row is padded with blocks of zeros (d = 0, q = 0). Aligned
/// runs of `shared` blocks share a scale; each block of a run stores the scale, and a sum of its
/// own.
struct Blocks {
  math::i8* q;                    ///< [rows][padded · 32]
  math::ActivationScale* scales;  ///< [rows][padded]
  math::u32 padded;               ///< blocks of a row, including the padding
  /// Blocks that share a scale: 1, or kSharedBlocks for all blocks of the rows.
  math::u32 shared;
  /// Not 0: instead of its sum, a block stores the sums of its halves as two int16. Only for blocks
  /// that share a scale.
  math::u32 halves;
};

}  // namespace wick::gpu
