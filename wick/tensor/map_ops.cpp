// Elementwise functions.

#include <cmath>
#include <limits>

#include "wick/base/error.h"
#include "wick/tensor/arguments.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

Tensor test(Op op, const Tensor& x);

Tensor unary(Op op, const Tensor& x) {
  check_operand(op, x);
  if (op == Op::bitwise_not && x.dtype() == DType::boolean) return test(Op::logical_not, x);
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device()).unary(op, out.mutable_view(), x.view());
  if (tape::is_wanted(x)) tape::remember(out, op, {x});
  return out;
}

Tensor unary_with(Op op, const Tensor& x, Scalar p, Scalar q = 0) {
  check_operand(op, x);
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device()).unary_with(op, out.mutable_view(), x.view(), p, q);
  if (tape::is_wanted(x)) tape::remember(out, op, {x}, tape::Numbers{p, q});
  return out;
}

Tensor test(Op op, const Tensor& x) {
  check_operand(op, x);
  Tensor out = Tensor::empty(x.shape(), DType::boolean, x.device());
  backend(x.device()).test(op, out.mutable_view(), x.view());
  return out;
}

Shape common_shape(Op op, const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() ? a.shape()
                                : broadcast_shapes(name(op).data(), a.shape(), b.shape());
}

/// x broadcast to a shape, not as a call that is remembered.
ConstView operand(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x.view();
  return {x.storage()->data(), stored(x.dtype()), x.layout().broadcast_to(shape)};
}

Tensor binary(Op op, const Tensor& a, const Tensor& b) {
  check_operand(op, a);
  check_same(op, a, b);
  const Shape shape = common_shape(op, a, b);
  Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  backend(a.device()).binary(op, out.mutable_view(), operand(a, shape), operand(b, shape));
  if (tape::is_wanted(a, b)) tape::remember(out, op, {a, b});
  return out;
}

Tensor compare(Op op, const Tensor& a, const Tensor& b) {
  check_operand(op, a);
  check_same(op, a, b);
  const Shape shape = common_shape(op, a, b);
  Tensor out = Tensor::empty(shape, DType::boolean, a.device());
  backend(a.device()).compare(op, out.mutable_view(), operand(a, shape), operand(b, shape));
  return out;
}

/// The least or the largest number of an integer dtype.
int64_t end_of(DType dtype, bool largest) {
  const int bits = 8 * static_cast<int>(info(dtype).block_bytes);
  if (info(dtype).kind == DTypeKind::signed_integer) {
    const int64_t top = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    return largest ? top : -top - 1;
  }
  return largest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits)) : 0;
}

/// A bound as an integer of the dtype that holds the same numbers of it.
Scalar whole_bound(const Tensor& x, Scalar bound, bool is_low) {
  const int64_t least = end_of(x.dtype(), false), most = end_of(x.dtype(), true);
  if (!bound.is_integer) {
    if (std::isnan(bound.f)) {
      throw Error("clamp", "a bound is NaN", x.str(), "integers need numbers");
    }
    const double whole = is_low ? std::ceil(bound.f) : std::floor(bound.f);
    if (whole >= 0x1p63) return most;
    bound = whole < -0x1p63 ? Scalar(least) : Scalar(static_cast<int64_t>(whole));
  }
  return bound.i < least ? least : bound.i > most ? most : bound.i;
}

void check_condition(const char* op, const Tensor& condition) {
  if (!condition.defined()) throw Error(op, "undefined tensor");
  if (dtypes::kConditions.contains(condition.dtype())) return;
  throw Error(ErrorKind::type, op, "condition of this dtype", condition.str(),
              "use bool, u8, u32 or i64");
}

Tensor choose(const Tensor& condition, const Tensor& a, const Tensor& b, const Shape& shape) {
  Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  backend(a.device())
      .where(out.mutable_view(), operand(condition, shape), operand(a, shape), operand(b, shape));
  if (tape::is_wanted(a, b)) tape::remember(out, Op::where, {condition, a, b});
  return out;
}

}  // namespace

// clang-format off
#define WICK_UNARY(name, ...) Tensor name(const Tensor& x) { return unary(Op::name, x); }
#define WICK_TEST(name, ...) Tensor name(const Tensor& x) { return test(Op::name, x); }
#define WICK_BINARY(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return binary(Op::name, a, b); }
#define WICK_COMPARE(name, ...) \
  Tensor name(const Tensor& a, const Tensor& b) { return compare(Op::name, a, b); }
#include "wick/op/ops.def"
// clang-format on

Tensor affine(const Tensor& x, Scalar mul, Scalar add) {
  return unary_with(Op::affine, x, mul, add);
}

Tensor clamp(const Tensor& x, Scalar low, Scalar high) {
  check_operand(Op::clamp, x);
  if (is_integer(x.dtype())) {
    low = whole_bound(x, low, true);
    high = whole_bound(x, high, false);
  }
  return unary_with(Op::clamp, x, low, high);
}

Tensor powf(const Tensor& x, Scalar exponent) { return unary_with(Op::powf, x, exponent); }

Tensor elu(const Tensor& x, Scalar alpha) { return unary_with(Op::elu, x, alpha); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_condition("where", condition);
  check_operand(Op::where, a);
  check_same(Op::where, a, b);
  check_device("where", condition, a);
  const Shape values = common_shape(Op::where, a, b);
  const Shape shape =
      condition.shape() == values ? values : broadcast_shapes("where", condition.shape(), values);
  return choose(condition, a, b, shape);
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
  return choose(mask, Tensor::full({}, value, x.dtype(), x.device()), x, shape);
}

}  // namespace wick
