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

namespace detail {

/// log(x) for 2^-126 ≤ x ≤ 1, with log's bits.
WICK_FN float log_of_unit(float x) {
  const u32 b = f32_bits(x) - kLogLowF32;
  const float k = static_cast<float>(static_cast<i32>(b) >> 23);
  return log_sum(k, bits_f32((b & 0x007fffffu) + kLogLowF32) - 1.0f);
}
/// sqrt(x) for ±0 and 2^-96 ≤ x < ∞, with sqrt's bits. On NVIDIA it leaves out the scaling of small
/// numbers.
WICK_FN float sqrt_of_near(float x) {
#if WICK_FN_NVCC_DEVICE
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  const float g = x * y;
  return x == 0.0f ? x : __fmaf_rn(__fmaf_rn(-g, g, x), 0.5f * y, g);
#else
  return sqrt(x);
#endif
}

}  // namespace detail

/// Two independent normal numbers of mean 0 and deviation 1 from two uniform numbers in [0, 1). 1 -
/// u is exact and in (0, 1]. Source: G. Box, M. Muller, "A note on the generation of random normal
/// deviates" (1958).
WICK_FN NormalPair<float> normal_pair(float u, float v) {
  const float radius = detail::sqrt_of_near(-2.0f * detail::log_of_unit(1.0f - u));
  const float angle = 0x1.921fb6p2f * v;
  return {radius * cos_of_near(angle), radius * sin_of_near(angle)};
}
WICK_FN NormalPair<double> normal_pair(double u, double v) {
  const double radius = sqrt(-2.0 * log(1.0 - u));
  const double angle = 0x1.921fb54442d18p2 * v;
  return {radius * cos_of_near(angle), radius * sin_of_near(angle)};
}

}  // namespace wick::math
