// Gradients of softmax and norms: these functions check shapes and call the backend. If a gradient
// of their results is needed, they are composed of other ops, in the order of the backend's
// kernels.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

/// Errors: grad's dtype, device or shape isn't x's.
void check_grad(Op op, const Tensor& x, const Tensor& grad) {
  check_operand(op, x);
  check_same(op, x, grad);
  if (grad.shape() == x.shape()) return;
  throw Error(name(op), "shapes differ", fmt::format("{}, grad {}", x.str(), grad.str()),
              "the gradient must have the result's shape");
}

Tensor softmax_grad_along(Op op, const Tensor& y, const Tensor& grad, int dim) {
  check_grad(op, y, grad);
  const int d = resolve_dim(name(op).data(), dim, y.rank());
  if (!tape::is_wanted(y, grad)) return apply({op, {&y, &grad}, AlongDim{d}});
  const DType wide = tape::wide(y.dtype());
  const Tensor v = y.to(wide), g = grad.to(wide);
  return (op == Op::softmax_grad ? v * (g - sum(g * v, d, true)) : g - exp(v) * sum(g, d, true))
      .to(y.dtype());
}

/// Shape of the means, and of the scales, of norm_grad.
Shape rows_of(const Tensor& x, const NormKind& kind) {
  if (kind.groups != 0) return Shape{x.size(0), x.size(1)};
  std::vector<int64_t> sizes;
  for (int d = 0; d + 1 < x.rank(); ++d) sizes.push_back(x.size(d));
  return Shape(sizes);
}

ResultSpec checked_norm_grad(const OpCall& call) {
  const Tensor &x = call.x(0), &grad = call.x(1), &weight = call.x(2);
  const NormKind& kind = call.get<NormKind>();
  check_grad(call.op, x, grad);
  const int least = kind.groups != 0 ? 2 : 1;
  if (x.rank() < least || kind.groups < 0 || (kind.groups != 0 && x.size(1) % kind.groups != 0)) {
    throw Error(call.name(), "groups don't fit",
                fmt::format("x {}, {} groups", x.str(), kind.groups),
                "need x [.., d], or x [b, c, ..] and groups that divide the channels");
  }
  if (weight.defined()) {
    check_device(call.name(), x, weight);
    const int64_t size = kind.groups != 0 ? x.size(1) : x.size(-1);
    if (weight.rank() != 1 || weight.size(0) != size ||
        (weight.dtype() != x.dtype() && weight.dtype() != DType::f32)) {
      throw Error(call.name(), "operands don't fit",
                  fmt::format("x {}, weight {}", x.str(), weight.str()),
                  fmt::format("need a weight [{}] in x's dtype or f32", size));
    }
  }
  return like(x);
}

/// The shape of pairs: a dim of size 2, then the dims that aren't in a bit mask.
Shape pair_without(const Shape& shape, uint32_t dims) {
  std::vector<int64_t> sizes{2};
  for (int d = 0; d < shape.rank(); ++d) {
    if ((dims >> d & 1) == 0) sizes.push_back(shape[d]);
  }
  return Shape(sizes);
}

ResultSpec statistics_of(const OpCall& call) {
  const Shape rows = rows_of(call.x(), call.get<NormKind>());
  return dense(tape::wide(call.x().dtype()), pair_without(rows, 0));
}

ResultSpec norm_sums_result(const OpCall& call) {
  return dense(call.x(2).dtype(), pair_without(call.x().shape(), call.get<Reduction>().dims));
}

/// norm_grad composed of other ops, in f32 (f64 for f64).
NormGradient composed_norm_grad(const Tensor& x, const Tensor& grad, const Tensor& weight,
                                const NormKind& kind) {
  const DType wide = tape::wide(x.dtype());
  Tensor v = x.to(wide), g = grad.to(wide);
  if (weight.defined()) {
    Tensor w = weight.to(wide);
    if (kind.groups != 0) {
      std::vector<int64_t> sizes(static_cast<size_t>(x.rank() - 1), 1);
      sizes[0] = x.size(1);
      w = w.reshape(Shape(sizes));
    }
    g = g * w;
  }
  if (kind.groups != 0) {
    const int64_t rows = x.size(0) * kind.groups;
    const Shape as_rows{rows, rows == 0 ? 0 : x.elems() / rows};
    v = v.reshape(as_rows), g = g.reshape(as_rows);
  }
  Tensor m, dx;
  if (kind.centred) {
    m = mean(v, -1, true);
    v = v - m;
  }
  const Tensor r = rsqrt(affine(mean(sqr(v), -1, true), 1.0, static_cast<double>(kind.eps)));
  if (kind.centred) {
    const Tensor h = v * r;
    dx = r * (g - mean(g, -1, true) - h * mean(g * h, -1, true));
  } else {
    m = Tensor::zeros(r.shape(), wide, x.device());
    dx = r * (g - v * sqr(r) * mean(g * v, -1, true));
  }
  const Shape rows = rows_of(x, kind);
  const auto of_rows = [&](const Tensor& t) {
    if (kind.groups == 0) return t.reshape(rows);
    const int64_t each = x.size(1) / kind.groups;
    return t.reshape({x.size(0), kind.groups, 1})
        .broadcast_to({x.size(0), kind.groups, each})
        .reshape(rows);
  };
  const Tensor both[] = {of_rows(m).unsqueeze(0), of_rows(r).unsqueeze(0)};
  return {dx.reshape(x.shape()).to(x.dtype()), cat(both, 0)};
}

}  // namespace

namespace bodies {

const OpBody softmax_grad{[](const OpCall& call) { return like(call.x()); },
                          [](Backend& backend, const OpCall& call, const Tensor* out) {
                            backend.softmax_grad(out->mutable_view(), call.x(0).view(),
                                                 call.x(1).view(), call.get<AlongDim>().dim,
                                                 call.op == Op::log_softmax_grad);
                          }};
const OpBody norm_grad{.infer = checked_norm_grad,
                       .run =
                           [](Backend& backend, const OpCall& call, const Tensor* out) {
                             backend.norm_grad(out[0].mutable_view(), out[1].mutable_view(),
                                               call.x(0).view(), call.x(1).view(),
                                               view_of(call.x(2)), call.get<NormKind>());
                           },
                       .infer_second = statistics_of};
const OpBody norm_sums{
    norm_sums_result, [](Backend& backend, const OpCall& call, const Tensor* out) {
      const Shape& shape = call.x().shape();
      const auto spread = [&](const Tensor& t) {
        if (!t.defined()) return ConstView{};
        ConstView view = t.view();
        view.layout = view.layout.broadcast_to(shape);
        return view;
      };
      backend.norm_sums(out->mutable_view(), call.x(0).view(), call.x(1).view(), spread(call.x(3)),
                        spread(call.x(2)), call.get<Reduction>().dims);
    }};

}  // namespace bodies

Tensor softmax_grad(const Tensor& y, const Tensor& grad, int dim) {
  return softmax_grad_along(Op::softmax_grad, y, grad, dim);
}
Tensor log_softmax_grad(const Tensor& y, const Tensor& grad, int dim) {
  return softmax_grad_along(Op::log_softmax_grad, y, grad, dim);
}

NormGradient norm_grad(const Tensor& x, const Tensor& grad, const Tensor& weight, int64_t groups,
                       bool centred, float eps) {
  const OpCall call{Op::norm_grad, {&x, &grad, &weight}, NormKind{groups, centred, eps}};
  if (tape::is_wanted(x, grad) || tape::is_wanted(weight)) {
    checked_norm_grad(call);
    return composed_norm_grad(x, grad, weight, call.get<NormKind>());
  }
  auto [dx, statistics] = apply_pair(call);
  return {std::move(dx), std::move(statistics)};
}

Tensor norm_sums(const Tensor& x, const Tensor& grad, const Tensor& scale,
                 std::span<const int> dims, const Tensor& mean) {
  check_grad(Op::norm_sums, x, grad);
  const DType wide = tape::wide(x.dtype());
  const uint32_t reduced =
      dims.empty() ? (1u << x.rank()) - 1 : resolve_dims("norm_sums", dims, x.rank());
  bool fits = true, wanted = tape::is_wanted(x, grad);
  for (const Tensor* t : {&scale, &mean}) {
    if (t == &mean && !mean.defined()) continue;
    check_device("norm_sums", x, *t);
    fits = fits && t->dtype() == wide && t->rank() <= x.rank();
    for (int d = 1; fits && d <= t->rank(); ++d) {
      fits = t->size(-d) == 1 || t->size(-d) == x.size(-d);
    }
    wanted = wanted || tape::is_wanted(*t);
  }
  if (!fits) {
    throw Error("norm_sums", "operands don't fit",
                fmt::format("x {}, scale {}{}", x.str(), scale.str(),
                            mean.defined() ? ", mean " + mean.str() : std::string()),
                fmt::format("mean and scale must be {} and broadcast to x", name(wide)));
  }
  if (!wanted) {
    return apply({Op::norm_sums, {&x, &grad, &scale, &mean}, Reduction{reduced, false}});
  }
  const Tensor v = x.to(wide), g = grad.to(wide);
  const Tensor terms = mean.defined() ? g * ((v - mean) * scale) : g * v * scale;
  std::vector<int> all;
  for (int d = 0; d < x.rank(); ++d) {
    if ((reduced >> d & 1) != 0) all.push_back(d);
  }
  const Tensor both[] = {sum(terms, all).unsqueeze(0), sum(g, all).unsqueeze(0)};
  return cat(both, 0);
}

}  // namespace wick
