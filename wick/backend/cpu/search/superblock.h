#pragma once

// The search for superblocks: parts of 16 or 32 values, whose scales (and minima) are integer
// multiples of one f16 d (and dmin). First each part is fitted alone, then d is chosen for the
// parts' scales; after that, the integers of each part and d are improved in turns.
//
// Included by kernel sources, once for each instruction set.

#include "wick/backend/cpu/search/fit.h"

namespace wick::cpu::WICK_ISA {
namespace {
namespace fit {

/// Rounds to f16 and clamps to its largest value.
inline float to_f16(float x) {
  const float limit = 65504.0f;
  const float y = x < -limit ? -limit : x > limit ? limit : x;
  return math::to_f32(math::from_f32<math::f16>(y));
}

/// A superblock without minima: value = d·factor·level.
template <int n, int parts>
struct Scaled {
  float d = 0.0f;
  float factors[parts] = {}, levels[n * parts] = {};
};

/// Chooses the factor and the levels of a part for a given d. Factors next to the nearest one are
/// tried, too. Returns Σ w·(error)².
template <class Levels, class Factors, int n>
float choose_factor(const float* x, const float* w, float d, float scale, float* factor,
                    float* levels) {
  const float nearest = Factors::nearest(scale * finite_recip(d));
  float least = 0.0f;
  bool first = true;
  for (int off = -1; off <= 1; ++off) {
    const float f = nearest + static_cast<float>(off);
    if (f < Factors::kFirst || f > Factors::kLast) continue;
    float q[n];
    round_all<Levels, n>(x, 0.0f, finite_recip(d * f), q);
    const float error = error_of<n>(x, w, q, d * f, 0.0f);
    if (!first && !(error < least)) continue;
    first = false;
    least = error;
    *factor = f;
    for (int i = 0; i < n; ++i) levels[i] = q[i];
  }
  return least;
}

/// Σ over all values of a·b·w, part by part.
template <int n, int parts>
float dot_of_parts(const float* a, const float* b, const float* w) {
  float t[parts];
  for (int p = 0; p < parts; ++p) t[p] = weighted_dot<n>(a + n * p, b + n * p, w + n * p);
  return halving_sum<parts>(t);
}

/// The best superblock without minima, with factors from `Factors`.
template <class Levels, class Factors, int n, int parts>
void search_scaled(const float* x, const float* w, Scaled<n, parts>* best) {
  float scales[parts], weights[parts];
  for (int p = 0; p < parts; ++p) {
    scales[p] = fit_scale<Levels, n>(x + n * p, w + n * p);
    float q[n];
    round_all<Levels, n>(x + n * p, 0.0f, finite_recip(scales[p]), q);
    weights[p] = weighted_dot<n>(q, q, w + n * p);
  }
  float d = to_f16(fit_scale<Factors, parts>(scales, weights));
  float least = 0.0f;
  for (int round = 0; round < 4; ++round) {
    Scaled<n, parts> now;
    now.d = d;
    float total = 0.0f;
    for (int p = 0; p < parts; ++p) {
      total += choose_factor<Levels, Factors, n>(x + n * p, w + n * p, d, scales[p],
                                                 &now.factors[p], now.levels + n * p);
    }
    if (round > 0 && !(total < least)) return;
    least = total;
    *best = now;
    float products[n * parts];
    for (int i = 0; i < n * parts; ++i) products[i] = now.factors[i / n] * now.levels[i];
    const float qq = dot_of_parts<n, parts>(products, products, w);
    if (!(qq > 0.0f)) return;
    d = to_f16(dot_of_parts<n, parts>(x, products, w) / qq);
  }
}

/// A superblock with minima: value = d·factor·level − dmin·minimum.
template <int n, int parts>
struct Affine {
  float d = 0.0f, dmin = 0.0f;
  float factors[parts] = {}, minima[parts] = {}, levels[n * parts] = {};
};

/// Chooses the factor, the minimum and the levels of a part for given d and dmin, among the nearest
/// integers and those next to them. Returns Σ w·(error)².
template <int count, int steps, int n>
float choose_line(const float* x, const float* w, float d, float dmin, Line line, float* factor,
                  float* minimum, float* levels) {
  using Steps = Integers<0, steps>;
  const float f0 = Steps::nearest(line.scale * finite_recip(d));
  const float m0 = Steps::nearest(line.minimum * finite_recip(dmin));
  float least = 0.0f;
  bool first = true;
  for (int k = 0; k < 9; ++k) {
    const float f = f0 + static_cast<float>(k % 3 - 1), m = m0 + static_cast<float>(k / 3 - 1);
    if (f < 0.0f || f > steps || m < 0.0f || m > steps) continue;
    float q[n];
    round_all<Integers<0, count>, n>(x, dmin * m, finite_recip(d * f), q);
    const float error = error_of<n>(x, w, q, d * f, dmin * m);
    if (!first && !(error < least)) continue;
    first = false;
    least = error;
    *factor = f;
    *minimum = m;
    for (int i = 0; i < n; ++i) levels[i] = q[i];
  }
  return least;
}

/// The d and dmin with the least error for given integers. Returns `otherwise` if they don't
/// determine them.
template <int n, int parts>
Line solve_units(const float* x, const float* w, const Affine<n, parts>& block) {
  float u[n * parts], v[n * parts];
  for (int i = 0; i < n * parts; ++i) {
    u[i] = block.factors[i / n] * block.levels[i];
    v[i] = block.minima[i / n];
  }
  const float uu = dot_of_parts<n, parts>(u, u, w), vv = dot_of_parts<n, parts>(v, v, w);
  const float uv = dot_of_parts<n, parts>(u, v, w), xu = dot_of_parts<n, parts>(x, u, w);
  const float xv = dot_of_parts<n, parts>(x, v, w);
  const float determinant = uu * vv - uv * uv;
  if (determinant > 1e-6f * uu * vv) {
    const Line line = {(xu * vv - xv * uv) / determinant, (xu * uv - xv * uu) / determinant};
    if (line.scale > 0.0f && line.minimum > 0.0f) return line;
  }
  return {uu > 0.0f ? (xu + block.dmin * uv) / uu : block.d, block.dmin};
}

/// The best superblock with minima: levels 0 … count, factors and minima 0 … steps.
template <int count, int steps, int n, int parts>
void search_affine(const float* x, const float* w, Affine<n, parts>* best) {
  Line lines[parts];
  float scales[parts], minima[parts], of_scales[parts], of_minima[parts];
  for (int p = 0; p < parts; ++p) {
    lines[p] = fit_line<count, n>(x + n * p, w + n * p, false);
    scales[p] = lines[p].scale;
    minima[p] = lines[p].minimum;
    float q[n], t[n];
    round_all<Integers<0, count>, n>(x + n * p, minima[p], finite_recip(scales[p]), q);
    of_scales[p] = weighted_dot<n>(q, q, w + n * p);
    for (int i = 0; i < n; ++i) t[i] = w[n * p + i];
    of_minima[p] = halving_sum<n>(t);
  }
  using Steps = Integers<0, steps>;
  Line units = {to_f16(fit_positive<Steps, parts>(scales, of_scales)),
                to_f16(fit_positive<Steps, parts>(minima, of_minima))};
  float least = 0.0f;
  for (int round = 0; round < 4; ++round) {
    Affine<n, parts> now;
    now.d = units.scale;
    now.dmin = units.minimum;
    float total = 0.0f;
    for (int p = 0; p < parts; ++p) {
      total += choose_line<count, steps, n>(x + n * p, w + n * p, now.d, now.dmin, lines[p],
                                            &now.factors[p], &now.minima[p], now.levels + n * p);
    }
    if (round > 0 && !(total < least)) return;
    least = total;
    *best = now;
    units = solve_units<n, parts>(x, w, now);
    units = {to_f16(units.scale), to_f16(units.minimum)};
  }
}

}  // namespace fit
}  // namespace
}  // namespace wick::cpu::WICK_ISA
