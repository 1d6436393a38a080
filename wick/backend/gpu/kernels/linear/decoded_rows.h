#pragma once

// Reads values of weights that are decoded to f32, from rows in file layout.

#include "wick/backend/gpu/kernels/linear/decode_eight.h"
#include "wick/backend/gpu/kernels/linear/quantized.h"

namespace wick::gpu {

/// A weight of `rows` rows of k values, which are whole blocks of a format: a number of quants.def.
/// The format is a variable, not a type, so that one kernel serves all formats; all threads take
/// the same branch.
struct DecodedRows {
  const void* first;
  u32 format, rows, k;

  /// Decodes kDecodedPart neighbouring values of a row; `at` is a multiple of kDecodedPart.
  WICK_DEVICE void decode(u32 row, u32 at, float (&w)[kDecodedPart]) const {
    switch (format) {
#define WICK_DECODED_QUANT(name, Type, number, ...) \
  case number:                                      \
    return decode_as<math::Block##Type>(row, at, w);
#include "wick/math/quants_by_products.def"
      default:
        return;
    }
  }

 private:
  template <class Block>
  WICK_DEVICE void decode_as(u32 row, u32 at, float (&w)[kDecodedPart]) const {
    constexpr u32 kValues = math::kBlockValues<Block>;
    const Block& block = static_cast<const Block*>(first)[u64{row} * (k / kValues) + at / kValues];
    decode_eight(block, at % kValues, w);
  }
};

}  // namespace wick::gpu
