// Gradient rules against central differences, twice over where the rule is made of ops, and what
// the tape promises beside them.

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::check_gradients;
using test::Function;
using test::numbers;
using Inputs = const std::vector<Tensor>&;

#define EXPECT_FAILS(call, text)                                \
  EXPECT_EQ(test::error_of([&] { (void)call; }).find(text), 0u) \
      << test::error_of([&] { (void)call; })

TEST(Gradient, Unary) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&);
    double low, high;
  };
  const Row rows[] = {
      {"neg", neg, -2, 2},      {"sqr", sqr, -2, 2},      {"sqrt", sqrt, 0.3, 3},
      {"rsqrt", rsqrt, 0.3, 3}, {"recip", recip, 0.5, 2}, {"exp", exp, -2, 2},
      {"log", log, 0.3, 3},     {"tanh", tanh, -2, 2},    {"sigmoid", sigmoid, -3, 3},
      {"silu", silu, -3, 3},
  };
  for (const Row& row : rows) {
    check_gradients(row.name, [&](Inputs x) { return row.f(x[0]); },
                    {numbers({3, 4}, 1, row.low, row.high)});
  }
}

TEST(Gradient, BinaryBroadcasts) {
  const Tensor a = numbers({3, 1, 4}, 1, 0.5, 2), b = numbers({2, 4}, 2, 0.5, 2);
  check_gradients("add", [](Inputs x) { return x[0] + x[1]; }, {a, b});
  check_gradients("sub", [](Inputs x) { return x[0] - x[1]; }, {a, b});
  check_gradients("mul", [](Inputs x) { return x[0] * x[1]; }, {a, b});
  check_gradients("div", [](Inputs x) { return x[0] / x[1]; }, {a, b});
  check_gradients("silu_mul", [](Inputs x) { return silu_mul(x[0], x[1]); }, {a, b});
  check_gradients("x * x", [](Inputs x) { return x[0] * x[0]; }, {a});
}

TEST(Gradient, Reductions) {
  const Tensor x = numbers({2, 3, 4}, 3);
  for (bool keep : {false, true}) {
    const int dims[] = {0, 2};
    check_gradients("sum", [&](Inputs i) { return sum(i[0], dims, keep); }, {x});
    check_gradients("mean", [&](Inputs i) { return mean(i[0], 1, keep); }, {x});
    check_gradients("sum of all", [&](Inputs i) { return sum(i[0]); }, {x});
  }
}

TEST(Gradient, Views) {
  const Tensor x = numbers({4, 3, 5}, 4);
  const auto check = [&](const char* name, const Function& f) { check_gradients(name, f, {x}); };
  check("narrow", [](Inputs i) { return i[0].narrow(0, 1, 2); });
  check("slice", [](Inputs i) { return i[0].slice(2, 0, 5, 2); });
  check("slice back", [](Inputs i) { return i[0].slice(0, 3, 0, -1); });
  check("transpose", [](Inputs i) { return i[0].transpose(0, -1); });
  check("permute", [](Inputs i) { return i[0].permute({2, 0, 1}); });
  check("broadcast", [](Inputs i) { return i[0].unsqueeze(0).broadcast_to({2, 4, 3, 5}); });
  check("reshape", [](Inputs i) { return i[0].reshape({2, 30}); });
  check("reshape of a transpose", [](Inputs i) { return i[0].t().reshape({60}); });
  check("chunk and cat", [](Inputs i) {
    const std::vector<Tensor> parts = i[0].chunk(2, 0);
    const Tensor turned[] = {parts[1], parts[0], parts[1]};
    return cat(turned, 0);
  });
  check("stack", [](Inputs i) {
    const Tensor rows[] = {i[0].narrow(0, 0, 1), i[0].narrow(0, 2, 1)};
    return stack(rows, 1);
  });
  check("clone", [](Inputs i) { return i[0].clone(); });
}

TEST(Gradient, Products) {
  const Tensor a = numbers({2, 1, 3, 4}, 5), b = numbers({3, 4, 2}, 6);
  check_gradients("matmul", [](Inputs x) { return matmul(x[0], x[1]); }, {a, b});
  check_gradients("matmul by itself", [](Inputs x) { return matmul(x[0], x[0].t()); }, {a});
}

TEST(Gradient, Norms) {
  const Tensor x = numbers({3, 6}, 7), w = numbers({6}, 8);
  check_gradients("softmax", [](Inputs i) { return softmax(i[0], 0); }, {x});
  check_gradients("log_softmax", [](Inputs i) { return log_softmax(i[0], -1); }, {x});
  check_gradients("rms_norm", [](Inputs i) { return rms_norm(i[0], i[1], 1e-3f); }, {x, w});
  check_gradients("layer_norm", [](Inputs i) { return layer_norm(i[0], i[1], i[2], 1e-3f); },
                  {x, w, numbers({6}, 10)});
  check_gradients("layer_norm alone", [](Inputs i) { return layer_norm(i[0], {}, {}, 1e-3f); },
                  {x});
  const Tensor angles = numbers({3, 2}, 9).to(DType::f32);
  const Tensor cosines = Tensor::full({3, 2}, 0.6, DType::f32), sines = angles;
  check_gradients("rope", [&](Inputs i) { return rope(i[0], cosines, sines); }, {x});
  check_gradients("rope_interleaved",
                  [&](Inputs i) { return rope_interleaved(i[0], cosines, sines); }, {x});
}

TEST(Gradient, Convolutions) {
  const Tensor x = numbers({2, 4, 7, 6}, 11), w = numbers({6, 2, 3, 2}, 12), b = numbers({6}, 13);
  for (const ConvParams& p :
       {ConvParams{.stride = {1, 1}, .padding = {0, 1}, .dilation = {1, 1}, .groups = 2},
        ConvParams{.stride = {3, 2}, .padding = {1, 0}, .dilation = {2, 1}, .groups = 2}}) {
    check_gradients("conv2d", [&](Inputs i) { return conv2d(i[0], i[1], i[2], p); }, {x, w, b});
    const Tensor turned = numbers({4, 3, 3, 2}, 14);
    for (int64_t extra : {0, 1}) {
      if (extra >= p.stride[0]) continue;
      check_gradients("conv_transpose2d",
                      [&](Inputs i) {
                        return conv_transpose2d(i[0], i[1], {}, p, {extra, 0});
                      },
                      {x, turned});
    }
  }
  check_gradients(
      "conv_transpose2d, padding beyond a stride",
      [&](Inputs i) {
        const ConvParams p{.stride = {1, 1}, .padding = {0, 0}, .dilation = {3, 3}, .groups = 1};
        return conv_transpose2d(i[0], i[1], {}, p, {2, 1});
      },
      {numbers({1, 2, 3, 3}, 15), numbers({2, 2, 2, 2}, 16)});
  check_gradients("conv1d",
                  [](Inputs i) {
                    return conv1d(i[0], i[1], {},
                                  {.stride = 2, .padding = 1, .dilation = 1, .groups = 1});
                  },
                  {numbers({2, 3, 8}, 17), numbers({4, 3, 3}, 18)});
}

TEST(Gradient, PoolsAndResampling) {
  const Tensor x = numbers({2, 2, 6, 5}, 19);
  const PoolParams p{.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}};
  test::expect_gradients("max_pool2d", [&](Inputs i) { return max_pool2d(i[0], p); }, {x});
  check_gradients("avg_pool2d", [&](Inputs i) { return avg_pool2d(i[0], p); }, {x});
  check_gradients(
      "avg_pool1d",
      [&](Inputs i) { return avg_pool1d(i[0], {.kernel = 2, .stride = 1, .padding = 1}); },
      {numbers({2, 2, 5}, 20)});
  check_gradients("upsample_nearest2d",
                  [](Inputs i) {
                    return upsample_nearest2d(i[0], {.size = {9, 10}});
                  },
                  {x});
  for (bool align : {false, true}) {
    check_gradients("upsample_bilinear2d",
                    [&](Inputs i) {
                      return upsample_bilinear2d(i[0], {.size = {9, 10}, .align_corners = align});
                    },
                    {x});
  }
  const Tensor leaf = x.requires_grad();
  const Tensor slope = gradients(sum(sqr(max_pool2d(leaf, p))), std::span(&leaf, 1), {}, true)[0];
  EXPECT_FAILS(backward(sum(slope)), "max_pool2d: no second derivative");
}

TEST(Gradient, CastsAndAffine) {
  check_gradients("affine", [](Inputs i) { return affine(i[0], 3.0, 1.0); }, {numbers({5}, 1)});
  const Tensor x = Tensor::full({3}, 2.0, DType::f32).requires_grad();
  const Tensor given = gradients(sum(sqr(x.to(DType::f64))), std::span(&x, 1))[0];
  EXPECT_EQ(given.dtype(), DType::f32);
  EXPECT_EQ(given.to_vector<float>(), std::vector<float>({4, 4, 4}));
}

TEST(Backward, AddsUpInLeaves) {
  const Tensor x = numbers({3}, 1).requires_grad();
  EXPECT_FALSE(x.grad().defined());
  backward(sum(x));
  backward(sum(x * x));
  const std::vector<double> at = x.to_vector<double>(), got = x.grad().to_vector<double>();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(got[i], 1 + 2 * at[i]);
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, SharedResultsAreWalkedOnce) {
  // 2^60 paths from y to x.
  const Tensor x = Tensor::full({1}, 1.0, DType::f64).requires_grad();
  Tensor y = x;
  for (int i = 0; i < 60; ++i) y = y + y;
  backward(y);
  EXPECT_EQ(x.grad().item<double>(), 0x1p60);
}

TEST(Backward, LongChainsNeedNoStack) {
  const Tensor x = Tensor::full({1}, 1.0, DType::f32).requires_grad();
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = neg(y);
  backward(y);
  EXPECT_EQ(x.grad().item<float>(), 1.0f);
}

TEST(Backward, WithoutAGraphGradientsHaveNone) {
  const Tensor x = numbers({3}, 1).requires_grad();
  backward(sum(x * x));
  EXPECT_FALSE(x.grad().needs_grad());
  EXPECT_TRUE(gradients(sum(x * x), std::span(&x, 1), {}, true)[0].needs_grad());
}

TEST(Backward, NoGradAndDetach) {
  const Tensor x = numbers({3}, 1).requires_grad();
  {
    const NoGrad none;
    EXPECT_FALSE((x * x).needs_grad());
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_TRUE((x * x).needs_grad());
  EXPECT_FALSE((x.detach() * x.detach()).needs_grad());
  const Tensor given = gradients(sum(x * x.detach()), std::span(&x, 1))[0];
  EXPECT_EQ(given.to_vector<double>(), x.to_vector<double>());
}

TEST(Backward, ResultsOnTheWay) {
  const Tensor x = numbers({3}, 1).requires_grad(), y = x * x, z = numbers({3}, 2).requires_grad();
  const Tensor of[] = {y, z};
  const std::vector<Tensor> given = gradients(sum(y * y), of);
  EXPECT_EQ(given[0].to_vector<double>(), affine(y, 2, 0).to_vector<double>());
  EXPECT_FALSE(given[1].defined());
}

TEST(Backward, Errors) {
  const Tensor x = numbers({3}, 1).requires_grad();
  EXPECT_FAILS(backward(numbers({1}, 1)), "backward: depends on nothing that needs a gradient");
  EXPECT_FAILS(backward(x * x), "backward: more than one element");
  EXPECT_FAILS(backward(x * x, numbers({2}, 1)), "backward: the gradient doesn't fit");
  EXPECT_FAILS(gradients(sum(x), std::vector<Tensor>{numbers({1}, 1)}),
               "gradients: with respect to a tensor that needs none");
  EXPECT_FAILS((x * x).grad(), "grad: not a leaf");
  EXPECT_FAILS(Tensor::zeros({2}, DType::i32).requires_grad(), "requires_grad: not a float");
  EXPECT_FALSE(argmax(x, 0).needs_grad());  // whole numbers depend on nothing
  Tensor target = Tensor::zeros({3}, DType::f64);
  EXPECT_FAILS(slice_set(target, x, 0, 0), "slice_set: not differentiable");
}

}  // namespace
}  // namespace wick
