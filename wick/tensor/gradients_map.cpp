// Gradient rules of elementwise functions and of the reductions that choose or multiply.

#include <cmath>
#include <numbers>

#include "wick/tensor/arguments.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"

namespace wick::tape {
namespace {

Tensor times(const Tensor& x, double by) { return affine(x, by, 0.0); }
Tensor plus(const Tensor& x, double more) { return affine(x, 1.0, more); }
Tensor zeros_like(const Tensor& x) { return Tensor::zeros({}, x.dtype(), x.device()); }
/// g where the condition is so, else 0.
Tensor kept_where(const Tensor& condition, const Tensor& g) {
  return where(condition, g, zeros_like(g));
}

/// The normal density: exp(−x²/2) / √(2π).
Tensor density(const Tensor& x) {
  return times(exp(times(sqr(x), -0.5)), 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
}

void relu_rule(const Vjp& v) { v.to_x(kept_where(gt(v.x(), zeros_like(v.x())), v.grad())); }
/// Whole steps: flat but where they jump.
void step_rule(const Vjp& v) { v.to_x(times(v.grad(), 0.0)); }

/// y = x/2 (1 + tanh u), u = √(2/π) (x + 0.044715 x³).
void gelu_rule(const Vjp& v) {
  const Tensor& x = v.x();
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Tensor t = tanh(times(x * plus(times(sqr(x), 0.044715), 1.0), c));
  const Tensor slope = times(plus(times(sqr(x), 3 * 0.044715), 1.0), c);
  v.to_x(v.grad() * times(plus(t, 1.0) + x * affine(sqr(t), -1.0, 1.0) * slope, 0.5));
}
/// y = x Φ(x).
void gelu_erf_rule(const Vjp& v) { v.to_x(v.grad() * (normcdf(v.x()) + v.x() * density(v.x()))); }

void clamp_rule(const Vjp& v) {
  const auto [low, high] = v.arguments<Numbers>();
  const auto bound = [&](Scalar s) { return Tensor::full({}, s, v.x().dtype(), v.x().device()); };
  v.to_x(kept_where(logical_and(ge(v.x(), bound(low)), le(v.x(), bound(high))), v.grad()));
}
void powf_rule(const Vjp& v) {
  const double e = v.arguments<Numbers>().p.f;
  v.to_x(v.grad() * times(powf(v.x(), e - 1), e));
}
void elu_rule(const Vjp& v) {
  const double alpha = v.arguments<Numbers>().p.f;
  const Tensor& x = v.x();
  v.to_x(v.grad() * where(gt(x, zeros_like(x)), Tensor::ones({}, x.dtype(), x.device()),
                          times(exp(x), alpha)));
}

/// The chosen operand's; both halves where they are equal.
void choose(const Vjp& v, Tensor (*wins)(const Tensor&, const Tensor&)) {
  const Tensor &a = v.x(0), &b = v.x(1);
  const Tensor half = times(v.grad(), 0.5), same = eq(a, b);
  v.to_if_wanted(0, [&] { return where(same, half, kept_where(wins(a, b), v.grad())); });
  v.to_if_wanted(1, [&] { return where(same, half, kept_where(wins(b, a), v.grad())); });
}
void maximum_rule(const Vjp& v) { choose(v, gt); }
void minimum_rule(const Vjp& v) { choose(v, lt); }

void pow_rule(const Vjp& v) {
  const Tensor &a = v.x(0), &b = v.x(1);
  v.to_if_wanted(0, [&] { return v.grad() * b * pow(a, plus(b, -1.0)); });
  v.to_if_wanted(1, [&] {
    // 0 to a power has no slope by it; log(0) would make a NaN of the 0.
    const Tensor zero = eq(a, zeros_like(a));
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

/// Shared by all elements that are as large as the result.
void best_rule(const Vjp& v) {
  const Shape& kept = v.arguments<Reduced>().kept;
  const Tensor is_best = eq(v.x().detach(), v.y().detach().reshape(kept)).to(v.x().dtype());
  v.to_x(v.grad().reshape(kept) * (is_best / sum_to(is_best, kept)));
}

/// The product of all other elements: y / x, but beside one zero what the others give, and 0 beside
/// two. Through elements that are 0 there is no second derivative.
void prod_rule(const Vjp& v) {
  const Shape& kept = v.arguments<Reduced>().kept;
  const Tensor& x = v.x();
  const Tensor zero = eq(x, zeros_like(x)), one = Tensor::ones({}, x.dtype(), x.device());
  const Tensor safe = where(zero, one, x), zeros = sum_to(zero.to(x.dtype()), kept);
  std::vector<int> dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (kept[d] != x.shape()[d]) dims.push_back(d);
  }
  const Tensor others = dims.empty() ? safe : prod(safe, dims, true);
  const Tensor g = v.grad().reshape(kept);
  v.to_x(where(zero, kept_where(eq(zeros, one), g * others).broadcast_to(x.shape()),
               kept_where(eq(zeros, zeros_like(x)), g * others / safe)));
}

// clang-format off
#define WICK_GRADIENT(body) [](const Vjp& v) body
constexpr OpRow kRows[] = {
    {Op::abs, {WICK_GRADIENT({ v.to_x(v.grad() * sign(v.x())); })}},
    {Op::relu, {relu_rule}},
    {Op::sign, {step_rule}},
    {Op::floor, {step_rule}},
    {Op::ceil, {step_rule}},
    {Op::round, {step_rule}},
    {Op::sin, {WICK_GRADIENT({ v.to_x(v.grad() * cos(v.x())); })}},
    {Op::cos, {WICK_GRADIENT({ v.to_x(neg(v.grad() * sin(v.x()))); })}},
    {Op::log1p, {WICK_GRADIENT({ v.to_x(v.grad() / plus(v.x(), 1.0)); })}},
    {Op::expm1, {WICK_GRADIENT({ v.to_x(v.grad() * exp(v.x())); })}},
    {Op::erf, {WICK_GRADIENT({
        v.to_x(v.grad() * times(exp(neg(sqr(v.x()))), 2 * std::numbers::inv_sqrtpi)); })}},
    {Op::normcdf, {WICK_GRADIENT({ v.to_x(v.grad() * density(v.x())); })}},
    {Op::gelu, {gelu_rule}},
    {Op::gelu_erf, {gelu_erf_rule}},
    {Op::clamp, {clamp_rule}},
    {Op::powf, {powf_rule}},
    {Op::elu, {elu_rule}},
    {Op::maximum, {maximum_rule}},
    {Op::minimum, {minimum_rule}},
    {Op::pow, {pow_rule, true}},
    {Op::atan2, {atan2_rule}},
    {Op::rem, {rem_rule}},
    {Op::where, {where_rule}},
    {Op::max, {best_rule, true}},
    {Op::min, {best_rule, true}},
    {Op::prod, {prod_rule}},
};
// clang-format on

}  // namespace

std::span<const OpRow> map_rules() { return kRows; }

}  // namespace wick::tape
