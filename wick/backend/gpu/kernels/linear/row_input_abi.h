#pragma once

// Arguments of row_input.h, shared by host and device.

#include "wick/math/activation.h"

namespace wick::gpu {

/// What a gemv does with a row before it quantises it: nothing, rms_norm, or silu of the first half
/// times the second half.
enum class RowStep : math::u32 { plain, rms_norm, silu_mul };

/// Rows of k values in f32, or 2k for silu_mul, that a gemv prepares by itself. k is a multiple of
/// 32; rows, and the norm's weights, are dense and aligned to 16 bytes.
struct RowInput {
  const float* x = nullptr;  ///< null: the gemv takes quantised rows
  const float* weight = nullptr;
  math::i64 row = 0;  ///< distance of rows
  math::u32 k = 0;
  RowStep step = RowStep::plain;
  float eps = 0;
};

/// Bytes of shared memory for a row of k values.
WICK_FN constexpr math::u32 row_bytes(RowStep step, math::u32 k) {
  return k * 4 * (step == RowStep::plain ? 1 : 2) +
         (step == RowStep::rms_norm ? (k + static_cast<math::u32>(math::kSumChunk) - 1) /
                                          static_cast<math::u32>(math::kSumChunk) * 128
                                    : 0);
}

}  // namespace wick::gpu
