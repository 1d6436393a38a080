// Gradient rules of gather, scatter, sort, cumsum, cumprod and similar ops.

#include "wick/tensor/gradients.h"

namespace wick::tape {
namespace {

Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype(), x.device()); }

}  // namespace

void index_select_rule(const Vjp& v) {
  v.to_x(index_add(zeros_like(v.x()), v.x(1), v.grad(), v.get<Selection>().dim));
}

void gather_rule(const Vjp& v) {
  v.to_x(scatter_add(zeros_like(v.x()), v.x(1), v.grad(), v.get<AlongDim>().dim));
}

/// Sorting gathers elements by the indices, which are the second result.
void sort_rule(const Vjp& v) {
  v.to_x(scatter_add(zeros_like(v.x()), v.y(1), v.grad(), v.get<Sorting>().dim));
}

/// x gets the gradient of the elements that weren't overwritten. Of several sources for one
/// element, the last one gets its gradient. Scattering the indices of the sources along the dim
/// tells which one that is.
void scatter_rule(const Vjp& v) {
  const Tensor &ids = v.x(1), &source = v.x(2);
  const int dim = v.get<AlongDim>().dim;
  v.to_if_wanted(0, [&] { return scatter(v.grad(), ids, zeros_like(source), dim); });
  v.to_if_wanted(2, [&] {
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
  v.to(0, v.grad());
  v.to_if_wanted(2, [&] { return gather(v.grad(), v.x(1), v.get<AlongDim>().dim); });
}

void index_add_rule(const Vjp& v) {
  v.to(0, v.grad());
  v.to_if_wanted(2, [&] { return index_select(v.grad(), v.x(1), v.get<AlongDim>().dim); });
}

void cumsum_rule(const Vjp& v) {
  const int dim = v.get<AlongDim>().dim;
  v.to_x(flip(cumsum(flip(v.grad(), dim), dim), dim));
}

/// dx[k] = y[k - 1] * s[k] with s[k] = g[k] + x[k + 1] * s[k + 1] and y[-1] = 1. Each step of the
/// loop doubles the number of terms in s[k]; a[k] is the product of as many elements behind x[k].
/// There is no division, so zeros and higher derivatives need no special case. It computes in f64,
/// because partial products leave f32's range more often than the result does.
void cumprod_rule(const Vjp& v) {
  const int dim = v.get<AlongDim>().dim;
  const int64_t n = v.x().size(dim);
  if (n == 0) return v.to_x(v.grad());
  const Tensor x = v.x().to(DType::f64);
  Tensor s = v.grad().to(DType::f64), a = x.narrow(dim, 1, n - 1);
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor parts[] = {s.narrow(dim, 0, n - step) + a * s.narrow(dim, step, n - step),
                            s.narrow(dim, n - step, step)};
    s = cat(parts, dim);
    const int64_t left = n - 2 * step;
    if (left > 0) a = a.narrow(dim, 0, left) * a.narrow(dim, step, left);
  }
  const Tensor one = Tensor::ones({}, DType::f64, x.device());
  const Tensor before[] = {one.broadcast_to(x.narrow(dim, 0, 1).shape()),
                           cumprod(x.narrow(dim, 0, n - 1), dim)};
  v.to_x((cat(before, dim) * s).to(v.x().dtype()));
}

}  // namespace wick::tape
