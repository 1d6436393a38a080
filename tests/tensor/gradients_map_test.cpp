// Gradients of elementwise functions. Every row with one or two operands is checked, including new
// ones.

#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::GradientCheck;
using test::Inputs;
using test::numbers;

/// Returns the least number at which a function of one operand is checked. The function is smooth
/// above it, except at steps and corners, which none of the random numbers hits.
double least(Op op) {
  switch (op) {
    case Op::sqrt:
    case Op::rsqrt:
    case Op::recip:
    case Op::log:
      return 0.3;
    case Op::log1p:
      return -0.7;
    default:
      return -2.1;
  }
}

#define WICK_UNARY(name, ...)                                            \
  WICK_GRADIENT_CHECK(name) {                                            \
    check.twice("of numbers", [](Inputs x) { return wick::name(x[0]); }, \
                {numbers({3, 4}, 1, least(Op::name), 2.2)});             \
  }
#define WICK_BINARY(name, ...)                                                         \
  WICK_GRADIENT_CHECK(name) {                                                          \
    check.twice("broadcast", [](Inputs x) { return wick::name(x[0], x[1]); },          \
                {numbers({3, 1, 4}, 1, 0.5, 2), numbers({2, 4}, 2, 0.6, 2.1)});        \
    check.twice("by a scalar", [](Inputs x) { return wick::name(x[1], x[0]); },        \
                {numbers({}, 3, 0.5, 2), numbers({2, 3}, 4, 0.6, 2.1)});               \
    check.twice("of one tensor", [](Inputs x) { return wick::name(x[0], sqr(x[0])); }, \
                {numbers({3, 2}, 5, 1.2, 2)});                                         \
  }
#include "wick/op/ops.def"

WICK_GRADIENT_CHECK(affine) {
  check.twice("of numbers", [](Inputs x) { return affine(x[0], 3.0, 1.0); }, {numbers({5}, 1)});
  check.twice("by whole numbers", [](Inputs x) { return affine(x[0], -2, 1); }, {numbers({5}, 1)});
}
WICK_GRADIENT_CHECK(clamp) {
  check.twice("of numbers", [](Inputs x) { return clamp(x[0], -1.0, 0.7); },
              {numbers({3, 4}, 13, -2.1, 2.1)});
}
WICK_GRADIENT_CHECK(powf) {
  check.twice("of positive numbers", [](Inputs x) { return powf(x[0], 2.5); },
              {numbers({5}, 14, 0.3, 2)});
  check.twice("of all numbers", [](Inputs x) { return powf(x[0], 3); }, {numbers({5}, 15)});
  check.twice("to the power 0", [](Inputs x) { return powf(x[0], 0) * x[0]; }, {numbers({5}, 15)});
}
WICK_GRADIENT_CHECK(elu) {
  check.twice("of numbers", [](Inputs x) { return elu(x[0], 0.8); },
              {numbers({3, 4}, 16, -2.1, 2.1)});
}
WICK_GRADIENT_CHECK(where) {
  const Tensor a = numbers({3, 1, 4}, 1), b = numbers({2, 4}, 2);
  const Tensor mask = gt(b, Tensor::full({}, 0.1, DType::f64));
  check.twice("broadcast", [=](Inputs x) { return where(mask, x[0], x[1]); }, {a, b});
  check.twice("masked_fill", [=](Inputs x) { return masked_fill(x[0], mask, 2); },
              {numbers({3, 2, 4}, 3)});
}

TEST(GradientOf, ElementsAtTheEdgesIsFinite) {
  const auto slope = [](const std::function<Tensor(const Tensor&)>& f, double at, DType dtype) {
    const Tensor x = Tensor::full({1}, at, dtype).requires_grad();
    return gradients(f(x), std::span(&x, 1))[0].to(DType::f64).item<double>();
  };
  const auto f = [](Tensor (*function)(const Tensor&)) { return function; };
  for (const DType dtype : {DType::f16, DType::f32}) {
    for (const double large : {300.0, 60000.0}) {
      EXPECT_EQ(slope(f(gelu), large, dtype), 1) << large;
      EXPECT_EQ(slope(f(gelu), -large, dtype), 0) << large;
      EXPECT_EQ(slope(f(gelu_erf), large, dtype), 1) << large;
      EXPECT_EQ(slope(f(silu), large, dtype), 1) << large;
    }
  }
  const Tensor ties = Tensor::from(std::vector<double>{1, 2}, {2}).requires_grad();
  EXPECT_EQ(
      gradients(sum(maximum(ties, ties.detach())), std::span(&ties, 1))[0].to_vector<double>(),
      std::vector<double>({0.5, 0.5}));
  const Tensor zero = Tensor::zeros({2}, DType::f64).requires_grad();
  EXPECT_EQ(gradients(sum(pow(zero, zero.detach())), std::span(&zero, 1))[0].to_vector<double>(),
            std::vector<double>({0, 0}));
}

}  // namespace
}  // namespace wick
