#pragma once

// Least-squares fits of block formats to values with weights: which scale, or line, has the
// smallest Σ w·(value − x)² over some values that share it. Each fit tries a grid of step sizes,
// solves for the best scale of each rounding, and refines the best one. Sums are added in a fixed
// order, so all instruction sets give the same blocks.
//
// Included by kernel sources, once for each instruction set.

#include "wick/backend/cpu/isa.h"
#include "wick/math/quants.h"

namespace wick::cpu::WICK_ISA {
namespace {
namespace fit {

using math::abs;
using math::detail::finite_recip;
using math::detail::halving_sum;

// Sets of levels. step(end) is the distance between the levels, near the first or the last one,
// that fits try for the largest value.

/// A step for tables, which have about 8 entries on each side of 0: a tenth of their distance.
inline float eightieth(float end) { return abs(end) / 8.0f * 0.1f; }

/// The integers low … high.
template <int low, int high>
struct Integers {
  static constexpr float kFirst = low, kLast = high;
  static float step(float) { return 0.1f; }
  static float nearest(float x) { return math::detail::to_level(x, kFirst, kLast); }
};

/// All integers of 8 bits. Steps of 0.1 would cover 1 % of the range; with steps of an 80th, which
/// cover 15 %, the errors of q6_k are 0.1 to 0.4 % smaller.
struct Bytes : Integers<-128, 127> {
  static float step(float end) { return eightieth(end); }
};

/// The nearest entry of a table in ascending order. `Table::kValues` has the entries.
template <class Table>
struct Entries {
  static constexpr int kCount = Table::kCount;
  static constexpr float kFirst = Table::kValues[0], kLast = Table::kValues[kCount - 1];
  static float step(float end) { return eightieth(end); }
  static float nearest(float x) {
    float y = kFirst;
    for (int i = 1; i < kCount; ++i) {
      const float middle = (Table::kValues[i - 1] + Table::kValues[i]) * 0.5f;
      y = x > middle ? Table::kValues[i] : y;
    }
    return y;
  }
};
struct NormalTable {
  static constexpr int kCount = 16;
  static constexpr const float* kValues = math::kNormalCode.values;
};
/// e2m1 without its second zero.
struct E2m1Table {
  static constexpr int kCount = 15;
  static constexpr float kValues[kCount] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
};

/// Σ a·b·w over n values.
template <int n>
float weighted_dot(const float* a, const float* b, const float* w) {
  float t[n];
  for (int i = 0; i < n; ++i) t[i] = a[i] * b[i] * w[i];
  return halving_sum<n>(t);
}

/// Rounds x to levels: level ≈ (x + minimum)·inverse.
template <class Levels, int n>
void round_all(const float* x, float minimum, float inverse, float* q) {
  for (int i = 0; i < n; ++i) q[i] = Levels::nearest((x[i] + minimum) * inverse);
}

/// Σ w·(scale·q − minimum − x)². Unlike math::detail::squared_error, it needs no fma, which is a
/// call on processors of x86-64-v2.
template <int n>
float error_of(const float* x, const float* w, const float* q, float scale, float minimum) {
  float t[n];
  for (int i = 0; i < n; ++i) {
    const float e = scale * q[i] - minimum - x[i];
    t[i] = w[i] * e * e;
  }
  return halving_sum<n>(t);
}

/// The value of largest magnitude.
template <int n>
float largest_of(const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < n; ++i) largest = abs(x[i]) > abs(largest) ? x[i] : largest;
  return largest;
}

/// The largest and the smallest value. Halves are compared, not neighbours, which vectorises.
struct Range {
  float low, high;
};
template <int n>
Range range_of(const float* x) {
  float low[n], high[n];
  for (int i = 0; i < n; ++i) low[i] = high[i] = x[i];
  for (int half = n / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      low[i] = low[i + half] < low[i] ? low[i + half] : low[i];
      high[i] = high[i + half] > high[i] ? high[i + half] : high[i];
    }
  }
  return {low[0], high[0]};
}
/// The largest magnitude.
template <int n>
float magnitude_of(const float* x) {
  const Range range = range_of<n>(x);
  return -range.low > range.high ? -range.low : range.high;
}

/// A scale and how much it removes of Σ w·x²: x·q² / q².
struct ScaleFit {
  float scale = 0.0f, gain = 0.0f;
};
/// Takes the least-squares scale for the sums x·q and q² of one rounding if it is better than the
/// best one.
inline void offer(float xq, float qq, ScaleFit& best) {
  if (!(qq > 0.0f)) return;
  const float gain = xq * xq / qq;
  if (gain > best.gain) best = {xq / qq, gain};
}
/// Tries the least-squares scale of one rounding.
template <class Levels, int n>
void try_scale(const float* x, const float* w, float inverse, ScaleFit& best) {
  float q[n];
  round_all<Levels, n>(x, 0.0f, inverse, q);
  const float qq = weighted_dot<n>(q, q, w), xq = weighted_dot<n>(x, q, w);
  offer(xq, qq, best);
}

/// The scale, of either sign, with which multiples of levels are nearest to x.
template <class Levels, int n>
float fit_scale(const float* x, const float* w) {
  const float largest = largest_of<n>(x);
  if (!(abs(largest) > 0.0f)) return 0.0f;
  ScaleFit best = {largest / Levels::kFirst, 0.0f};
  for (const float anchor : {Levels::kFirst, Levels::kLast}) {
    const float step = Levels::step(anchor);
    for (int i = -12; i <= 12; ++i) {
      const float target = anchor + static_cast<float>(i) * step;
      try_scale<Levels, n>(x, w, target * finite_recip(largest), best);
    }
  }
  for (int i = 0; i < 3; ++i) try_scale<Levels, n>(x, w, finite_recip(best.scale), best);
  return best.scale;
}

/// The same for values and levels of at least 0.
template <class Levels, int n>
float fit_positive(const float* x, const float* w) {
  const float largest = largest_of<n>(x);
  if (!(largest > 0.0f)) return 0.0f;
  ScaleFit best = {largest / Levels::kLast, 0.0f};
  for (int i = -12; i <= 12; ++i) {
    const float target = Levels::kLast + static_cast<float>(i) * 0.1f;
    try_scale<Levels, n>(x, w, target * finite_recip(largest), best);
  }
  for (int i = 0; i < 3; ++i) try_scale<Levels, n>(x, w, finite_recip(best.scale), best);
  return best.scale;
}

/// value = scale·q − minimum.
using Line = math::detail::Fit;

/// The least-squares line through the points (q, x): math::detail::line_of.
template <int n>
Line solve_line(const float* x, const float* w, const float* q, bool any_minimum, Line otherwise) {
  float ones[n], t[n];
  for (int i = 0; i < n; ++i) {
    ones[i] = 1.0f;
    t[i] = w[i];
  }
  const math::detail::LineSums sums = {halving_sum<n>(t), weighted_dot<n>(x, ones, w),
                                       weighted_dot<n>(q, ones, w), weighted_dot<n>(q, q, w),
                                       weighted_dot<n>(x, q, w)};
  return math::detail::line_of(sums, any_minimum, otherwise);
}

/// The line with levels 0 … count that is nearest to x. If a negative minimum isn't allowed, values
/// above 0 are measured from 0.
template <int count, int n>
Line fit_line(const float* x, const float* w, bool any_minimum) {
  using Levels = Integers<0, count>;
  float low = x[0], high = x[0];
  for (int i = 1; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  if (!any_minimum && low > 0.0f) low = 0.0f;
  if (!(high > low)) return {0.0f, -low};
  float q[n];
  Line best = {(high - low) / count, -low};
  round_all<Levels, n>(x, best.minimum, finite_recip(best.scale), q);
  float least = error_of<n>(x, w, q, best.scale, best.minimum);
  const auto take = [&](Line from) {
    round_all<Levels, n>(x, from.minimum, finite_recip(from.scale), q);
    const Line line = solve_line<n>(x, w, q, any_minimum, from);
    if (!(line.scale > 0.0f)) return;
    round_all<Levels, n>(x, line.minimum, finite_recip(line.scale), q);
    const float error = error_of<n>(x, w, q, line.scale, line.minimum);
    if (error < least) {
      least = error;
      best = line;
    }
  };
  for (int i = -12; i <= 9; ++i) {
    const float steps = count + static_cast<float>(i) * 0.1f;
    take({(high - low) / steps, -low});
  }
  // Lines whose ends lie inside the range: few levels gain from it.
  if (count < 8) {
    for (const float cut : {0.06f, 0.12f}) {
      const float range = (high - low) * (1.0f - 2.0f * cut), from = low + (high - low) * cut;
      if (any_minimum || from <= 0.0f) take({range / count, -from});
    }
  }
  for (int i = 0; i < 3; ++i) take(best);
  return best;
}

}  // namespace fit
}  // namespace
}  // namespace wick::cpu::WICK_ISA
