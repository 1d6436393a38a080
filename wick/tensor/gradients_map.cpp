// Gradient rules of elementwise functions that need more than one line in the table.

#include <numbers>

#include "wick/tensor/gradients.h"

namespace wick::tape {
namespace {

/// The density of the normal distribution: exp(−x²/2) / √(2π).
Tensor density(const Tensor& x) {
  return times(exp(times(sqr(x), -0.5)), 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
}

/// The selected operand gets the gradient; equal operands get half each.
void choose(const Vjp& v, Tensor (*wins)(const Tensor&, const Tensor&)) {
  const Tensor &a = v.x(0), &b = v.x(1);
  const Tensor half = times(v.grad(), 0.5), same = eq(a, b);
  v.to_if_wanted(0, [&] { return where(same, half, kept_where(wins(a, b), v.grad())); });
  v.to_if_wanted(1, [&] { return where(same, half, kept_where(wins(b, a), v.grad())); });
}
}  // namespace

void relu_rule(const Vjp& v) { v.to_x(kept_where(gt(v.x(), zero_like(v.x())), v.grad())); }
/// Step functions: the derivative is 0 except at the steps.
void step_rule(const Vjp& v) { v.to_x(times(v.grad(), 0.0)); }

void silu_rule(const Vjp& v) {
  const Tensor s = sigmoid(v.x());
  v.to_x(v.grad() * (s + v.x() * s * one_less(s)));
}
void normcdf_rule(const Vjp& v) { v.to_x(v.grad() * density(v.x())); }
/// y = x/2 (1 + tanh u), u = √(2/π) (x + 0.044715 x³). x is clamped to ±12, because beyond, tanh u
/// is ±1 and the derivative of u overflows in f16.
void gelu_rule(const Vjp& v) {
  const Tensor x = clamp(v.x(), -12.0, 12.0);
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Tensor t = tanh(times(x * plus(times(sqr(x), 0.044715), 1.0), c));
  const Tensor slope = times(plus(times(sqr(x), 3 * 0.044715), 1.0), c);
  v.to_x(v.grad() * times(plus(t, 1.0) + x * affine(sqr(t), -1.0, 1.0) * slope, 0.5));
}
/// y = x Φ(x).
void gelu_erf_rule(const Vjp& v) { v.to_x(v.grad() * (normcdf(v.x()) + v.x() * density(v.x()))); }

void clamp_rule(const Vjp& v) {
  const auto [low, high] = v.get<Numbers>();
  const auto bound = [&](Scalar s) { return Tensor::full({}, s, v.x().dtype(), v.x().device()); };
  v.to_x(kept_where(logical_and(ge(v.x(), bound(low)), le(v.x(), bound(high))), v.grad()));
}
void powf_rule(const Vjp& v) {
  const double e = v.get<Numbers>().p.f;
  v.to_x(e == 0 ? times(v.grad(), 0.0) : v.grad() * times(powf(v.x(), e - 1), e));
}
void elu_rule(const Vjp& v) {
  const double alpha = v.get<Numbers>().p.f;
  const Tensor& x = v.x();
  const Tensor low = exp(minimum(x, zero_like(x)));  // avoids infinity where `where` discards it
  v.to_x(v.grad() *
         where(gt(x, zero_like(x)), Tensor::ones({}, x.dtype(), x.device()), times(low, alpha)));
}

void maximum_rule(const Vjp& v) { choose(v, gt); }
void minimum_rule(const Vjp& v) { choose(v, lt); }

void pow_rule(const Vjp& v) {
  const Tensor &a = v.x(0), &b = v.x(1);
  v.to_if_wanted(
      0, [&] { return kept_where(ne(b, zero_like(b)), v.grad() * b * pow(a, plus(b, -1.0))); });
  v.to_if_wanted(1, [&] {
    // The derivative of 0^b with respect to b is 0, but 0 · log(0) would be NaN.
    const Tensor zero = eq(a, zero_like(a));
    const Tensor safe = where(zero, Tensor::ones({}, a.dtype(), a.device()), a);
    return kept_where(logical_not(zero), v.grad() * v.y() * log(safe));
  });
}
void atan2_rule(const Vjp& v) {
  const Tensor &a = v.x(0), &b = v.x(1);
  const Tensor g = v.grad() / (sqr(a) + sqr(b));
  v.to_if_wanted(0, [&] { return g * b; });
  v.to_if_wanted(1, [&] { return neg(g * a); });
}
/// a − b ⌊a/b⌋.
void rem_rule(const Vjp& v) {
  v.to(0, v.grad());
  v.to_if_wanted(1, [&] { return neg(v.grad() * floor(v.x(0).detach() / v.x(1).detach())); });
}

void where_rule(const Vjp& v) {
  v.to_if_wanted(1, [&] { return kept_where(v.x(0), v.grad()); });
  v.to_if_wanted(2, [&] { return kept_where(logical_not(v.x(0)), v.grad()); });
}

void silu_mul_rule(const Vjp& v) {
  const Tensor s = sigmoid(v.x(0));
  v.to_if_wanted(0, [&] { return v.grad() * v.x(1) * (s + v.x(0) * s * one_less(s)); });
  v.to_if_wanted(1, [&] { return v.grad() * v.x(0) * s; });
}

}  // namespace wick::tape
