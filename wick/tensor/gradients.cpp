// The table of gradient rules: op → vector-Jacobian product, made of functions over tensors, so
// that gradients have gradients. Sources: ordinary calculus; for a norm or a softmax the derivation
// stands beside the rule.

#include "wick/tensor/gradients.h"

#include <array>
#include <cmath>

#include "wick/tensor/arguments.h"
#include "wick/tensor/ops.h"

namespace wick::tape {
namespace {

Tensor times(const Tensor& x, double by) { return affine(x, by, 0.0); }
/// 1 − x.
Tensor one_less(const Tensor& x) { return affine(x, -1.0, 1.0); }

/// The result's gradient with the reduced dims back, as sizes of one.
Tensor with_reduced_dims(const Vjp& v, const Tensor& t) {
  return t.reshape(v.arguments<Reduced>().kept);
}

void sum_rule(const Vjp& v) { v.to_x(with_reduced_dims(v, v.grad()).broadcast_to(v.x().shape())); }

void mean_rule(const Vjp& v) {
  const auto n = static_cast<double>(v.x().elems()) / static_cast<double>(v.grad().elems());
  v.to_x(times(with_reduced_dims(v, v.grad()), 1 / n).broadcast_to(v.x().shape()));
}

void silu_mul_rule(const Vjp& v) {
  const Tensor s = sigmoid(v.x(0));
  v.to_if_wanted(0, [&] { return v.grad() * v.x(1) * (s + v.x(0) * s * one_less(s)); });
  v.to_if_wanted(1, [&] { return v.grad() * v.x(0) * s; });
}

void matmul_rule(const Vjp& v) {
  v.to_if_wanted(0, [&] { return matmul(v.grad(), v.x(1).t()); });
  v.to_if_wanted(1, [&] { return matmul(v.x(0).t(), v.grad()); });
}

/// y_i = e_i / Σe: dx = y · (g − Σ g y).
void softmax_rule(const Vjp& v) {
  const int dim = v.arguments<int>();
  const Tensor y = v.y();
  v.to_x(y * (v.grad() - sum(v.grad() * y, dim, true)));
}

void log_softmax_rule(const Vjp& v) {
  const int dim = v.arguments<int>();
  v.to_x(v.grad() - exp(v.y()) * sum(v.grad(), dim, true));
}

/// y = x r w with r = (mean(x²) + eps)^-½: dx = r (g w − x r² mean(g w x)), dw = Σ g x r.
void rms_norm_rule(const Vjp& v) {
  const Tensor& x = v.x(0);
  const Tensor w = v.x(1).to(x.dtype());
  const auto eps = static_cast<double>(v.arguments<float>());
  const Tensor r = rsqrt(affine(mean(sqr(x), -1, true), 1.0, eps));
  v.to_if_wanted(0, [&] {
    const Tensor gw = v.grad() * w;
    return r * (gw - x * sqr(r) * mean(gw * x, -1, true));
  });
  v.to_if_wanted(1, [&] { return (v.grad() * x * r).to(v.x(1).dtype()); });
}

/// y = h w + b with h = c r, c = x − mean(x), r = (mean(c²) + eps)^-½:
/// dx = r (g w − mean(g w) − h mean(g w h)), dw = Σ g h, db = Σ g.
void layer_norm_rule(const Vjp& v) {
  const Tensor &x = v.x(0), &w = v.x(1), &b = v.x(2);
  const auto eps = static_cast<double>(v.arguments<float>());
  const Tensor c = x - mean(x, -1, true);
  const Tensor r = rsqrt(affine(mean(sqr(c), -1, true), 1.0, eps)), h = c * r;
  v.to_if_wanted(0, [&] {
    const Tensor gw = w.defined() ? v.grad() * w.to(x.dtype()) : v.grad();
    return r * (gw - mean(gw, -1, true) - h * mean(gw * h, -1, true));
  });
  v.to_if_wanted(1, [&] { return (v.grad() * h).to(w.dtype()); });
  v.to_if_wanted(2, [&] { return v.grad().to(b.dtype()); });
}

/// A rotation's transpose turns the other way.
void rope_rule(const Vjp& v) { v.to_x(rope(v.grad(), v.x(1), neg(v.x(2)))); }
void rope_interleaved_rule(const Vjp& v) {
  v.to_x(rope_interleaved(v.grad(), v.x(1), neg(v.x(2))));
}

Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype(), x.device()); }

void index_select_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  // The ids' dims, one in the op, lie where the dim was.
  const Tensor rows =
      ids.rank() == 0 ? v.grad().unsqueeze(dim) : v.grad().flatten(dim, dim + ids.rank() - 1);
  v.to_x(index_add(zeros_like(v.x()), ids.flatten(), rows, dim));
}

/// Also of sort and topk, whose values are gathered.
void gather_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to_x(scatter_add(zeros_like(v.x()), ids, v.grad(), dim));
}

/// Elements that stayed, and the source that came last at each place: its number along the dim is
/// found there again.
void scatter_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to_if_wanted(
      0, [&, &ids = ids, dim = dim] { return scatter(v.grad(), ids, zeros_like(v.x(1)), dim); });
  v.to_if_wanted(1, [&, &ids = ids, dim = dim] {
    const Tensor& source = v.x(1);
    Tensor number = Tensor::arange(1, source.shape()[dim], 1, DType::i64, source.device());
    for (int d = dim + 1; d < source.rank(); ++d) number = number.unsqueeze(-1);
    number = number.broadcast_to(source.shape());
    const Tensor none = Tensor::zeros(v.x(0).shape(), DType::i64, source.device());
    const Tensor other = abs(gather(scatter(none, ids, number, dim), ids, dim) - number);
    const Tensor one = Tensor::ones({}, DType::i64, source.device());
    const Tensor last = affine(minimum(other, one), -1, 1).to(source.dtype());
    return gather(v.grad(), ids, dim) * last;
  });
}

void scatter_add_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to(0, v.grad());
  v.to_if_wanted(1, [&, &ids = ids, dim = dim] { return gather(v.grad(), ids, dim); });
}

void index_add_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to(0, v.grad());
  v.to_if_wanted(1, [&, &ids = ids, dim = dim] { return index_select(v.grad(), ids, dim); });
}

void cumsum_rule(const Vjp& v) {
  const int dim = v.arguments<int>();
  v.to_x(flip(cumsum(flip(v.grad(), dim), dim), dim));
}

// clang-format off
#define WICK_GRADIENT(body) [](const Vjp& v) body
const OpRow kRows[] = {
    {Op::fill, {nullptr, false, kNoTensor}},
    {Op::iota, {nullptr, false, kNoTensor}},
    {Op::cast, {WICK_GRADIENT({ v.to_x(v.grad().to(v.x().dtype())); })}},
    {Op::affine, {WICK_GRADIENT({ v.to_x(affine(v.grad(), v.arguments<Numbers>().p, 0.0)); })}},

    {Op::neg, {WICK_GRADIENT({ v.to_x(neg(v.grad())); })}},
    {Op::sqr, {WICK_GRADIENT({ v.to_x(v.grad() * times(v.x(), 2)); })}},
    {Op::sqrt, {WICK_GRADIENT({ v.to_x(times(v.grad(), 0.5) / v.y()); }), true}},
    {Op::rsqrt, {WICK_GRADIENT({ v.to_x(times(v.grad() * v.y(), -0.5) / v.x()); }), true}},
    {Op::recip, {WICK_GRADIENT({ v.to_x(neg(v.grad() * sqr(v.y()))); }), true}},
    {Op::exp, {WICK_GRADIENT({ v.to_x(v.grad() * v.y()); }), true}},
    {Op::log, {WICK_GRADIENT({ v.to_x(v.grad() / v.x()); })}},
    {Op::tanh, {WICK_GRADIENT({ v.to_x(v.grad() * one_less(sqr(v.y()))); }), true}},
    {Op::sigmoid, {WICK_GRADIENT({ v.to_x(v.grad() * v.y() * one_less(v.y())); }), true}},
    {Op::silu, {WICK_GRADIENT({
        const Tensor s = sigmoid(v.x());
        v.to_x(v.grad() * (s + v.x() * s * one_less(s))); })}},

    {Op::add, {WICK_GRADIENT({ v.to(0, v.grad()); v.to(1, v.grad()); })}},
    {Op::sub, {WICK_GRADIENT({
        v.to(0, v.grad());
        v.to_if_wanted(1, [&] { return neg(v.grad()); }); })}},
    {Op::mul, {WICK_GRADIENT({
        v.to_if_wanted(0, [&] { return v.grad() * v.x(1); });
        v.to_if_wanted(1, [&] { return v.grad() * v.x(0); }); })}},
    {Op::div, {WICK_GRADIENT({
        v.to_if_wanted(0, [&] { return v.grad() / v.x(1); });
        v.to_if_wanted(1, [&] { return neg(v.grad() * v.y() / v.x(1)); }); }), true}},
    {Op::silu_mul, {silu_mul_rule}},

    {Op::sum, {sum_rule}},
    {Op::mean, {mean_rule}},
    {Op::argmax, {nullptr, false, kWhole}},
    {Op::argmin, {nullptr, false, kWhole}},

    {Op::index_select, {index_select_rule}},
    {Op::gather, {gather_rule}},
    {Op::scatter, {scatter_rule}},
    {Op::scatter_add, {scatter_add_rule}},
    {Op::index_add, {index_add_rule}},
    {Op::one_hot, {nullptr, false, kWhole}},
    {Op::sort, {gather_rule}},
    {Op::argsort, {nullptr, false, kWhole}},
    {Op::topk, {gather_rule}},
    {Op::cumsum, {cumsum_rule}},
    {Op::uniform, {nullptr, false, kNoTensor}},
    {Op::normal, {nullptr, false, kNoTensor}},

    {Op::matmul, {matmul_rule}},
    {Op::softmax, {softmax_rule, true}},
    {Op::log_softmax, {log_softmax_rule, true}},
    {Op::rms_norm, {rms_norm_rule}},
    {Op::layer_norm, {layer_norm_rule}},
    {Op::rope, {rope_rule}},
    {Op::rope_interleaved, {rope_interleaved_rule}},
};
// clang-format on

}  // namespace

const OpRule& rule_of(Op op) {
  static const auto table = [] {
    std::array<OpRule, kOpCount> rules;
    for (const std::span<const OpRow> rows :
         {std::span<const OpRow>(kRows), linear_rules(), map_rules(), spatial_rules()}) {
      for (const OpRow& row : rows) rules[static_cast<size_t>(row.op)] = row.rule;
    }
    return rules;
  }();
  return table[static_cast<size_t>(op)];
}

}  // namespace wick::tape
