// Elementwise functions.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

Shape common_shape(const char* op, const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() ? a.shape() : broadcast_shapes(op, a.shape(), b.shape());
}

/// The view of x broadcast to a shape.
ConstView operand(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x.view();
  return {x.storage()->data(), stored(x.dtype()), x.layout().broadcast_to(shape)};
}

ResultSpec checked_unary(const OpCall& call) {
  check_operand(call.op, call.x(), call.called_as);
  return like(call.x());
}

ResultSpec checked_test(const OpCall& call) {
  check_operand(call.op, call.x(), call.called_as);
  return dense(DType::boolean, call.x().shape());
}

Shape checked_pair(const OpCall& call) {
  check_operand(call.op, call.x(0), call.called_as);
  check_same(call.op, call.x(0), call.x(1), call.called_as);
  return common_shape(call.name(), call.x(0), call.x(1));
}

ResultSpec checked_binary(const OpCall& call) {
  const Shape shape = checked_pair(call);
  return dense(call.x().dtype(), shape);
}

ResultSpec checked_compare(const OpCall& call) { return dense(DType::boolean, checked_pair(call)); }

/// The smallest or largest value of an integer dtype.
int64_t end_of(DType dtype, bool largest) {
  const int bits = 8 * static_cast<int>(info(dtype).block_bytes);
  if (info(dtype).kind == DTypeKind::signed_integer) {
    const int64_t top = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    return largest ? top : -top - 1;
  }
  return largest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits)) : 0;
}

/// Converts clamp's bound for integers: rounds it inwards and clamps it to the dtype's range.
Scalar whole_bound(const Tensor& x, Scalar bound, bool is_low) {
  const int64_t least = end_of(x.dtype(), false), most = end_of(x.dtype(), true);
  if (!bound.is_integer) {
    if (std::isnan(bound.f)) {
      throw Error("clamp", "a bound is NaN", x.str(), "bounds of integers must not be NaN");
    }
    const double whole = is_low ? std::ceil(bound.f) : std::floor(bound.f);
    if (whole >= 0x1p63) return most;
    bound = whole < -0x1p63 ? Scalar(least) : Scalar(static_cast<int64_t>(whole));
  }
  return bound.i < least ? least : bound.i > most ? most : bound.i;
}

/// Errors: the condition is undefined or has an unsupported dtype.
void check_condition(const char* op, const Tensor& condition) {
  if (!condition.defined()) throw Error(op, "undefined tensor");
  if (dtypes::kConditions.contains(condition.dtype())) return;
  throw Error(ErrorKind::type, op, "condition of this dtype", condition.str(),
              "use bool, u8, u32 or i64");
}

ResultSpec checked_where(const OpCall& call) {
  const Tensor &condition = call.x(0), &a = call.x(1), &b = call.x(2);
  check_condition(call.name(), condition);
  check_operand(call.op, a, call.called_as);
  check_same(call.op, a, b, call.called_as);
  check_device(call.name(), condition, a);
  const Shape values = common_shape(call.name(), a, b);
  return dense(a.dtype(), condition.shape() == values
                              ? values
                              : broadcast_shapes(call.name(), condition.shape(), values));
}

}  // namespace

namespace bodies {

const OpBody unary{checked_unary, [](Backend& backend, const OpCall& call, const Tensor* out) {
                     backend.unary(call.op, out->mutable_view(), call.x().view());
                   }};
const OpBody unary_with{checked_unary, [](Backend& backend, const OpCall& call, const Tensor* out) {
                          const auto& [p, q] = call.get<Numbers>();
                          backend.unary_with(call.op, out->mutable_view(), call.x().view(), p, q);
                        }};
const OpBody test{checked_test, [](Backend& backend, const OpCall& call, const Tensor* out) {
                    backend.test(call.op, out->mutable_view(), call.x().view());
                  }};
const OpBody binary{checked_binary, [](Backend& backend, const OpCall& call, const Tensor* out) {
                      backend.binary(call.op, out->mutable_view(), operand(call.x(0), out->shape()),
                                     operand(call.x(1), out->shape()));
                    }};
const OpBody compare{checked_compare, [](Backend& backend, const OpCall& call, const Tensor* out) {
                       backend.compare(call.op, out->mutable_view(),
                                       operand(call.x(0), out->shape()),
                                       operand(call.x(1), out->shape()));
                     }};
const OpBody where{checked_where, [](Backend& backend, const OpCall& call, const Tensor* out) {
                     const Shape& shape = out->shape();
                     backend.where(out->mutable_view(), operand(call.x(0), shape),
                                   operand(call.x(1), shape), operand(call.x(2), shape));
                   }};

}  // namespace bodies

namespace {

/// bitwise_not of bool is computed by logical_not.
Op op_for(Op op, const Tensor& x) {
  const bool truth = op == Op::bitwise_not && x.defined() && x.dtype() == DType::boolean;
  return truth ? Op::logical_not : op;
}

}  // namespace

// clang-format off
#define WICK_UNARY(name, ...) \
  Tensor name(const Tensor& x) { return apply({op_for(Op::name, x), {&x}}); }
#define WICK_TEST(name, ...) Tensor name(const Tensor& x) { return apply({Op::name, {&x}}); }
#define WICK_BINARY(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return apply({Op::name, {&a, &b}}); }
#define WICK_COMPARE(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return apply({Op::name, {&a, &b}}); }
#include "wick/op/ops.def"
// clang-format on

namespace {

/// A scalar tensor of a number in x's dtype. Errors: an integer dtype can't represent the number.
Tensor beside(const char* op, const Tensor& x, Scalar number) {
  if (!x.defined()) throw Error(op, "undefined tensor");
  if (is_integer(x.dtype())) {
    const int64_t least = end_of(x.dtype(), false), most = end_of(x.dtype(), true);
    const bool fits = number.is_integer ? number.i >= least && number.i <= most
                                        : std::trunc(number.f) == number.f &&
                                              number.f >= static_cast<double>(least) &&
                                              number.f < static_cast<double>(most) + 1;
    if (!fits) {
      throw Error(ErrorKind::type, op, "a number out of the dtype's range",
                  fmt::format("{}, {}", x.str(), number.f), "convert the tensor first");
    }
  }
  return Tensor::full({}, number, x.dtype(), x.device());
}

}  // namespace

#define WICK_OPERATOR(sign, function)                    \
  Tensor operator sign(const Tensor& x, Scalar number) { \
    return function(x, beside(#function, x, number));    \
  }                                                      \
  Tensor operator sign(Scalar number, const Tensor& x) { \
    return function(beside(#function, x, number), x);    \
  }
WICK_OPERATOR(+, add)
WICK_OPERATOR(-, sub)
WICK_OPERATOR(*, mul)
WICK_OPERATOR(/, div)
WICK_OPERATOR(<, lt)
WICK_OPERATOR(<=, le)
WICK_OPERATOR(>, gt)
WICK_OPERATOR(>=, ge)
#undef WICK_OPERATOR

Tensor affine(const Tensor& x, Scalar mul, Scalar add) {
  return apply({Op::affine, {&x}, Numbers{mul, add}});
}

Tensor clamp(const Tensor& x, Scalar low, Scalar high) {
  check_operand(Op::clamp, x);
  if (is_integer(x.dtype())) {
    low = whole_bound(x, low, true);
    high = whole_bound(x, high, false);
  }
  return apply({Op::clamp, {&x}, Numbers{low, high}});
}

Tensor powf(const Tensor& x, Scalar exponent) { return apply({Op::powf, {&x}, Numbers{exponent}}); }

Tensor elu(const Tensor& x, Scalar alpha) { return apply({Op::elu, {&x}, Numbers{alpha}}); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return apply({Op::where, {&condition, &a, &b}});
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  check_condition("masked_fill", mask);
  check_operand(Op::where, x, "masked_fill");
  check_device("masked_fill", x, mask);
  const Shape shape = mask.shape() == x.shape()
                          ? x.shape()
                          : broadcast_shapes("masked_fill", mask.shape(), x.shape());
  if (!(shape == x.shape())) {
    throw Error("masked_fill", "mask larger than the tensor",
                "mask " + mask.str() + ", tensor " + x.str(), "the mask broadcasts to the tensor");
  }
  const Tensor filler = Tensor::full({}, value, x.dtype(), x.device());
  return apply({Op::where, {&mask, &filler, &x}, {}, "masked_fill"});
}

}  // namespace wick
