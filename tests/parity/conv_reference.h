#pragma once

// Plain convolutions in long double, and the checker of the class `bound`.

#include <cmath>
#include <functional>
#include <vector>

#include "tests/parity/harness.h"

namespace wick::parity {

/// The operands of a convolution, which determine the output's shape.
struct ConvCase {
  const char* name;
  Shape x, w;
  ConvParams params;

  Shape out() const {
    int64_t size[2];
    for (int i = 0; i < 2; ++i) {
      const int64_t reach = params.dilation[i] * (w[2 + i] - 1) + 1;
      size[i] = (x[2 + i] + 2 * params.padding[i] - reach) / params.stride[i] + 1;
    }
    return {x[0], w[0], size[0], size[1]};
  }
};

/// Calls visit(index into out, index into x or -1 for padding, index into w) for every product. The
/// order is by output, then by tap: channel, row, column.
inline void for_each_product(const ConvCase& c,
                             const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  const Shape out = c.out();
  const int64_t per_group = c.w[0] / c.params.groups;
  for (int64_t i = 0; i < out.elems(); ++i) {
    const int64_t ox = i % out[3], oy = i / out[3] % out[2], o = i / (out[3] * out[2]) % out[1],
                  b = i / (out[3] * out[2] * out[1]);
    for (int64_t t = 0; t < c.w[1] * c.w[2] * c.w[3]; ++t) {
      const int64_t kx = t % c.w[3], ky = t / c.w[3] % c.w[2], k = t / (c.w[3] * c.w[2]);
      const int64_t y = oy * c.params.stride[0] - c.params.padding[0] + ky * c.params.dilation[0];
      const int64_t x = ox * c.params.stride[1] - c.params.padding[1] + kx * c.params.dilation[1];
      const int64_t channel = o / per_group * c.w[1] + k;
      const bool inside = y >= 0 && y < c.x[2] && x >= 0 && x < c.x[3];
      visit(i, inside ? ((b * c.x[1] + channel) * c.x[2] + y) * c.x[3] + x : -1,
            o * c.w[1] * c.w[2] * c.w[3] + t);
    }
  }
}

/// The exact value of a result, the sum of its terms' magnitudes, and the number of terms.
struct Truth {
  long double value = 0, magnitude = 0;
  int64_t terms = 0;
};

/// conv2d or one of its gradients, by which operand is the result.
enum class Form : uint8_t { forward, input, weight };
inline const char* name(Form form) {
  constexpr const char* kNames[] = {"conv2d", "conv2d_input", "conv2d_weight"};
  return kNames[static_cast<int>(form)];
}

inline std::vector<Truth> truth_of(Form form, const ConvCase& c, const std::vector<double>& out,
                                   const std::vector<double>& x, const std::vector<double>& w) {
  const Shape shape = form == Form::forward ? c.out() : form == Form::input ? c.x : c.w;
  std::vector<Truth> truth(static_cast<size_t>(shape.elems()));
  for_each_product(c, [&](int64_t o, int64_t i, int64_t k) {
    if (i < 0) return;
    const auto at_o = static_cast<size_t>(o), at_x = static_cast<size_t>(i),
               at_w = static_cast<size_t>(k);
    const long double product = form == Form::forward ? static_cast<long double>(x[at_x]) * w[at_w]
                                : form == Form::input
                                    ? static_cast<long double>(out[at_o]) * w[at_w]
                                    : static_cast<long double>(out[at_o]) * x[at_x];
    Truth& t = truth[form == Form::forward ? at_o : form == Form::input ? at_x : at_w];
    t.value += product;
    t.magnitude += std::fabs(product);
    ++t.terms;
  });
  return truth;
}

/// Returns half an ulp of the result plus 4·√k·u·Σ|aᵢbᵢ|, with u = 2^-24 (2^-53 for f64). If
/// operands aren't random, k replaces √k, because repeated products have repeated errors.
inline long double bound_of(DType dtype, long double got, const Truth& t, bool random) {
  const long double u = dtype == DType::f64 ? 0x1p-53L : 0x1p-24L;
  const long double largest = std::max(std::fabs(t.value), std::fabs(got));
  const auto k = static_cast<long double>(t.terms);
  return 0.5L * ulp(dtype, largest) + 4 * (random ? std::sqrt(k) : k) * u * t.magnitude;
}

/// Returns whether a result is within the bound. The format's largest number stands for values
/// beyond it.
inline bool inside_bound(DType dtype, long double got, const Truth& t, bool random = true) {
  const FloatFormat format = format_of(dtype);
  long double want = t.value;
  if (!format.has_infinity) want = std::min(std::max(want, -format.max), format.max);
  return std::fabs(got - want) <= bound_of(dtype, got, t, random);
}

}  // namespace wick::parity
