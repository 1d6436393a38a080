// softmax and norms: these functions check shapes and call the backend.
#include <fmt/format.h>

#include <initializer_list>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

void check_channels(Op op, const Tensor& x) {
  check_operand(op, x);
  if (x.rank() < 2) throw Error(name(op), "rank below 2", x.str(), "need x [b, c, ..]");
}

/// Errors: a defined vector's size isn't x's number of channels, or its dtype doesn't fit.
void check_by_channel(Op op, const Tensor& x, std::initializer_list<const Tensor*> vectors) {
  for (const Tensor* vector : vectors) {
    if (!vector->defined()) continue;
    check_device(name(op).data(), x, *vector);
    if (vector->rank() == 1 && vector->size(0) == x.size(1) &&
        (vector->dtype() == x.dtype() || vector->dtype() == DType::f32)) {
      continue;
    }
    throw Error(name(op), "need one number per channel",
                fmt::format("x {}, {}", x.str(), vector->str()),
                fmt::format("need [{}] in x's dtype or f32", x.size(1)));
  }
}

/// Errors: a weight or bias doesn't have the size of x's last dim, or its dtype doesn't fit.
void check_last_dim(const OpCall& call, std::initializer_list<const Tensor*> vectors,
                    const char* rule) {
  const Tensor& x = call.x();
  for (const Tensor* vector : vectors) {
    if (!vector->defined()) continue;
    check_device(call.name(), x, *vector);
    if (x.rank() >= 1 && vector->rank() == 1 && vector->size(0) == x.size(-1) &&
        (vector->dtype() == x.dtype() || vector->dtype() == DType::f32)) {
      continue;
    }
    const Tensor& weight = call.x(1);
    throw Error(call.name(), "operands don't fit",
                vectors.size() == 1 ? fmt::format("x {}, weight {}", x.str(), weight.str())
                                    : fmt::format("x {}, weight {}, bias {}", x.str(), weight.str(),
                                                  call.x(2).str()),
                rule);
  }
}

ResultSpec checked_rms_norm(const OpCall& call) {
  check_operand(call.op, call.x());
  check_device(call.name(), call.x(0), call.x(1));
  check_last_dim(call, {&call.x(1)}, "need x [.., d] and weight [d] in x's dtype or f32");
  return like(call.x());
}

ResultSpec checked_layer_norm(const OpCall& call) {
  const Tensor& x = call.x();
  check_operand(call.op, x);
  check_last_dim(call, {&call.x(1), &call.x(2)},
                 "need x [.., d], weight and bias [d] in x's dtype or f32");
  if (x.rank() < 1) throw Error("layer_norm", "no dimension", x.str(), "need x [.., d]");
  return like(x);
}

ResultSpec checked_group_norm(const OpCall& call) {
  const Tensor& x = call.x();
  const int64_t groups = call.get<Groups>().count;
  check_channels(call.op, x);
  if (groups < 1 || x.size(1) % groups != 0) {
    throw Error("group_norm", "channels don't divide",
                fmt::format("{}, {} groups", x.str(), groups),
                "need groups of 1 or more that divide the channels");
  }
  check_by_channel(call.op, x, {&call.x(1), &call.x(2)});
  return like(x);
}

ResultSpec checked_batch_norm(const OpCall& call) {
  check_channels(call.op, call.x());
  check_device(call.name(), call.x(1), call.x(2));  // mean and variance must be defined
  check_by_channel(call.op, call.x(), {&call.x(1), &call.x(2), &call.x(3), &call.x(4)});
  return like(call.x());
}

Tensor softmax_along(Op op, const Tensor& x, int dim) {
  check_operand(op, x);
  return apply({op, {&x}, AlongDim{resolve_dim(name(op).data(), dim, x.rank())}});
}

}  // namespace

namespace bodies {

const OpBody softmax{[](const OpCall& call) { return like(call.x()); },
                     [](Backend& backend, const OpCall& call, const Tensor* out) {
                       backend.softmax(out->mutable_view(), call.x().view(),
                                       call.get<AlongDim>().dim, call.op == Op::log_softmax);
                     }};
const OpBody rms_norm{checked_rms_norm,
                      [](Backend& backend, const OpCall& call, const Tensor* out) {
                        backend.rms_norm(out->mutable_view(), call.x(0).view(), call.x(1).view(),
                                         call.get<Epsilon>().eps);
                      }};
// Graphs alone have calls of rms_norm_pair and rms_norm_add (graph/fuse*.cpp), with checked
// operands.
const OpBody rms_norm_pair{[](const OpCall& call) { return like(call.x()); },
                           [](Backend& backend, const OpCall& call, const Tensor* out) {
                             backend.rms_norm_pair(
                                 {out[0].mutable_view(), call.x(0).view(), call.x(1).view()},
                                 {out[1].mutable_view(), call.x(2).view(), call.x(3).view()},
                                 call.get<Epsilon>().eps);
                           }};
const OpBody rms_norm_add{[](const OpCall& call) { return like(call.x()); },
                          [](Backend& backend, const OpCall& call, const Tensor* out) {
                            backend.rms_norm_add(
                                {out->mutable_view(), call.x(0).view(), call.x(1).view()},
                                call.x(2).view(), call.get<Epsilon>().eps);
                          }};
const OpBody layer_norm{
    checked_layer_norm, [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.layer_norm(out->mutable_view(), call.x().view(), view_of(call.x(1)),
                         view_of(call.x(2)), call.get<Epsilon>().eps);
    }};
const OpBody group_norm{checked_group_norm,
                        [](Backend& backend, const OpCall& call, const Tensor* out) {
                          const auto& [groups, eps] = call.get<Groups>();
                          backend.group_norm(out->mutable_view(), call.x().view(), groups,
                                             view_of(call.x(1)), view_of(call.x(2)), eps);
                        }};
const OpBody batch_norm{
    checked_batch_norm, [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.batch_norm(out->mutable_view(), call.x(0).view(), call.x(1).view(), call.x(2).view(),
                         view_of(call.x(3)), view_of(call.x(4)), call.get<Epsilon>().eps);
    }};

}  // namespace bodies

Tensor softmax(const Tensor& x, int dim) { return softmax_along(Op::softmax, x, dim); }
Tensor log_softmax(const Tensor& x, int dim) { return softmax_along(Op::log_softmax, x, dim); }

Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps) {
  return apply({Op::rms_norm, {&x, &weight}, Epsilon{eps}});
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps) {
  return apply({Op::layer_norm, {&x, &weight, &bias}, Epsilon{eps}});
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                  float eps) {
  return apply({Op::group_norm, {&x, &weight, &bias}, Groups{groups, eps}});
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, float eps) {
  return apply({Op::batch_norm, {&x, &mean, &variance, &weight, &bias}, Epsilon{eps}});
}

BatchNorm batch_norm_of_batch(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              float eps) {
  check_channels(Op::batch_norm, x);
  check_by_channel(Op::batch_norm, x, {&weight, &bias});
  std::vector<int> dims = {0};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
  // Computes in f32 (f64 for f64), so that only the results are rounded to x's dtype.
  const DType dtype = tape::wide(x.dtype());
  const auto widened = [&](const Tensor& t) { return t.defined() ? t.to(dtype) : t; };
  const Tensor wide = x.to(dtype);
  const Tensor m = mean(wide, dims), v = var(wide, dims, false, 0);
  const Tensor y = batch_norm(wide, m, v, widened(weight), widened(bias), eps);
  return {y.to(x.dtype()), m.to(x.dtype()), v.to(x.dtype())};
}

}  // namespace wick
