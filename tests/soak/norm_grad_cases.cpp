// Gradients of softmax and norms.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/soak/soak.h"
#include "wick/tensor/ops.h"

namespace wick::soak {
namespace {

/// The dtype of statistics and sums.
DType compute_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// A shape of at least two dims, [b, c, ..], with channels that `groups` divides.
Shape grouped_shape(Case& c, int64_t groups) {
  const int64_t channels = groups * c.between(1, 3), batch = c.between(1, 3);
  std::vector<int64_t> sizes = {batch, channels};
  int64_t left = std::max<int64_t>(1, c.most_elems / batch / channels);
  for (int64_t i = c.below(3); i > 0; --i) sizes.push_back(c.size(left)), left /= sizes.back();
  return Shape(sizes);
}

}  // namespace

void softmax_grad_case(Case& c, Op op) {
  const DType dtype = c.float_dtype();
  const Shape shape = c.shape(1, 8);
  const Operand y = c.operand(dtype, shape), grad = c.operand(dtype, shape);
  const int dim = static_cast<int>(c.below(shape.rank()));
  const bool log = op == Op::log_softmax_grad;
  c.note(fmt::format("dim {}", dim));
  int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  const int64_t n = shape[dim], rows = n == 0 ? 0 : shape.elems() / n;
  Array dx(dtype, shape);
  Bound bound{1.0L, std::vector<Real>(dx.v.size())};
  for (int64_t row = 0; row < rows; ++row) {
    const auto at = [&](int64_t i) { return (row / inner * n + i) * inner + row % inner; };
    Real sum = 0, size = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Real term = log ? grad.a[at(i)] : grad.a[at(i)] * y.a[at(i)];
      sum += term, size += std::fabs(term);
    }
    const Real unit = step(dtype) * (static_cast<Real>(n) + 16);
    for (int64_t i = 0; i < n; ++i) {
      const Real v = y.a[at(i)], g = grad.a[at(i)], by = log ? std::exp(v) : v;
      dx[at(i)] = log ? g - by * sum : by * (g - sum);
      bound.slack[static_cast<size_t>(at(i))] = unit * (std::fabs(by) * size * (1 + std::fabs(v)) +
                                                        (log ? 1 : std::fabs(by)) * std::fabs(g));
    }
  }
  c.expect(log ? log_softmax_grad(y.x, grad.x, dim) : softmax_grad(y.x, grad.x, dim), dx, bound);
}

void norm_grad_case(Case& c) {
  const DType dtype = c.float_dtype();
  const int64_t groups = c.one_in(2) ? c.between(1, 5) : 0;
  const bool centred = groups != 0 || c.one_in(2);
  const Shape shape = groups != 0 ? grouped_shape(c, groups) : c.shape(1, 8);
  const int64_t channels = shape[groups != 0 ? 1 : shape.rank() - 1];
  const Operand x = c.operand(dtype, shape), grad = c.operand(dtype, shape);
  const bool weighted = c.one_in(2);
  const Operand weight = c.operand(c.one_in(2) ? DType::f32 : dtype, {channels});
  const float eps = c.pick({1e-5f, 1e-2f, 1.0f});
  c.note(fmt::format("groups {} eps {}{}{}", groups, eps, weighted ? ", weight" : "",
                     centred ? "" : ", not centred"));
  const int64_t pixels = groups != 0 ? shape.elems() / (shape[0] * channels) : 1,
                n = groups != 0 ? channels / groups * pixels : channels;
  Array dx(dtype, shape);
  Bound bound{1.0L, std::vector<Real>(dx.v.size())};
  for (int64_t first = 0; n > 0 && first < shape.elems(); first += n) {
    const auto count = static_cast<Real>(n);
    const auto p = [&](int64_t i) {
      return grad.a[first + i] * (weighted ? weight.a[(first + i) / pixels % channels] : 1);
    };
    Real mean = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      mean += centred ? x.a[first + i] / count : 0;
      largest = std::max(largest, std::fabs(x.a[first + i]));
    }
    for (int64_t i = 0; i < n; ++i) {
      squares += (x.a[first + i] - mean) * (x.a[first + i] - mean) / count;
    }
    const Real r = 1 / std::sqrt(squares + static_cast<Real>(eps));
    const auto h = [&](int64_t i) { return (x.a[first + i] - mean) * r; };
    Real of_p = 0, of_ph = 0, size = 0, most = 0;
    for (int64_t i = 0; i < n; ++i) {
      of_p += centred ? p(i) / count : 0;
      of_ph += p(i) * h(i) / count;
      size = std::max(size, std::fabs(p(i)));
      most = std::max(most, std::fabs(h(i)));
    }
    // A sum has 32 additions to an accumulator, a tree of 7, and chunks of 4096. The error of the
    // mean is relative to the largest element, and those of the scale and of the products follow.
    const Real unit = step(dtype) * (std::min(count, Real{40}) + count / 4096 + 16);
    const Real slack = unit * 16 * r * size * (1 + largest * r) * (1 + most * most);
    for (int64_t i = 0; i < n; ++i) {
      dx[first + i] = r * ((p(i) - of_p) - h(i) * of_ph);
      bound.slack[static_cast<size_t>(first + i)] = slack;
    }
  }
  const NormGradient got =
      norm_grad(x.x, grad.x, weighted ? weight.x : Tensor(), groups, centred, eps);
  c.expect(got.x, dx, bound);
}

void norm_sums_case(Case& c) {
  const DType dtype = c.float_dtype(), wide = compute_dtype(dtype);
  const Shape shape = c.shape(1, 7);
  const Operand x = c.operand(dtype, shape), grad = c.operand(dtype, shape);
  const Operand scale = c.operand(wide, c.broadcasting(shape)),
                mean = c.operand(wide, c.broadcasting(shape));
  const bool has_mean = c.one_in(2);
  std::vector<int> dims;
  std::vector<int64_t> sizes = {2}, kept;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduced = c.one_in(2);
    if (reduced) dims.push_back(d);
    kept.push_back(reduced ? 1 : shape[d]);
    if (!reduced) sizes.push_back(shape[d]);
  }
  if (dims.empty()) sizes = {2}, kept.assign(kept.size(), 1);
  c.note(fmt::format("over {} dims{}", dims.size(), has_mean ? ", mean" : ""));
  Array sums(wide, Shape(sizes));
  Bound bound{1.0L, std::vector<Real>(sums.v.size())};
  const int64_t half = sums.elems() / 2;
  int64_t at = 0, count = 1;
  if (half > 0) count = std::max<int64_t>(shape.elems() / half, 1);
  const auto terms = static_cast<Real>(count);
  const Real unit = step(dtype) * (std::min(terms, Real{40}) + terms / 4096 + 16);
  for_each_index(shape, [&](std::span<const int64_t> index) {
    const int64_t to = broadcast_at(Shape(kept), index);
    const Real g = grad.a[at], v = x.a[at], r = scale.a[broadcast_at(scale.a.shape, index)];
    const Real m = has_mean ? mean.a[broadcast_at(mean.a.shape, index)] : 0;
    sums[to] += g * (v - m) * r;
    sums[half + to] += g;
    bound.slack[static_cast<size_t>(to)] +=
        unit * 4 * std::fabs(g * r) * (std::fabs(v) + std::fabs(m));
    bound.slack[static_cast<size_t>(half + to)] += unit * std::fabs(g);
    ++at;
  });
  c.expect(norm_sums(x.x, grad.x, scale.x, dims, has_mean ? mean.x : Tensor()), sums, bound);
}

}  // namespace wick::soak
