#pragma once

// The steps of recurrences for one element of a state. docs/design/numerics/recurrence.md gives the
// order in which kernels apply them.

#include "wick/math/exp_log.h"

namespace wick::math {

/// Mamba-2: an element of the state after a row. input = dt · x.
WICK_FN float ssm_state(float s, float decay, float input, float b) {
  return fma(s, decay, input * b);
}

/// The gated delta rule: what a row writes, from its value v and what the state held for its key.
WICK_FN float delta_change(float v, float held, float beta) { return (v - held) * beta; }

}  // namespace wick::math
