#pragma once

// Searches for the formats of one or two bits without a codebook, and for NVFP4, whose parts have
// 8-bit floats as scales. Few step sizes are tried, because these formats have few levels.
//
// Included by kernel sources, once for each instruction set.

#include "wick/backend/cpu/search/superblock.h"

namespace wick::cpu::WICK_ISA {
namespace {
namespace fit {

/// The scale d of the levels −d and d: Σ w·|x| / Σ w.
template <int n>
float fit_signs(const float* x, const float* w) {
  float sums[n], all[n];
  for (int i = 0; i < n; ++i) {
    sums[i] = w[i] * abs(x[i]);
    all[i] = w[i];
  }
  const float weights = halving_sum<n>(all);
  return weights > 0.0f ? halving_sum<n>(sums) / weights : 0.0f;
}

/// Tries the least-squares scale of the magnitudes above a threshold. products: w·magnitude.
template <int n>
void try_threshold(const float* magnitudes, const float* products, const float* w, float threshold,
                   ScaleFit& best) {
  float sums[n], all[n];
  for (int i = 0; i < n; ++i) {
    const bool above = magnitudes[i] > threshold;
    sums[i] = above ? products[i] : 0.0f;
    all[i] = above ? w[i] : 0.0f;
  }
  offer(halving_sum<n>(sums), halving_sum<n>(all), best);
}

/// The scale d of the levels −d, 0 and d.
template <int n>
float fit_ternary(const float* x, const float* w) {
  float magnitudes[n], products[n];
  for (int i = 0; i < n; ++i) {
    magnitudes[i] = abs(x[i]);
    products[i] = w[i] * magnitudes[i];
  }
  const float largest = magnitude_of<n>(x), mean = fit_signs<n>(x, w);
  // Starts from the mean, and for values with outliers from the largest one.
  ScaleFit best = {largest, 0.0f};
  for (const float threshold : {0.5f * largest, 0.6f * mean, mean}) {
    try_threshold<n>(magnitudes, products, w, threshold, best);
  }
  for (int i = 0; i < 3; ++i) {
    const float before = best.scale;
    try_threshold<n>(magnitudes, products, w, 0.5f * before, best);
    if (best.scale == before) break;
  }
  return best.scale;
}

/// The scale, of either sign, of the levels −1, 0, 1 and 2.
template <int n>
float fit_two_bits(const float* x, const float* w) {
  using Levels = Integers<-1, 2>;
  const Range range = range_of<n>(x);
  const float largest = -range.low > range.high ? range.low : range.high;
  ScaleFit best = {largest * 0.5f, 0.0f};
  for (const float target : {2.0f, 2.6f, -1.0f, -1.6f}) {
    try_scale<Levels, n>(x, w, target * finite_recip(largest), best);
  }
  for (int i = 0; i < 2; ++i) {
    const float before = best.scale;
    try_scale<Levels, n>(x, w, finite_recip(before), best);
    if (best.scale == before) break;
  }
  return best.scale;
}

/// Twice the values of e2m1: 0, 1, 2, 3, 4, 6, 8 and 12, and their negatives.
struct DoubledE2m1 {
  static float nearest(float x) {
    const float a = abs(x);
    float y = a > 0.5f ? 1.0f : 0.0f;
    y = a > 1.5f ? 2.0f : y;
    y = a > 2.5f ? 3.0f : y;
    y = a > 3.5f ? 4.0f : y;
    y = a > 5.0f ? 6.0f : y;
    y = a > 7.0f ? 8.0f : y;
    y = a > 10.0f ? 12.0f : y;
    return x < 0.0f ? -y : y;
  }
  /// The four bits of a value that `nearest` returned.
  static math::u8 code(float y) {
    const float a = abs(y);
    int code = 0;
    for (const float from : {1.0f, 2.0f, 3.0f, 4.0f, 6.0f, 8.0f, 12.0f}) code += a >= from ? 1 : 0;
    return static_cast<math::u8>(code + (y < 0.0f ? 8 : 0));
  }
};

/// The e4m3 nearest to x, between its smallest value above 0 and 448.
inline int nearest_e4m3(float x) {
  if (!(x > 0x1p-6f)) return x > 0x1p-8f ? static_cast<int>(x * 512.0f + 0.5f) : 1;
  const int bits = static_cast<int>((math::f32_bits(x) + (1u << 19)) >> 20) - (120 << 3);
  return bits > 126 ? 126 : bits;
}

/// The e4m3 scale of 16 values of e2m1, among the nearest code for which the largest value is 6,
/// the last level, the five codes above it and the eighth. levels: doubled.
inline math::u8 fit_e4m3(const float* x, const float* w, float* levels) {
  for (int i = 0; i < 16; ++i) levels[i] = 0.0f;
  const float largest = magnitude_of<16>(x);
  if (!(largest > 0.0f)) return 0;
  const int nearest = nearest_e4m3(largest * (1.0f / 6.0f));
  float least = 0.0f;
  int best = -1;
  for (const int above : {0, 1, 2, 3, 4, 5, 8}) {
    const int code = nearest + above;
    if (code > 126) break;
    const float scale = math::half_of_e4m3(static_cast<math::u32>(code));
    float q[16];
    round_all<DoubledE2m1, 16>(x, 0.0f, 1.0f / scale, q);
    const float error = error_of<16>(x, w, q, scale, 0.0f);
    if (best >= 0 && !(error < least)) continue;
    least = error;
    best = code;
    for (int i = 0; i < 16; ++i) levels[i] = q[i];
  }
  return static_cast<math::u8>(best);
}

}  // namespace fit
}  // namespace
}  // namespace wick::cpu::WICK_ISA
