// Gradient rules of attention and of products with prepared weights.

#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"

namespace wick::tape {
namespace {

/// Which keys [n] each query [m] may see.
Tensor visible(const AttentionParams& p, int64_t m, int64_t n, Device device) {
  const Tensor own =
      Tensor::arange(n - m, m, 1, DType::i64, device).unsqueeze(1).broadcast_to({m, n});
  const Tensor key = Tensor::arange(0, n, 1, DType::i64, device);
  Tensor seen = ge(own, own);
  if (p.causal) seen = logical_and(seen, le(key, own));
  if (p.window > 0) seen = logical_and(seen, gt(key, affine(own, 1, -p.window)));
  return seen;
}

/// y = P v, P = softmax(s), s = cap tanh(scale q kᵀ / cap) + bias: dv = Pᵀ g, dP = g vᵀ,
/// ds = P (dP − Σ dP P), and on through the cap. Heads that share keys and values add up.
void attention_rule(const Vjp& v) {
  const auto& p = v.arguments<AttentionParams>();
  const Tensor &mask = v.x(3), &slopes = v.x(4);
  const int64_t b = v.x(0).size(0), h = v.x(0).size(1), m = v.x(0).size(2), d = v.x(0).size(3);
  const int64_t g = v.x(1).size(1), n = v.x(1).size(2), e = v.x(2).size(3), r = h / g;
  const DType dtype = v.x(0).dtype() == DType::f64 ? DType::f64 : DType::f32;
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
  if (slopes.defined()) {
    const Tensor own = Tensor::arange(n - m, m, 1, dtype, device).unsqueeze(1);
    const Tensor distance = Tensor::arange(0, n, 1, dtype, device) - own;
    s = s + slopes.detach().to(dtype).reshape({g, r, 1, 1}) * distance;
  }
  Tensor seen = visible(p, m, n, device);
  if (mask.defined()) {
    const Tensor wide = mask.detach().broadcast_to({b, h, m, n}).reshape({b, g, r, m, n});
    if (mask.dtype() == DType::u8) {
      seen = logical_and(seen, wide);
    } else {
      s = s + wide.to(dtype);
    }
  }
  const Tensor low = Tensor::full({}, -1e30, dtype, device),
               none = Tensor::zeros({}, dtype, device);
  const Tensor weights = where(seen, softmax(where(seen, s, low), -1), none);

  v.to_if_wanted(2, [&] {
    return sum_to(matmul(weights.t(), grad), values.shape()).squeeze(2).to(v.x(2).dtype());
  });
  if (!v.wants(0) && !v.wants(1)) return;
  const Tensor of_weights = matmul(grad, values.t());
  Tensor ds = weights * (of_weights - sum(of_weights * weights, -1, true));
  if (bend.defined()) ds = ds * bend;
  ds = affine(ds, scale, 0.0);
  v.to_if_wanted(0, [&] { return matmul(ds, k).reshape({b, h, m, d}).to(v.x(0).dtype()); });
  v.to_if_wanted(
      1, [&] { return sum_to(matmul(ds.t(), q), k.shape()).squeeze(2).to(v.x(1).dtype()); });
}

/// y = x Wᵀ: dx = g W.
void linear_rule(const Vjp& v) {
  const Tensor matrix = v.arguments<Weight>().matrix(v.x().dtype());
  v.to_x(matmul(v.grad(), matrix));
}

constexpr OpRow kRows[] = {
    {Op::attention, {attention_rule}},
    {Op::linear, {linear_rule}},
};

}  // namespace

std::span<const OpRow> linear_rules() { return kRows; }

}  // namespace wick::tape
