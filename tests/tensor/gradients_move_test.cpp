// Gradients of ops that move, select, scatter and sort elements, and of views.

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::error_of;
using test::GradientCheck;
using test::Inputs;
using test::numbers;

Tensor ids(std::vector<uint32_t> values, const Shape& shape) { return Tensor::from(values, shape); }
constexpr uint32_t kPadding = 0xffffffff;

std::vector<Tensor> moved() { return {numbers({4, 3, 5}, 4)}; }

WICK_GRADIENT_CHECK(copy) {
  const std::vector<Tensor> x = moved();
  check.twice(
      "clone", [](Inputs i) { return i[0].clone(); }, x);
  check.twice(
      "contiguous", [](Inputs i) { return i[0].transpose(0, 2).contiguous(); }, x);
  check.twice(
      "reshape of a transpose", [](Inputs i) { return i[0].t().reshape({60}); }, x);
  check.twice(
      "flip",
      [](Inputs i) {
        return flip(i[0], std::vector<int>{0, 2});
      },
      x);
}

WICK_GRADIENT_CHECK(cat) {
  check.twice(
      "chunk and cat",
      [](Inputs i) {
        const std::vector<Tensor> parts = i[0].chunk(2, 0);
        const Tensor turned[] = {parts[1], parts[0], parts[1]};
        return cat(turned, 0);
      },
      moved());
  check.twice(
      "of many",
      [](Inputs i) {
        const std::vector<Tensor> all(13, i[0]);
        return cat(all, 1);
      },
      moved());
  check.twice(
      "stack",
      [](Inputs i) {
        const Tensor rows[] = {i[0].narrow(0, 0, 1), i[0].narrow(0, 2, 1)};
        return stack(rows, 1);
      },
      moved());
}

WICK_GRADIENT_CHECK(roll) {
  check.twice(
      "roll",
      [](Inputs i) {
        return roll(i[0], std::vector<int64_t>{7, -1}, std::vector<int>{1, -1});
      },
      moved());
}

WICK_GRADIENT_CHECK(repeat) {
  check.twice(
      "repeat",
      [](Inputs i) {
        return repeat(i[0], {2, 1, 3, 2});
      },
      moved());
}

WICK_GRADIENT_CHECK(tril) {
  check.twice(
      "tril", [](Inputs i) { return tril(i[0], 1); }, moved());
}

WICK_GRADIENT_CHECK(triu) {
  check.twice(
      "triu", [](Inputs i) { return triu(i[0], -1); }, moved());
}

WICK_GRADIENT_CHECK(pad) {
  for (PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate}) {
    check.twice(
        "pad",
        [=](Inputs i) {
          return pad(i[0], {{1, 0}, {2, 2}, {0, 4}}, mode, 2);
        },
        moved());
  }
}

TEST(GradientOf, NothingMoved) {
  const Tensor x = Tensor::ones({2, 3}, DType::f64).requires_grad();
  const auto gradient = [&](const Tensor& y) { return gradients(sum(y), std::span(&x, 1))[0]; };
  for (const std::vector<int64_t>& counts : {std::vector<int64_t>{0, 3}, {0, 1}, {0, 1, 1}}) {
    EXPECT_EQ(gradient(repeat(x, counts)).to_vector<double>(), std::vector<double>(6, 0));
  }
  const Tensor rolled = roll(x.narrow(0, 0, 0), std::vector<int64_t>{1}, std::vector<int>{0});
  EXPECT_EQ(gradient(rolled).to_vector<double>(), std::vector<double>(6, 0));
}

TEST(GradientOf, Views) {
  GradientCheck check(Op::copy);
  const std::vector<Tensor> x = {numbers({4, 3, 5}, 4)};
  check.twice(
      "narrow", [](Inputs i) { return i[0].narrow(0, 1, 2); }, x);
  check.twice(
      "slice", [](Inputs i) { return i[0].slice(2, 0, 5, 2); }, x);
  check.twice(
      "slice back", [](Inputs i) { return i[0].slice(0, 3, 0, -1); }, x);
  check.twice(
      "transpose", [](Inputs i) { return i[0].transpose(0, -1); }, x);
  check.twice(
      "permute",
      [](Inputs i) {
        return i[0].permute({2, 0, 1});
      },
      x);
  check.twice(
      "broadcast",
      [](Inputs i) {
        return i[0].unsqueeze(0).broadcast_to({2, 4, 3, 5});
      },
      x);
  check.twice(
      "reshape",
      [](Inputs i) {
        return i[0].reshape({2, 30});
      },
      x);
  check.twice(
      "squeeze", [](Inputs i) { return i[0].narrow(1, 1, 1).squeeze(1); }, x);
}

WICK_GRADIENT_CHECK(cast) {
  check.against(
      "there and back", [](Inputs i) { return sqr(i[0]).to(DType::f64); },
      [](Inputs i) { return sqr(i[0]); }, {numbers({2, 3}, 5)});
  const Tensor x = Tensor::full({3}, 2.0, DType::bf16).requires_grad();
  const Tensor given = gradients(sum(sqr(x.to(DType::f64))), std::span(&x, 1))[0];
  EXPECT_EQ(given.dtype(), DType::bf16);
  EXPECT_EQ(given.to(DType::f32).to_vector<float>(), std::vector<float>({4, 4, 4}));
  EXPECT_FALSE(x.to(DType::i32).needs_grad());  // integer results have no gradient
}

WICK_GRADIENT_CHECK(index_select) {
  const Tensor x = numbers({3, 4, 2}, 1), at = ids({2, 0, kPadding, 2}, {2, 2});
  check.twice("by several", [&](Inputs i) { return index_select(i[0], at, 1); }, {x});
  check.twice("by one", [&](Inputs i) { return index_select(i[0], ids({1}, {}), 0); }, {x});
}
WICK_GRADIENT_CHECK(gather) {
  const Tensor each = ids({2, 0, kPadding, 2, 1, 1, 3, 3, 0, 1, 2, 2}, {3, 2, 2});
  check.twice("along a dim", [&](Inputs i) { return gather(i[0], each, 1); },
              {numbers({3, 4, 2}, 1)});
  check.twice("by fewer ids",
              [&](Inputs i) {
                return gather(i[0], ids({1, 0}, {1, 2}), 1);
              },
              {numbers({3, 2}, 1)});
}
// Several sources for one element, and padding ids.
const std::vector<uint32_t> kPlaces = {2, 2, kPadding, 0, 1, 0};
WICK_GRADIENT_CHECK(scatter) {
  check.twice("over others",
              [](Inputs i) {
                return scatter(i[0], ids(kPlaces, {2, 3}), i[1], 1);
              },
              {numbers({3, 4}, 1), numbers({2, 3}, 2)});
}
WICK_GRADIENT_CHECK(scatter_add) {
  check.twice("over others",
              [](Inputs i) {
                return scatter_add(i[0], ids(kPlaces, {2, 3}), i[1], 1);
              },
              {numbers({3, 4}, 1), numbers({2, 3}, 2)});
}
WICK_GRADIENT_CHECK(index_add) {
  const Tensor rows = ids({1, 1, kPadding, 0}, {4});
  check.twice("rows", [&](Inputs i) { return index_add(i[0], rows, i[1], 0); },
              {numbers({3, 4}, 1), numbers({4, 4}, 3)});
}
WICK_GRADIENT_CHECK(sort) {
  for (const bool descending : {false, true}) {
    check.twice("rows", [=](Inputs i) { return sort(i[0], 1, descending).values; },
                {numbers({3, 5}, 4)});
  }
}
WICK_GRADIENT_CHECK(topk) {
  check.twice("columns", [](Inputs i) { return topk(i[0], 2, 0).values; }, {numbers({3, 5}, 4)});
  check.twice("the smallest", [](Inputs i) { return topk(i[0], 2, 1, false).values; },
              {numbers({3, 5}, 4)});
}
WICK_GRADIENT_CHECK(cumprod) {
  check.twice("rows", [](Inputs i) { return cumprod(i[0], 1); }, {numbers({3, 5}, 4)});
  check.twice("columns", [](Inputs i) { return cumprod(i[0], 0); }, {numbers({6, 2}, 4)});
  check.twice("one", [](Inputs i) { return cumprod(i[0], 0); }, {numbers({1}, 4)});
  const std::vector<double> zeros = {0, 2, 3, 0.5, 2, 0, 3, 0, 1.5, -1, 0, 2};
  check.twice("zeros", [](Inputs i) { return cumprod(i[0], 1); },
              {Tensor::from<double>(zeros, {3, 4})});
}
WICK_GRADIENT_CHECK(cumsum) {
  check.twice("rows", [](Inputs i) { return cumsum(i[0], 1); }, {numbers({3, 5}, 4)});
  check.twice("columns", [](Inputs i) { return cumsum(i[0], 0); }, {numbers({3, 5}, 4)});
}

TEST(GradientOf, WritingIsRefused) {
  Tensor x = numbers({3}, 6).requires_grad();
  EXPECT_EQ(error_of([&] { const_set(x, 1); }),
            "const_set: target needs a gradient: f64[3]@cpu: write under no_grad, or to a detached "
            "clone");
  Tensor target = Tensor::zeros({3}, DType::f64);
  EXPECT_EQ(error_of([&] { slice_set(target, x, 0, 0); }),
            "slice_set: not differentiable: f64[3]@cpu: detach the source, or use cat or "
            "where");
}

}  // namespace
}  // namespace wick
