// Every row of ops.def has a test of its gradient, or a test that it has none.

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::error_of;
using test::numbers;

Tensor leaf() { return numbers({2, 32}, 1).to(DType::f32).requires_grad(); }

/// Integer results have no gradient.
void expect_whole(const Tensor& result) {
  EXPECT_FALSE(is_float(result.dtype())) << result.str();
  EXPECT_FALSE(result.needs_grad());
}

// Rows with one or two operands; integer operands can't be leaves.
#define WICK_TEST(name, ...) \
  WICK_NO_GRADIENT(name) { expect_whole(wick::name(leaf())); }
#define WICK_COMPARE(name, ...) \
  WICK_NO_GRADIENT(name) { expect_whole(wick::name(leaf(), leaf())); }
#define WICK_ARG(name, ...) \
  WICK_NO_GRADIENT(name) { expect_whole(wick::name(leaf(), 1)); }
void expect_integers(Op op) {
  EXPECT_TRUE(info(op).dtypes == dtypes::kIntegers || info(op).dtypes == dtypes::kBits);
  EXPECT_EQ(error_of([] { (void)Tensor::zeros({2}, DType::i32).requires_grad(); }),
            "requires_grad: not a float: i32[2]@cpu: only floats have gradients");
}
#define WICK_UNARY(name, ...) \
  WICK_NO_GRADIENT(name) { expect_integers(Op::name); }
#define WICK_BINARY(name, ...) \
  WICK_NO_GRADIENT(name) { expect_integers(Op::name); }
#include "wick/op/ops.def"

WICK_NO_GRADIENT(any) { expect_whole(any(leaf())); }
WICK_NO_GRADIENT(all) { expect_whole(all(leaf())); }
WICK_NO_GRADIENT(argsort) { expect_whole(argsort(leaf(), 1)); }
WICK_NO_GRADIENT(one_hot) {
  const Tensor ids = Tensor::zeros({2}, DType::i64);
  EXPECT_FALSE(one_hot(ids, 3).needs_grad());
  EXPECT_EQ(error_of([] { one_hot(leaf(), 3); }).find("one_hot: unsupported id dtype"), 0u);
}

WICK_NO_GRADIENT(fill) { EXPECT_FALSE(Tensor::full({2}, 1, DType::f32).needs_grad()); }
WICK_NO_GRADIENT(iota) { EXPECT_FALSE(Tensor::arange(0, 3).needs_grad()); }
WICK_NO_GRADIENT(uniform) { EXPECT_FALSE(uniform({2}).needs_grad()); }
WICK_NO_GRADIENT(normal) { EXPECT_FALSE(normal({2}).needs_grad()); }

WICK_NO_GRADIENT(quantize) {
  EXPECT_EQ(error_of([] { quantize(leaf(), DType::q8_0); }),
            "quantize: not differentiable: f32[2,32]@cpu: blocks hold rounded numbers: detach its "
            "input first");
  EXPECT_EQ(error_of([] {
              const NoGrad none;
              quantize(leaf(), DType::q8_0);
            }),
            "no error");
}
WICK_NO_GRADIENT(dequantize) {
  const Tensor blocks = quantize(leaf().detach(), DType::q8_0);
  EXPECT_FALSE(dequantize(blocks).needs_grad());
  EXPECT_EQ(error_of([&] { (void)blocks.requires_grad(); }).find("requires_grad: not a float"),
            0u);
}

WICK_NO_GRADIENT(store_in_pages) {
  const Tensor rows = leaf().reshape({1, 2, 32});
  const Tensor ids = Tensor::zeros({1}, DType::u32);
  const auto store = [&] {
    store_in_pages(Tensor::zeros({1, 2, 4, 32}, DType::f32), rows, ids.reshape({1, 1}), ids);
  };
  EXPECT_EQ(error_of(store),
            "store_in_pages: not differentiable: f32[1,2,32]@cpu: it writes to its pages; detach "
            "both");
  const NoGrad none;
  EXPECT_EQ(error_of(store), "no error");
}

TEST(GradientRows, EachIsCheckedOnceOrRefused) {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const Gradient g = info(op).gradient;
    const bool has_one = g == Gradient::rule || g == Gradient::composed;
    EXPECT_EQ(test::checked_ops().count(op), has_one ? 1u : 0u) << name(op) << ": checks";
    EXPECT_EQ(test::refused_ops().count(op), has_one ? 0u : 1u) << name(op) << ": refusals";
  }
}

}  // namespace
}  // namespace wick
