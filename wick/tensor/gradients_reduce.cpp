// Gradient rules of reductions, softmax and norms.

#include <vector>

#include "wick/tensor/gradients.h"

namespace wick::tape {
namespace {

/// The result's shape with the reduced dims as size 1.
Shape kept_shape(const Vjp& v) {
  const uint32_t dims = v.get<Reduction>().dims;
  Shape shape = v.x().shape();
  for (int d = 0; d < shape.rank(); ++d) {
    if (((dims >> d) & 1u) != 0) shape = shape.with(d, 1);
  }
  return shape;
}

/// A vector [c] reshaped to broadcast to x [b, c, ..].
Tensor by_channel(const Tensor& vector, const Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.rank() - 1), 1);
  sizes[0] = vector.size(0);
  return vector.reshape(Shape(sizes));
}

}  // namespace

Tensor kept_grad(const Vjp& v) { return v.grad().reshape(kept_shape(v)); }

void sum_rule(const Vjp& v) { v.to_x(kept_grad(v).broadcast_to(v.x().shape())); }

void mean_rule(const Vjp& v) {
  const auto n = static_cast<double>(v.x().elems()) / static_cast<double>(v.grad().elems());
  v.to_x(times(kept_grad(v), 1 / n).broadcast_to(v.x().shape()));
}

/// For max and min, elements equal to the result share its gradient evenly.
void best_rule(const Vjp& v) {
  const Shape kept = kept_shape(v);
  const Tensor is_best = eq(v.x().detach(), v.y().detach().reshape(kept)).to(v.x().dtype());
  v.to_x(kept_grad(v) * (is_best / sum_to(is_best, kept)));
}

namespace {

/// For each element along the last dim, the product of all other elements. Recursive: let a and b
/// be the halves of x; the function multiplies a and b elementwise and computes the products of all
/// pairs but one. This result times b is the answer for a, and times a the answer for b. There are
/// no divisions, so zeros and higher derivatives need no special case.
Tensor product_of_others(const Tensor& x) {
  const int64_t n = x.size(-1), half = (n + 1) / 2;
  const Tensor one = Tensor::ones({}, x.dtype(), x.device());
  if (n <= 1) return one.broadcast_to(x.shape());
  const Tensor a = x.narrow(-1, 0, half);
  Tensor b = x.narrow(-1, half, n - half);
  if (n % 2 != 0) {
    const Tensor parts[] = {b, one.broadcast_to(x.narrow(-1, 0, 1).shape())};
    b = cat(parts, -1);
  }
  const Tensor others = product_of_others(a * b);
  const Tensor both[] = {others * b, others * a};
  return cat(both, -1).narrow(-1, 0, n);
}

}  // namespace

void prod_rule(const Vjp& v) {
  const Tensor& x = v.x();
  const Shape kept = kept_shape(v);
  // Moves the reduced dims to the end, and flattens them to one dim and the others to another.
  std::vector<int> order, back(static_cast<size_t>(x.rank()));
  int64_t rows = 1, n = 1;
  for (int d = 0; d < x.rank(); ++d) {
    if (kept[d] != x.shape()[d]) continue;
    order.push_back(d);
    rows *= kept[d];
  }
  for (int d = 0; d < x.rank(); ++d) {
    if (kept[d] == x.shape()[d]) continue;
    order.push_back(d);
    n *= x.size(d);
  }
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int>(i);
  const Tensor turned = x.permute(order).to(wide(x.dtype()));
  const Tensor others = product_of_others(turned.reshape({rows, n}));
  const Tensor g = v.grad().reshape(kept).to(turned.dtype());
  v.to_x((g * others.reshape(turned.shape()).permute(back)).to(x.dtype()));
}

void softmax_rule(const Vjp& v) { v.to_x(softmax_grad(v.y(), v.grad(), v.get<AlongDim>().dim)); }

void log_softmax_rule(const Vjp& v) {
  v.to_x(log_softmax_grad(v.y(), v.grad(), v.get<AlongDim>().dim));
}

namespace {

/// A row of the pair of sums that norm_sums returns, as the gradient of `like`.
Tensor sum_of_pair(const Tensor& sums, int64_t which, const Tensor& like) {
  return sums.narrow(0, which, 1).reshape(like.shape()).to(like.dtype());
}

/// The dims that aren't channels.
std::vector<int> dims_beside_channels(const Tensor& x) {
  std::vector<int> dims{0};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
  return dims;
}
/// The dims other than the last; the first one if there is no other.
std::vector<int> leading_dims(const Tensor& x) {
  std::vector<int> dims{0};
  for (int d = 1; d + 1 < x.rank(); ++d) dims.push_back(d);
  return dims;
}

/// The gradients of x, of the weight and, if the norm has one, of the bias.
void norm_rule(const Vjp& v, const NormKind& kind) {
  const Tensor &x = v.x(0), &g = v.grad(), &w = v.x(1);
  const NormGradient of_x = norm_grad(x, g, w, kind.groups, kind.centred, kind.eps);
  v.to_if_wanted(0, [&] { return of_x.x; });
  const bool has_bias = v.inputs() > 2;
  if (!v.wants(1) && !(has_bias && v.wants(2))) return;
  const auto numbers = [&](int64_t which) {
    const Tensor all = of_x.statistics.narrow(0, which, 1).squeeze(0);
    if (kind.groups == 0) return x.rank() == 1 ? all.reshape({1, 1}) : all.unsqueeze(-1);
    std::vector<int64_t> sizes(static_cast<size_t>(x.rank()), 1);
    sizes[0] = x.size(0), sizes[1] = x.size(1);
    return all.reshape(Shape(sizes));
  };
  const bool is_row = x.rank() == 1;
  const std::vector<int> dims = kind.groups != 0 ? dims_beside_channels(x) : leading_dims(x);
  const Tensor sums = norm_sums(is_row ? x.unsqueeze(0) : x, is_row ? g.unsqueeze(0) : g,
                                numbers(1), dims, kind.centred ? numbers(0) : Tensor());
  v.to_if_wanted(1, [&] { return sum_of_pair(sums, 0, w); });
  if (has_bias) v.to_if_wanted(2, [&] { return sum_of_pair(sums, 1, v.x(2)); });
}

}  // namespace

void rms_norm_rule(const Vjp& v) { norm_rule(v, {0, false, v.get<Epsilon>().eps}); }
void layer_norm_rule(const Vjp& v) { norm_rule(v, {0, true, v.get<Epsilon>().eps}); }
void group_norm_rule(const Vjp& v) {
  const auto& [count, eps] = v.get<Groups>();
  norm_rule(v, {count, true, eps});
}

/// y = (x − m) s w + b with s = (v + eps)^-½: dx = g s w. With p = Σ g (x − m) s and q = Σ g: dm =
/// −q s w, dv = −½ p s² w, dw = p, db = q. dx is a batch_norm of g.
void batch_norm_rule(const Vjp& v) {
  const Tensor &x = v.x(0), &m = v.x(1), &variance = v.x(2), &w = v.x(3), &b = v.x(4);
  const float eps = v.get<Epsilon>().eps;
  v.to_if_wanted(0, [&] {
    const Tensor zeros = Tensor::zeros({}, DType::f32, x.device()).broadcast_to(m.shape());
    return batch_norm(v.grad(), zeros, variance, w, {}, eps);
  });
  if (!v.wants(1) && !v.wants(2) && !v.wants(3) && !v.wants(4)) return;
  const DType dtype = wide(x.dtype());
  const Tensor s = rsqrt(affine(variance.to(dtype), 1.0, static_cast<double>(eps)));
  const Tensor sums =
      norm_sums(x, v.grad(), by_channel(s, x), dims_beside_channels(x), by_channel(m.to(dtype), x));
  const Tensor sw = w.defined() ? s * w.to(dtype) : s;
  v.to_if_wanted(1, [&] { return neg(sum_of_pair(sums, 1, s) * sw).to(m.dtype()); });
  v.to_if_wanted(
      2, [&] { return times(sum_of_pair(sums, 0, s) * s * sw, -0.5).to(variance.dtype()); });
  v.to_if_wanted(3, [&] { return sum_of_pair(sums, 0, w); });
  v.to_if_wanted(4, [&] { return sum_of_pair(sums, 1, b); });
}

}  // namespace wick::tape
