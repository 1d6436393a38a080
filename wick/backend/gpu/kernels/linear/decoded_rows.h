#pragma once

// Reads values of weights that are decoded to f32, from rows in file layout.

#include "wick/backend/gpu/kernels/linear/quantized.h"
#include "wick/math/quants.h"

namespace wick::gpu {

/// Neighbouring values that are decoded together.
constexpr u32 kDecodedPart = 8;

/// A weight of `rows` rows of k values, which are whole blocks.
template <class Block>
struct DecodedRows {
  const void* first;
  u32 rows, k;

  /// Decodes kDecodedPart neighbouring values of a row; `at` is a multiple of kDecodedPart.
  WICK_DEVICE void decode(u32 row, u32 at, float (&w)[kDecodedPart]) const {
    constexpr u32 kValues = math::kBlockValues<Block>;
    const Block& block = static_cast<const Block*>(first)[u64{row} * (k / kValues) + at / kValues];
#pragma unroll
    for (u32 i = 0; i < kDecodedPart; ++i) {
      u32 j = at % kValues + i;
      // Clang would merge the byte loads into word loads, which would be misaligned.
      if constexpr (WICK_AMD) forget(j);
      w[i] = value_of(block, static_cast<int>(j));
    }
  }
};

}  // namespace wick::gpu
