#pragma once

// Where rows of activations go that become blocks of int8.

#include "wick/math/activation.h"

namespace wick::gpu {

/// Rows of blocks of 32, one after another, each padded with dead blocks: d = 0, q = 0. Blocks that
/// share a scale, an aligned number of them, each have it, beside a sum of their own.
struct Blocks {
  math::i8* q;                    ///< [rows][padded · 32]
  math::ActivationScale* scales;  ///< [rows][padded]
  math::u32 padded;               ///< blocks of a row
  math::u32 shared;               ///< blocks that share a scale: 1, or kSharedBlocks in whole rows
};

}  // namespace wick::gpu
