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
  return vector.to(x.dtype()).reshape(Shape(sizes));
}
/// Sums x over all dims except the channels; the result has the shape and dtype of `like` [c].
Tensor sum_by_channel(const Tensor& x, const Tensor& like) {
  return sum_to(x, by_channel(like, x).shape()).reshape(like.shape()).to(like.dtype());
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

/// y_i = e_i / Σe: dx = y · (g − Σ g y).
void softmax_rule(const Vjp& v) {
  const int dim = v.get<AlongDim>().dim;
  const Tensor y = v.y();
  v.to_x(y * (v.grad() - sum(v.grad() * y, dim, true)));
}

void log_softmax_rule(const Vjp& v) {
  const int dim = v.get<AlongDim>().dim;
  v.to_x(v.grad() - exp(v.y()) * sum(v.grad(), dim, true));
}

/// y = x r w with r = (mean(x²) + eps)^-½: dx = r (g w − x r² mean(g w x)), dw = Σ g x r.
void rms_norm_rule(const Vjp& v) {
  const DType own = v.x(0).dtype(), dtype = wide(own);
  const Tensor x = v.x(0).to(dtype), g = v.grad().to(dtype);
  const auto eps = static_cast<double>(v.get<Epsilon>().eps);
  const Tensor r = rsqrt(affine(mean(sqr(x), -1, true), 1.0, eps));
  v.to_if_wanted(0, [&] {
    const Tensor gw = g * v.x(1).to(dtype);
    return (r * (gw - x * sqr(r) * mean(gw * x, -1, true))).to(own);
  });
  v.to_if_wanted(1, [&] { return sum_to(g * x * r, v.x(1).shape()).to(v.x(1).dtype()); });
}

namespace {

/// h = c r along the last dim, with c = x − mean(x), r = (mean(c²) + eps)^-½:
/// dx = r (g − mean(g) − h mean(g h)) for the gradient g of h.
struct Normalized {
  Tensor r, h;
  Normalized(const Tensor& x, float eps) {
    const Tensor c = x - mean(x, -1, true);
    r = rsqrt(affine(mean(sqr(c), -1, true), 1.0, static_cast<double>(eps)));
    h = c * r;
  }
  Tensor to_x(const Tensor& g) const {
    return r * (g - mean(g, -1, true) - h * mean(g * h, -1, true));
  }
};

}  // namespace

/// y = h w + b: dw = Σ g h, db = Σ g.
void layer_norm_rule(const Vjp& v) {
  const Tensor &w = v.x(1), &b = v.x(2);
  const DType own = v.x(0).dtype(), dtype = wide(own);
  const Tensor x = v.x(0).to(dtype), g = v.grad().to(dtype);
  const Normalized rows(x, v.get<Epsilon>().eps);
  v.to_if_wanted(0, [&] { return rows.to_x(w.defined() ? g * w.to(dtype) : g).to(own); });
  v.to_if_wanted(1, [&] { return sum_to(g * rows.h, w.shape()).to(w.dtype()); });
  v.to_if_wanted(2, [&] { return sum_to(g, b.shape()).to(b.dtype()); });
}

/// The rule of layer_norm with the elements of a group as a row.
void group_norm_rule(const Vjp& v) {
  const Tensor &w = v.x(1), &b = v.x(2);
  const auto& [count, eps] = v.get<Groups>();
  const DType own = v.x(0).dtype(), dtype = wide(own);
  const Shape& shape = v.x(0).shape();
  const int64_t lines = shape[0] * count;
  const Shape as_rows{lines, lines == 0 ? 0 : shape.elems() / lines};
  const Tensor g = v.grad().to(dtype);
  const Normalized rows(v.x(0).to(dtype).reshape(as_rows), eps);
  v.to_if_wanted(0, [&] {
    const Tensor gw = w.defined() ? g * by_channel(w, g) : g;
    return rows.to_x(gw.reshape(as_rows)).reshape(shape).to(own);
  });
  v.to_if_wanted(1, [&] { return sum_by_channel(g * rows.h.reshape(shape), w); });
  v.to_if_wanted(2, [&] { return sum_by_channel(g, b); });
}

/// y = (x − m) s w + b with s = (v + eps)^-½: dx = g s w, dm = −Σ g s w, dv = −½ Σ g (x − m) w s³,
/// dw = Σ g (x − m) s, db = Σ g.
void batch_norm_rule(const Vjp& v) {
  const Tensor &m = v.x(1), &variance = v.x(2), &w = v.x(3), &b = v.x(4);
  const DType own = v.x(0).dtype(), dtype = wide(own);
  const Tensor x = v.x(0).to(dtype), g = v.grad().to(dtype);
  const auto eps = static_cast<double>(v.get<Epsilon>().eps);
  const Tensor s = rsqrt(affine(by_channel(variance, x), 1.0, eps));
  const Tensor gw = w.defined() ? g * by_channel(w, x) : g;
  v.to_if_wanted(0, [&] { return (gw * s).to(own); });
  v.to_if_wanted(1, [&] { return sum_by_channel(neg(gw * s), m); });
  const auto off = [&] { return x - by_channel(m, x); };
  v.to_if_wanted(2,
                 [&] { return sum_by_channel(times(gw * off() * (s * sqr(s)), -0.5), variance); });
  v.to_if_wanted(3, [&] { return sum_by_channel(g * off() * s, w); });
  v.to_if_wanted(4, [&] { return sum_by_channel(g, b); });
}

}  // namespace wick::tape
