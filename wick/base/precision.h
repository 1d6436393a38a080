#pragma once

#include <cstdint>

#include "wick/base/export.h"

namespace wick {

/// What GPUs may round inside an op.
enum class Precision : uint8_t {
  full,  ///< the bounds of docs/design/numerics: f32 operands and sums everywhere
  /// Attention of more than 8 queries with keys of 16 bits rounds queries and exponentials to the
  /// dtype of the keys; gradients of attention round weights and gradients of scores to the
  /// operands' dtype. Vendors' libraries may round the operands of f32 gemms and
  /// convolutions to 11 bits (TF32). Ops of other classes than `bound` don't change.
  fast,
};

/// The setting of the process: that of set_precision, or else WICK_PRECISION, which is read once,
/// or else `full`. Errors: WICK_PRECISION is neither full nor fast.
WICK_API Precision precision();
/// Applies to ops and recordings that begin afterwards, in all threads. Recorded graphs keep the
/// setting with which they were recorded.
WICK_API void set_precision(Precision value);

}  // namespace wick
