#pragma once

// Normal random numbers from uniform random numbers.

#include "wick/math/exp_log.h"
#include "wick/math/fn.h"
#include "wick/math/random.h"
#include "wick/math/trigonometry.h"

namespace wick::math {

/// The Philox stream for tensors; the token sampler uses stream 0.
inline constexpr u64 kTensorStream = 1;

template <class F>
struct NormalPair {
  F a, b;
};

/// Two independent normal numbers of mean 0 and deviation 1 from two uniform numbers in [0, 1). 1 -
/// u is exact and in (0, 1]. Source: G. Box, M. Muller, "A note on the generation of random normal
/// deviates" (1958).
WICK_FN NormalPair<float> normal_pair(float u, float v) {
  const float radius = sqrt(-2.0f * log(1.0f - u));
  const float angle = 0x1.921fb6p2f * v;
  return {radius * cos_of_near(angle), radius * sin_of_near(angle)};
}
WICK_FN NormalPair<double> normal_pair(double u, double v) {
  const double radius = sqrt(-2.0 * log(1.0 - u));
  const double angle = 0x1.921fb54442d18p2 * v;
  return {radius * cos_of_near(angle), radius * sin_of_near(angle)};
}

}  // namespace wick::math
