#pragma once

// Runs route_experts, gate_experts and combine_experts as separate ops, for backends and sizes that
// have no fused kernel.

#include <cmath>

#include "wick/backend/backend.h"

namespace wick {

// make(shape, dtype) returns an object that owns a dense tensor until the end of its scope; view()
// is the tensor.

/// An f32 tensor, which has one element unless it is used.
template <class Make>
auto make_if(bool used, const Shape& shape, const Make& make) {
  return make(used ? shape : Shape{1}, DType::f32);
}

/// A binary op of x and a number.
template <class Make>
void with_number(Backend& backend, Op op, const View& out, const ConstView& x, double number,
                 const Make& make) {
  const auto filled = make({1}, DType::f32);
  backend.fill(filled.view(), number);
  const View one = filled.view();
  backend.binary(op, out, x, {one.data, one.dtype, one.layout.broadcast_to(x.layout.shape())});
}

template <class Make>
void run_route_experts(Backend& backend, const View& ids, const View& weights,
                       const ConstView& logits, const ConstView& bias, const ExpertRouting& routing,
                       const Make& make) {
  using Scores = ExpertRouting::Scores;
  const Shape& shape = logits.layout.shape();
  const auto made = make_if(routing.scores != Scores::logits, shape, make);
  const auto biased = make_if(bias.data != nullptr, shape, make);
  if (routing.scores == Scores::softmax) backend.softmax(made.view(), logits, 1, false);
  if (routing.scores == Scores::sigmoid) backend.unary(Op::sigmoid, made.view(), logits);
  const ConstView scores = routing.scores == Scores::logits ? logits : ConstView(made.view());
  ConstView selection = scores;
  if (bias.data != nullptr) {
    backend.binary(Op::add, biased.view(), scores,
                   {bias.data, bias.dtype, bias.layout.broadcast_to(shape)});
    selection = biased.view();
  }
  backend.sort({nullptr, DType::f32, {}}, ids, selection, 1, true);
  backend.gather(weights, scores, ids, 1);
  if (!routing.softmax_of_chosen && !routing.normalize && !routing.scaled) return;
  const auto chosen = make(weights.layout.shape(), DType::f32);
  if (routing.softmax_of_chosen) {
    backend.copy(chosen.view(), weights);
    backend.softmax(weights, chosen.view(), 1, false);
  }
  if (routing.normalize) {
    const auto sum = make({shape[0], 1}, DType::f32);
    backend.copy(chosen.view(), weights);
    backend.reduce(Op::sum, sum.view(), chosen.view(), 1u << 1);
    const View all = sum.view();
    backend.binary(Op::div, weights, chosen.view(),
                   {all.data, all.dtype, all.layout.broadcast_to(weights.layout.shape())});
  }
  if (routing.scaled) {
    backend.copy(chosen.view(), weights);
    with_number(backend, Op::mul, weights, chosen.view(), routing.scale, make);
  }
}

/// to = y [t, n, k] + each row's bias; `to` is dense.
template <class Make>
void add_expert_bias(Backend& backend, const View& to, const ConstView& y, const ExpertBias& of,
                     const Make& make) {
  const Shape& shape = y.layout.shape();
  const auto rows = make({shape[0] * shape[1], shape[2]}, DType::f32);
  backend.index_select(rows.view(), of.bias, of.ids, 0);
  const View chosen = rows.view();
  backend.binary(Op::add, to, y, {chosen.data, chosen.dtype, Layout::contiguous(shape)});
}

template <class Make>
void run_gate_experts(Backend& backend, const View& out, const ConstView& y, const ExpertBias& bias,
                      double alpha, double limit, const Make& make) {
  const Shape &whole = y.layout.shape(), &shape = out.layout.shape();
  const auto biased = make_if(bias.bias.data != nullptr, whole, make);
  ConstView in = y;
  if (bias.bias.data != nullptr) {
    add_expert_bias(backend, biased.view(), y, bias, make);
    in = biased.view();
  }
  const auto half = [&](int64_t first) {
    return ConstView{in.data, in.dtype, in.layout.narrow(2, first, shape[2])};
  };
  const auto g = make(shape, DType::f32), u = make(shape, DType::f32), s = make(shape, DType::f32);
  backend.unary_with(Op::clamp, g.view(), half(0), -INFINITY, limit);
  backend.unary_with(Op::clamp, u.view(), half(shape[2]), -limit, limit);
  with_number(backend, Op::mul, out, g.view(), alpha, make);
  backend.unary(Op::sigmoid, s.view(), out);
  backend.binary(Op::mul, out, g.view(), s.view());
  with_number(backend, Op::add, s.view(), u.view(), 1, make);
  backend.copy(g.view(), out);
  backend.binary(Op::mul, out, g.view(), s.view());
}

template <class Make>
void run_combine_experts(Backend& backend, const View& out, const ConstView& y,
                         const ConstView& weights, const ConstView& residual,
                         const ExpertBias& bias, const Make& make) {
  const Shape& shape = y.layout.shape();
  const auto weighed = make(shape, DType::f32);
  const auto biased = make_if(bias.bias.data != nullptr, shape, make);
  ConstView in = y;
  if (bias.bias.data != nullptr) {
    add_expert_bias(backend, biased.view(), y, bias, make);
    in = biased.view();
  }
  backend.binary(Op::mul, weighed.view(), in,
                 {weights.data, weights.dtype, weights.layout.broadcast_to(shape)});
  const auto sum = [&](View to) {
    to.layout = to.layout.unsqueeze(1);
    backend.reduce(Op::sum, to, weighed.view(), 1u << 1);
  };
  if (residual.data == nullptr) return sum(out);
  const auto without = make(out.layout.shape(), DType::f32);
  sum(without.view());
  backend.binary(Op::add, out, residual, without.view());
}

}  // namespace wick
