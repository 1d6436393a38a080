#pragma once

// Reads values of weights that are decoded to f32, from rows in file layout.

#include "wick/backend/gpu/kernels/linear/decode_eight.h"
#include "wick/backend/gpu/kernels/linear/quantized.h"

namespace wick::gpu {

/// A weight of `rows` rows of k values, which are whole blocks.
template <class Block>
struct DecodedRows {
  const void* first;
  u32 rows, k;

  /// Decodes kDecodedPart neighbouring values of a row; `at` is a multiple of kDecodedPart.
  WICK_DEVICE void decode(u32 row, u32 at, float (&w)[kDecodedPart]) const {
    constexpr u32 kValues = math::kBlockValues<Block>;
    const Block& block = static_cast<const Block*>(first)[u64{row} * (k / kValues) + at / kValues];
    decode_eight(block, at % kValues, w);
  }
};

}  // namespace wick::gpu
