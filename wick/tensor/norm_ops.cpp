// softmax and norms: shapes checked, then the backend.
#include <fmt/format.h>

#include <initializer_list>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/arguments.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

void check_channels(Op op, const Tensor& x) {
  check_operand(op, x);
  if (x.rank() < 2) throw Error(name(op), "rank below 2", x.str(), "need x [b, c, ..]");
}

/// Vectors of one number a channel of x, or none.
void check_by_channel(Op op, const Tensor& x, std::initializer_list<const Tensor*> vectors) {
  for (const Tensor* vector : vectors) {
    if (!vector->defined()) continue;
    check_device(name(op).data(), x, *vector);
    if (vector->rank() == 1 && vector->size(0) == x.size(1) &&
        (vector->dtype() == x.dtype() || vector->dtype() == DType::f32)) {
      continue;
    }
    throw Error(name(op), "not one number a channel",
                fmt::format("x {}, {}", x.str(), vector->str()),
                fmt::format("need [{}] in x's dtype or f32", x.size(1)));
  }
}

ConstView view_of(const Tensor& t) { return t.defined() ? t.view() : ConstView{}; }

Tensor softmax_along(Op op, const Tensor& x, int dim) {
  check_operand(op, x);
  const int d = resolve_dim(name(op).data(), dim, x.rank());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device()).softmax(out.mutable_view(), x.view(), d, op == Op::log_softmax);
  if (tape::is_wanted(x)) tape::remember(out, op, {x}, d);
  return out;
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) { return softmax_along(Op::softmax, x, dim); }
Tensor log_softmax(const Tensor& x, int dim) { return softmax_along(Op::log_softmax, x, dim); }

Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps) {
  check_operand(Op::rms_norm, x);
  check_device("rms_norm", x, weight);
  if (x.rank() < 1 || weight.rank() != 1 || weight.size(0) != x.size(-1) ||
      (weight.dtype() != x.dtype() && weight.dtype() != DType::f32)) {
    throw Error("rms_norm", "operands don't fit",
                fmt::format("x {}, weight {}", x.str(), weight.str()),
                "need x [.., d] and weight [d] in x's dtype or f32");
  }
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device()).rms_norm(out.mutable_view(), x.view(), weight.view(), eps);
  if (tape::is_wanted(x, weight)) tape::remember(out, Op::rms_norm, {x, weight}, eps);
  return out;
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps) {
  check_operand(Op::layer_norm, x);
  for (const Tensor* t : {&weight, &bias}) {
    if (!t->defined()) continue;
    check_device("layer_norm", x, *t);
    if (x.rank() < 1 || t->rank() != 1 || t->size(0) != x.size(-1) ||
        (t->dtype() != x.dtype() && t->dtype() != DType::f32)) {
      throw Error("layer_norm", "operands don't fit",
                  fmt::format("x {}, weight {}, bias {}", x.str(), weight.str(), bias.str()),
                  "need x [.., d], weight and bias [d] in x's dtype or f32");
    }
  }
  if (x.rank() < 1) throw Error("layer_norm", "no dimension", x.str(), "need x [.., d]");
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device()).layer_norm(out.mutable_view(), x.view(), view_of(weight), view_of(bias), eps);
  if (tape::is_wanted(x) || tape::is_wanted(weight, bias)) {
    tape::remember(out, Op::layer_norm, {x, weight, bias}, eps);
  }
  return out;
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                  float eps) {
  check_channels(Op::group_norm, x);
  if (groups < 1 || x.size(1) % groups != 0) {
    throw Error("group_norm", "channels don't divide",
                fmt::format("{}, {} groups", x.str(), groups),
                "need groups of 1 or more that divide the channels");
  }
  check_by_channel(Op::group_norm, x, {&weight, &bias});
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device())
      .group_norm(out.mutable_view(), x.view(), groups, view_of(weight), view_of(bias), eps);
  if (tape::is_wanted(x) || tape::is_wanted(weight, bias)) {
    tape::remember(out, Op::group_norm, {x, weight, bias}, tape::Groups{groups, eps});
  }
  return out;
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, float eps) {
  check_channels(Op::batch_norm, x);
  check_device("batch_norm", mean, variance);  // which aren't to be left out
  check_by_channel(Op::batch_norm, x, {&mean, &variance, &weight, &bias});
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device())
      .batch_norm(out.mutable_view(), x.view(), mean.view(), variance.view(), view_of(weight),
                  view_of(bias), eps);
  if (tape::is_wanted(x) || tape::is_wanted(mean, variance) || tape::is_wanted(weight, bias)) {
    tape::remember(out, Op::batch_norm, {x, mean, variance, weight, bias}, eps);
  }
  return out;
}

BatchNorm batch_norm_of_batch(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              float eps) {
  check_channels(Op::batch_norm, x);
  check_by_channel(Op::batch_norm, x, {&weight, &bias});
  std::vector<int> dims = {0};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
  // All of it in the type that computes: nothing is rounded to x's dtype but what leaves.
  const DType dtype = tape::wide(x.dtype());
  const auto widened = [&](const Tensor& t) { return t.defined() ? t.to(dtype) : t; };
  const Tensor wide = x.to(dtype);
  const Tensor m = mean(wide, dims), v = var(wide, dims, false, 0);
  const Tensor y = batch_norm(wide, m, v, widened(weight), widened(bias), eps);
  return {y.to(x.dtype()), m.to(x.dtype()), v.to(x.dtype())};
}

}  // namespace wick
