// Gradient rules of gemms, rope and attention.

#include <cmath>

#include "wick/tensor/gradients.h"

namespace wick::tape {
namespace {

/// The keys that each query sees: bool [m, n].
Tensor visible(const AttentionParams& p, int64_t m, int64_t n, Device device) {
  const Tensor own =
      Tensor::arange(n - m, m, 1, DType::i64, device).unsqueeze(1).broadcast_to({m, n});
  const Tensor key = Tensor::arange(0, n, 1, DType::i64, device);
  Tensor seen = ge(own, own);
  if (p.causal) seen = logical_and(seen, le(key, own));
  if (p.window > 0) seen = logical_and(seen, gt(key, affine(own, 1, -p.window)));
  return seen;
}

/// For pairs (a, b) of x: a' = a cos − b sin, b' = b cos + a sin. dx rotates g by the negative
/// angle; dcos = ga a + gb b, dsin = gb a − ga b.
void rope_by(const Vjp& v, Tensor (*rotate)(const Tensor&, const Tensor&, const Tensor&),
             bool interleaved) {
  const Tensor &x = v.x(0), &cos = v.x(1), &sin = v.x(2);
  v.to_if_wanted(0, [&] { return rotate(v.grad(), cos, neg(sin)); });
  if (!v.wants(1) && !v.wants(2)) return;
  const int64_t pairs = cos.size(-1);
  const auto half = [&](const Tensor& t, int64_t which) {
    const Tensor part =
        interleaved ? t.slice(-1, which, 2 * pairs, 2) : t.narrow(-1, which * pairs, pairs);
    return part.to(DType::f32);
  };
  const Tensor a = half(x, 0), b = half(x, 1), ga = half(v.grad(), 0), gb = half(v.grad(), 1);
  v.to_if_wanted(1, [&] { return ga * a + gb * b; });
  v.to_if_wanted(2, [&] { return gb * a - ga * b; });
}

}  // namespace

void matmul_rule(const Vjp& v) {
  v.to_if_wanted(0, [&] { return matmul(v.grad(), v.x(1).t()); });
  v.to_if_wanted(1, [&] { return matmul(v.x(0).t(), v.grad()); });
}

void rope_rule(const Vjp& v) { rope_by(v, rope, false); }
void rope_interleaved_rule(const Vjp& v) { rope_by(v, rope_interleaved, true); }

namespace {

/// The gradients of attention composed of ops, which can be differentiated. They store matrices of
/// queries by keys, as the gradient of a mask is one.
///
/// y = P v, P = softmax(s), s = cap tanh(scale q kᵀ / cap) + bias: dv = Pᵀ g, dP = g vᵀ, ds = P (dP
/// − Σ dP P). ds is also the gradient of the bias; for q and k it is multiplied by the derivative
/// of the cap. The gradients of heads that share keys and values are added. A sink is a last column
/// of s without a value.
void attention_in_ops(const Vjp& v) {
  const auto& p = v.get<AttentionParams>();
  const Tensor &mask = v.x(3), &slopes = v.x(4), &sinks = v.x(5);
  const int64_t b = v.x(0).size(0), h = v.x(0).size(1), m = v.x(0).size(2), d = v.x(0).size(3);
  const int64_t g = v.x(1).size(1), n = v.x(1).size(2), e = v.x(2).size(3), r = h / g;
  const DType dtype = wide(v.x(0).dtype());
  const Tensor q = v.x(0).to(dtype).reshape({b, g, r, m, d});
  const Tensor k = v.x(1).to(dtype).unsqueeze(2), values = v.x(2).to(dtype).unsqueeze(2);
  const Tensor grad = v.grad().to(dtype).reshape({b, g, r, m, e});
  const auto scale = static_cast<double>(p.scale), cap = static_cast<double>(p.soft_cap);

  Tensor s = affine(matmul(q, k.t()), scale, 0.0), bend;
  if (cap > 0) {
    const Tensor t = tanh(affine(s, 1 / cap, 0.0));
    bend = affine(sqr(t), -1.0, 1.0);
    s = affine(t, cap, 0.0);
  }
  const Device device = q.device();
  Tensor seen = visible(p, m, n, device), distance;
  if (slopes.defined()) {
    const Tensor own = Tensor::arange(n - m, m, 1, dtype, device).unsqueeze(1);
    distance = Tensor::arange(0, n, 1, dtype, device) - own;
    s = s + slopes.to(dtype).reshape({g, r, 1, 1}) * distance;
  }
  if (mask.defined()) {
    const Tensor all = mask.broadcast_to({b, h, m, n}).reshape({b, g, r, m, n});
    if (stored(mask.dtype()) == DType::u8) {
      seen = logical_and(seen, all.to(DType::boolean));
    } else {
      seen = logical_and(seen, gt(all, Tensor::full({}, -INFINITY, mask.dtype(), device)));
      s = s + all.to(dtype);
    }
  }
  const Tensor low = Tensor::full({}, -1e30, dtype, device),
               none = Tensor::zeros({}, dtype, device);
  const Tensor scores = where(seen, s, low);
  Tensor weights, of_sinks;  // of_sinks: the weights of the sinks
  if (sinks.defined()) {
    const Tensor column =
        maximum(sinks.to(dtype), low).reshape({g, r, 1, 1}).broadcast_to({b, g, r, m, 1});
    const Tensor both[] = {scores, column};
    const Tensor all = softmax(cat(both, -1), -1);
    weights = where(seen, all.narrow(-1, 0, n), none);
    of_sinks = all.narrow(-1, n, 1);
  } else {
    weights = where(seen, softmax(scores, -1), none);
  }

  v.to_if_wanted(2, [&] {
    return sum_to(matmul(weights.t(), grad), values.shape()).squeeze(2).to(v.x(2).dtype());
  });
  if (!v.wants(0) && !v.wants(1) && !v.wants(3) && !v.wants(4) && !v.wants(5)) return;
  const Tensor of_weights = matmul(grad, values.t());
  const Tensor delta = sum(of_weights * weights, -1, true);
  v.to_if_wanted(5, [&] { return sum_to(neg(of_sinks * delta), {1, g, r, 1, 1}).reshape({h}); });
  Tensor ds = weights * (of_weights - delta);
  v.to_if_wanted(3, [&] { return ds.reshape({b, h, m, n}); });
  v.to_if_wanted(4, [&] { return sum_to(ds * distance, {1, g, r, 1, 1}).reshape({h}); });
  if (bend.defined()) ds = ds * bend;
  ds = affine(ds, scale, 0.0);
  v.to_if_wanted(0, [&] { return matmul(ds, k).reshape({b, h, m, d}).to(v.x(0).dtype()); });
  v.to_if_wanted(
      1, [&] { return sum_to(matmul(ds.t(), q), k.shape()).squeeze(2).to(v.x(1).dtype()); });
}

}  // namespace

void attention_rule(const Vjp& v) {
  bool again = is_wanted(v.grad());  // whether the gradients are differentiated, too
  for (size_t i = 0; i < v.inputs(); ++i) again = again || (v.x(i).defined() && is_wanted(v.x(i)));
  if (again || v.wants(3) || v.wants(4)) return attention_in_ops(v);
  // Operands of several dtypes compute in f32.
  const DType own = v.x(0).dtype(), dtype = own == v.x(1).dtype() ? own : DType::f32;
  const AttentionGradients gradients = attention_gradient(
      v.grad().to(dtype), v.x(0).to(dtype), v.x(1).to(dtype), v.x(2).to(dtype),
      {v.get<AttentionParams>(), v.wants(0), v.wants(1) || v.wants(2), v.wants(5)}, v.x(3), v.x(4),
      v.x(5));
  v.to_if_wanted(0, [&] { return gradients.q.to(own); });
  v.to_if_wanted(1, [&] { return gradients.k.to(v.x(1).dtype()); });
  v.to_if_wanted(2, [&] { return gradients.v.to(v.x(2).dtype()); });
  v.to_if_wanted(5, [&] { return gradients.sinks; });
}

/// y = x Wᵀ: dx = g W, dW = gᵀ x. If the weight needs a gradient, its source matrices are the
/// inputs after x.
void linear_rule(const Vjp& v) {
  const Tensor& x = v.x();
  v.to_if_wanted(0, [&] { return matmul(v.grad(), v.weight().matrix(x.dtype())); });
  if (v.inputs() == 1) return;
  const auto rows = [](const Tensor& t) {
    return t.rank() == 1 ? t.unsqueeze(0) : t.flatten(0, -2);
  };
  const Tensor of_all = matmul(rows(v.grad()).t(), rows(x));
  int64_t at = 0;
  for (size_t i = 1; i < v.inputs(); ++i) {
    const Tensor& matrix = v.x(i);
    v.to(i, of_all.narrow(0, at, matrix.size(0)).to(matrix.dtype()).to(matrix.device()));
    at += matrix.size(0);
  }
}

}  // namespace wick::tape
