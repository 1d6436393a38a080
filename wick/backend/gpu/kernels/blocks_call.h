#pragma once

// Where rows of activations go that become blocks of int8.

#include "wick/math/activation.h"

namespace wick::gpu {

/// Rows of blocks of 32, one after another, each padded with dead blocks: d = 0, q = 0.
struct Blocks {
  math::i8* q;                    ///< [rows][padded · 32]
  math::ActivationScale* scales;  ///< [rows][padded]
  math::u32 padded;               ///< blocks of a row
};

}  // namespace wick::gpu
