// Gradients of reductions, softmax and norms.

#include <array>
#include <cmath>

#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::GradientCheck;
using test::Inputs;
using test::numbers;

constexpr std::array kOuter = {0, 2};

/// Checks a reduction over all dims, some dims, and one kept dim.
void check_reduction(GradientCheck& check, Tensor (*f)(const Tensor&, std::span<const int>, bool)) {
  const std::vector<Tensor> x = {numbers({2, 3, 4}, 15)};
  constexpr std::array middle = {-2};
  check.twice(
      "of all", [=](Inputs i) { return f(i[0], {}, false); }, x);
  check.twice(
      "of some", [=](Inputs i) { return f(i[0], kOuter, false); }, x);
  check.twice(
      "of one, kept", [=](Inputs i) { return f(i[0], middle, true); }, x);
}

#define WICK_REDUCE(name, ...) \
  WICK_GRADIENT_CHECK(name) { check_reduction(check, &wick::name); }
#include "wick/op/ops.def"

WICK_GRADIENT_CHECK(var) {
  check_reduction(check, [](const Tensor& x, std::span<const int> dims, bool keep) {
    return var(x, dims, keep);
  });
  check.twice("without correction", [](Inputs i) { return var(i[0], kOuter, false, 0); },
              {numbers({2, 3, 4}, 15)});
}
WICK_GRADIENT_CHECK(logsumexp) { check_reduction(check, &logsumexp); }

TEST(GradientOf, ProductsOfZeros) {
  GradientCheck check(Op::prod);
  for (const std::vector<double>& values : {std::vector<double>{2, 0, 3}, {0, 5, 0}}) {
    check.twice("with zeros", [](Inputs i) { return prod(i[0]); }, {Tensor::from(values, {3})});
  }
  const std::vector<double> some{2, 0, 3, 1, 5, 0, -1, 4, 0, 0, 2, 3};
  check.twice("over outer dims", [](Inputs i) { return prod(i[0], kOuter, false); },
              {Tensor::from(some, {2, 3, 2})});
  // As many dims as a shape may have, of which none has several elements to multiply.
  const int last[] = {7};
  check.twice("over a dim of size 1", [&](Inputs i) { return prod(i[0], last, true); },
              {numbers({2, 1, 3, 1, 1, 1, 1, 1}, 16)});
}
TEST(GradientOf, TiesIsShared) {
  const Tensor ties = Tensor::from(std::vector<double>{1, 3, 3}, {3}).requires_grad();
  EXPECT_EQ(gradients(max(ties), std::span(&ties, 1))[0].to_vector<double>(),
            std::vector<double>({0, 0.5, 0.5}));
}

WICK_GRADIENT_CHECK(softmax) {
  for (int dim : {0, 1}) {
    check.twice("along a dim", [=](Inputs i) { return softmax(i[0], dim); }, {numbers({3, 6}, 7)});
  }
}
WICK_GRADIENT_CHECK(log_softmax) {
  for (int dim : {0, -1}) {
    check.twice("along a dim", [=](Inputs i) { return log_softmax(i[0], dim); },
                {numbers({3, 6}, 7)});
  }
}
WICK_GRADIENT_CHECK(rms_norm) {
  check.twice("of rows", [](Inputs i) { return rms_norm(i[0], i[1], 1e-3f); },
              {numbers({2, 3, 6}, 7), numbers({6}, 8)});
}
WICK_GRADIENT_CHECK(softmax_grad) {
  for (int dim : {0, 1}) {
    check.twice("along a dim", [=](Inputs i) { return softmax_grad(i[0], i[1], dim); },
                {numbers({3, 5}, 7, 0, 1), numbers({3, 5}, 8)});
  }
}
WICK_GRADIENT_CHECK(log_softmax_grad) {
  for (int dim : {0, -1}) {
    check.twice("along a dim", [=](Inputs i) { return log_softmax_grad(i[0], i[1], dim); },
                {numbers({3, 5}, 7, -2, 0), numbers({3, 5}, 8)});
  }
}
WICK_GRADIENT_CHECK(norm_grad) {
  const Tensor x = numbers({2, 2, 6}, 7), g = numbers({2, 2, 6}, 8), w = numbers({6}, 9);
  for (const bool centred : {true, false}) {
    check.twice("of rows",
                [=](Inputs i) { return norm_grad(i[0], i[1], i[2], 0, centred, 1e-3f).x; },
                {x, g, w});
    check.once("its statistics",
               [=](Inputs i) { return norm_grad(i[0], g, {}, 0, centred, 1e-3f).statistics; }, {x});
  }
  check.twice("of groups", [](Inputs i) { return norm_grad(i[0], i[1], i[2], 2, true, 1e-3f).x; },
              {numbers({2, 4, 3}, 1), numbers({2, 4, 3}, 2), numbers({4}, 3)});
}
WICK_GRADIENT_CHECK(norm_sums) {
  const std::vector<Tensor> x = {numbers({2, 3, 4}, 1), numbers({2, 3, 4}, 2), numbers({3, 1}, 3),
                                 numbers({2, 1, 4}, 4)};
  check.twice(
      "with a mean", [](Inputs i) { return norm_sums(i[0], i[1], i[2], kOuter, i[3]); }, x);
  check.twice("without a mean", [](Inputs i) { return norm_sums(i[0], i[1], i[2], {}); },
              {x[0], x[1], x[2]});
}
WICK_GRADIENT_CHECK(layer_norm) {
  const Tensor x = numbers({2, 2, 6}, 7), w = numbers({6}, 8), b = numbers({6}, 10);
  check.twice("of rows", [](Inputs i) { return layer_norm(i[0], i[1], i[2], 1e-3f); }, {x, w, b});
  check.twice("alone", [](Inputs i) { return layer_norm(i[0], {}, {}, 1e-3f); }, {x});
  check.twice("without a weight", [](Inputs i) { return layer_norm(i[0], {}, i[1], 1e-3f); },
              {x, b});
}
WICK_GRADIENT_CHECK(group_norm) {
  const Tensor x = numbers({2, 4, 3}, 1), w = numbers({4}, 2), b = numbers({4}, 3);
  check.twice("of groups", [](Inputs i) { return group_norm(i[0], 2, i[1], i[2], 1e-3f); },
              {x, w, b});
  check.twice("alone", [](Inputs i) { return group_norm(i[0], 1, {}, {}, 1e-3f); }, {x});
  check.twice("without a weight, of images",
              [](Inputs i) { return group_norm(i[0], 2, {}, i[1], 1e-3f); },
              {numbers({2, 4, 2, 3}, 4), b});
}
WICK_GRADIENT_CHECK(batch_norm) {
  const Tensor x = numbers({3, 2, 2}, 1), w = numbers({2}, 2), b = numbers({2}, 3);
  check.twice("by given statistics",
              [](Inputs i) { return batch_norm(i[0], i[1], i[2], i[3], i[4], 1e-3f); },
              {x, numbers({2}, 4), numbers({2}, 5, 0.5, 2), w, b});
  check.twice("alone", [](Inputs i) { return batch_norm(i[0], i[1], i[2], {}, {}, 1e-3f); },
              {numbers({3, 2}, 6), numbers({2}, 4), numbers({2}, 5, 0.5, 2)});
  check.twice("without a weight, of images",
              [](Inputs i) { return batch_norm(i[0], i[1], i[2], {}, i[3], 1e-3f); },
              {numbers({2, 2, 2, 3}, 6), numbers({2}, 4), numbers({2}, 5, 0.5, 2), b});
  check.twice("by the batch's",
              [](Inputs i) { return batch_norm_of_batch(i[0], i[1], i[2], 1e-3f).y; }, {x, w, b});
}

/// Squares of large f16 numbers overflow in f16.
TEST(GradientOf, NormsOfLargeNumbersInHalfPrecision) {
  const Tensor x = numbers({2, 8}, 3, -900, 900), g = numbers({2, 8}, 4),
               w = numbers({8}, 5, 0.5, 2);
  const auto slopes = [&](const auto& f, DType dtype) {
    const Tensor leaves[] = {x.to(DType::f16).to(dtype).requires_grad(),
                             w.to(DType::f16).to(dtype).requires_grad()};
    std::vector<double> all;
    for (const Tensor& t : gradients(f(leaves[0], leaves[1]), leaves, g.to(DType::f16).to(dtype))) {
      for (const double v : t.to(DType::f64).to_vector<double>()) all.push_back(v);
    }
    return all;
  };
  const auto rms = [](const Tensor& a, const Tensor& b) { return rms_norm(a, b, 1e-5f); };
  const auto layer = [](const Tensor& a, const Tensor& b) { return layer_norm(a, b, {}, 1e-5f); };
  const auto expect_close = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], 2e-3 * (1e-3 + std::abs(wanted[i]))) << i;
    }
  };
  expect_close(slopes(rms, DType::f16), slopes(rms, DType::f64));
  expect_close(slopes(layer, DType::f16), slopes(layer, DType::f64));
  const auto group = [](const Tensor& a, const Tensor& b) { return group_norm(a, 2, b); };
  expect_close(slopes(group, DType::f16), slopes(group, DType::f64));
  const auto batch = [](const Tensor& a, const Tensor& b) {
    return batch_norm_of_batch(a.reshape({4, 2, 2}), b.narrow(0, 0, 2)).y.reshape({2, 8});
  };
  expect_close(slopes(batch, DType::f16), slopes(batch, DType::f64));
}

/// Recording gradients changes no bit of a result.
TEST(GradientOf, NormsAreThoseWithoutGradients) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3}) {
    const Tensor x = numbers({3, 6, 35}, 1).to(dtype), w = numbers({6}, 2).to(dtype),
                 b = numbers({6}, 3).to(dtype), m = numbers({6}, 4).to(dtype),
                 v = numbers({6}, 5, 0.5, 2).to(dtype);
    const std::vector<Tensor> plain = {x, w, b, m, v};
    std::vector<Tensor> leaves;
    for (const Tensor& t : plain) leaves.push_back(t.requires_grad());
    const auto bits = [](const Tensor& t) { return t.to(DType::f64).to_vector<double>(); };
    const auto expect_same = [&](const char* what, const auto& f) {
      const Tensor with = f(leaves), without = f(plain);
      EXPECT_TRUE(with.needs_grad()) << what;
      EXPECT_FALSE(without.needs_grad()) << what;
      EXPECT_EQ(bits(with), bits(without)) << what << " " << name(dtype);
    };
    expect_same("group_norm", [](Inputs i) { return group_norm(i[0], 3, i[1], i[2]); });
    expect_same("batch_norm", [](Inputs i) { return batch_norm(i[0], i[3], i[4], i[1], i[2]); });
    expect_same("batch_norm_of_batch",
                [](Inputs i) { return batch_norm_of_batch(i[0], i[1], i[2]).y; });
    expect_same("its variance", [](Inputs i) { return batch_norm_of_batch(i[0]).variance; });
    expect_same("var", [](Inputs i) { return var(i[0], kOuter); });
  }
}

}  // namespace
}  // namespace wick
