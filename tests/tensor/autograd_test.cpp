// Tests of the tape. gradients_*_test.cpp check the gradients of each op.

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::numbers;
using testing::ElementsAre;

#define EXPECT_FAILS(call, text)                                \
  EXPECT_EQ(test::error_of([&] { (void)call; }).find(text), 0u) \
      << test::error_of([&] { (void)call; })

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
  // There are 2^60 paths from y to x.
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
               "gradients: an input needs no gradient");
  EXPECT_FAILS((x * x).grad(), "grad: not a leaf");
  EXPECT_FAILS(Tensor::zeros({2}, DType::i32).requires_grad(), "requires_grad: not a float");
  EXPECT_FALSE(argmax(x, 0).needs_grad());  // integer results have no gradient
  Tensor target = Tensor::zeros({3}, DType::f64);
  EXPECT_FAILS(slice_set(target, x, 0, 0), "slice_set: not differentiable");
}

TEST(Autograd, LeavesAreWrittenWhereNothingIsRecorded) {
  Tensor w = Tensor::ones({2}, DType::f32).requires_grad();
  EXPECT_FAILS(const_set(w, 2), "const_set: target needs a gradient");
  const Tensor loss = sum(mul(w, w));
  backward(loss);
  {
    const NoGrad none;
    const_set(w, 3);  // the loss still refers to w
    slice_set(w, Tensor::full({1}, 5, DType::f32), 0, 1);
  }
  EXPECT_THAT(w.to_vector<float>(), ElementsAre(3, 5));
  EXPECT_TRUE(w.needs_grad());
  EXPECT_FAILS(backward(loss), "backward: an operand was written to since the call: mul");
  w.zero_grad();
  backward(sum(mul(w, w)));
  EXPECT_THAT(w.grad().to_vector<float>(), ElementsAre(6, 10));
  // A tensor that isn't a leaf may still only be written by its sole owner.
  Tensor y = mul(w, w);
  const Tensor alias = y.narrow(0, 0, 1);
  const NoGrad none;
  EXPECT_FAILS(const_set(y, 0), "const_set: target's storage is shared");
}

}  // namespace
}  // namespace wick
