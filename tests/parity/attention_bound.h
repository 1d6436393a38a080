#pragma once

// The error bound for attention of many queries, for which a backend may choose the order of
// summation: docs/design/numerics/attention.md.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/powers.h"
#include "wick/backend/backend.h"

namespace wick::parity {

struct AttentionCase {
  int64_t h, g, m, n, d, e;
  AttentionParams params;
  bool key_major = true;  ///< k is stored as [b, g, d, n], as in a cache
  int64_t b = 1;
};

/// Terms that are added to the scores, and sinks.
struct AttentionTerms {
  std::vector<double> mask;    ///< [b, h, m, n] or empty; -inf hides a key
  std::vector<double> slopes;  ///< [h] or empty
  std::vector<double> sinks;   ///< [h] or empty; -inf: none
  double sink(int64_t head) const {
    return sinks.empty() ? -INFINITY : sinks[static_cast<size_t>(head)];
  }
};

/// Returns the distance between a dtype's numbers at x. For denormals this is the distance at the
/// smallest normal number.
inline double ulp_of(DType dtype, double x) {
  const int digits = dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
  const int least = dtype == DType::f16 ? -14 : -126;  // exponent of the smallest normal number
  const int exponent = x == 0 ? least : std::max(test::exponent_of(x), least);
  return static_cast<double>(test::power_of_two(exponent - digits + 1));
}

/// The exact values and their tolerances, row by row, for the data that `attention` receives.
/// rounding, of_queries: the relative errors of exponentials and of queries that are rounded to 16
/// bits, with Precision::fast.
struct AttentionBound {
  std::vector<double> exact, tolerance;
  AttentionBound(const AttentionCase& c, DType dtype, const std::vector<double>& q,
                 const std::vector<double>& k, const std::vector<double>& v,
                 const AttentionTerms& terms = {}, double rounding = 0, double of_queries = 0) {
    for (int64_t row = 0; row < c.b * c.h * c.m; ++row) {
      const int64_t own = row % c.m + c.n - c.m, head = row / c.m % c.h;
      const int64_t g = row / c.m / c.h * c.g + head / (c.h / c.g);
      // added: |slope · distance| + |mask|, whose additions round.
      std::vector<double> scores, added;
      std::vector<int64_t> keys;
      const double sink = terms.sink(head);
      const bool sinks = sink != -INFINITY;
      double off = 0, top = sink;
      for (int64_t j = 0; j < c.n; ++j) {
        if (c.params.causal && j > own) continue;
        if (c.params.window > 0 && j <= own - c.params.window) continue;
        double s = 0, all = 0;
        for (int64_t x = 0; x < c.d; ++x) {
          const auto at = c.key_major ? (g * c.d + x) * c.n + j : (g * c.n + j) * c.d + x;
          const double p = q[static_cast<size_t>(row * c.d + x)] * k[static_cast<size_t>(at)];
          s += p, all += std::abs(p);
        }
        const double scale = double{c.params.scale}, cap = double{c.params.soft_cap};
        s *= scale;
        if (cap > 0) s = cap * std::tanh(s / cap);
        double magnitude = 0;
        if (!terms.slopes.empty()) {
          const double term =
              terms.slopes[static_cast<size_t>(head)] * static_cast<double>(j - own);
          s += term, magnitude += std::abs(term);
        }
        if (!terms.mask.empty()) {
          const double term = terms.mask[static_cast<size_t>(row * c.n + j)];
          if (term == -INFINITY) continue;
          s += term, magnitude += std::abs(term);
        }
        scores.push_back(s), keys.push_back(j), added.push_back(magnitude);
        top = std::max(top, s);
        off = std::max(off, (4 * std::sqrt(static_cast<double>(c.d)) * 0x1p-24 + of_queries) *
                                std::abs(scale) * all);
      }
      const double count = static_cast<double>(keys.size()) + (sinks ? 1 : 0);
      const double share = 2 * off + 4 * std::sqrt(count) * 0x1p-24 + rounding;
      std::vector<double> weights;
      double l = sinks ? std::exp(sink - top) : 0;
      double mean = sinks ? l * std::abs(sink) : 0;  // of `added`
      for (size_t z = 0; z < keys.size(); ++z) {
        weights.push_back(std::exp(scores[z] - top));
        l += weights[z], mean += weights[z] * added[z];
      }
      for (int64_t x = 0; x < c.e; ++x) {
        double o = 0, all = 0, by_terms = 0, small = 0;
        for (size_t z = 0; z < keys.size(); ++z) {
          const double value = v[static_cast<size_t>((g * c.n + keys[z]) * c.e + x)];
          o += weights[z] * value, all += weights[z] * std::abs(value);
          by_terms += weights[z] * std::abs(value) * (added[z] + mean / l) * 0x1p-23;
          if (sinks && weights[z] < 0x1p-126 * l) small += std::abs(value) * 0x1p-126;
        }
        const double y = keys.empty() ? 0 : o / l;
        exact.push_back(y);
        const double relative = (all * (share + 0x1p-22) + by_terms) / l;
        tolerance.push_back(keys.empty() ? 0 : ulp_of(dtype, y) / 2 + relative + small);
      }
    }
  }
  /// Returns the first index that exceeds its tolerance, or -1.
  int64_t beyond(const std::vector<double>& got) const {
    for (size_t i = 0; i < exact.size(); ++i) {
      if (!(std::abs(got[i] - exact[i]) <= tolerance[i])) return static_cast<int64_t>(i);
    }
    return -1;
  }
};

}  // namespace wick::parity
