// Gradients of what chooses, places, orders and moves elements, against central differences.

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::check_gradients;
using test::error_of;
using test::numbers;
using Inputs = const std::vector<Tensor>&;

Tensor ids(std::vector<uint32_t> values, const Shape& shape) { return Tensor::from(values, shape); }
constexpr uint32_t kPadding = 0xffffffff;

TEST(IndexGradient, Chosen) {
  const Tensor x = numbers({3, 4, 2}, 1), at = ids({2, 0, kPadding, 2}, {2, 2});
  check_gradients("index_select", [&](Inputs i) { return index_select(i[0], at, 1); }, {x});
  check_gradients("index_select by one",
                  [&](Inputs i) { return index_select(i[0], ids({1}, {}), 0); }, {x});
  const Tensor each = ids({2, 0, kPadding, 2, 1, 1, 3, 3, 0, 1, 2, 2}, {3, 2, 2});
  check_gradients("gather", [&](Inputs i) { return gather(i[0], each, 1); }, {x});
}

TEST(IndexGradient, Placed) {
  const Tensor x = numbers({3, 4}, 1), source = numbers({2, 3}, 2);
  // Two sources of one place, and padding.
  const Tensor at = ids({2, 2, kPadding, 0, 1, 0}, {2, 3});
  check_gradients("scatter", [&](Inputs i) { return scatter(i[0], at, i[1], 1); }, {x, source});
  check_gradients("scatter_add", [&](Inputs i) { return scatter_add(i[0], at, i[1], 1); },
                  {x, source});
  const Tensor rows = ids({1, 1, kPadding, 0}, {4});
  check_gradients("index_add", [&](Inputs i) { return index_add(i[0], rows, i[1], 0); },
                  {x, numbers({4, 4}, 3)});
}

TEST(IndexGradient, Ordered) {
  const Tensor x = numbers({3, 5}, 4);
  check_gradients("sort", [](Inputs i) { return sort(i[0], 1).values; }, {x});
  check_gradients("topk", [](Inputs i) { return topk(i[0], 2, 0).values; }, {x});
  check_gradients("cumsum", [](Inputs i) { return cumsum(i[0], 1); }, {x});
  check_gradients("cumsum of columns", [](Inputs i) { return cumsum(i[0], 0); }, {x});
}

TEST(IndexGradient, Moved) {
  const Tensor x = numbers({3, 4, 5}, 5);
  check_gradients("flip", [](Inputs i) { return flip(i[0], std::vector<int>{0, 2}); }, {x});
  check_gradients("roll",
                  [](Inputs i) {
                    return roll(i[0], std::vector<int64_t>{7, -1}, std::vector<int>{1, -1});
                  },
                  {x});
  check_gradients("repeat", [](Inputs i) { return repeat(i[0], {2, 1, 3, 2}); }, {x});
  check_gradients("tril", [](Inputs i) { return tril(i[0], 1); }, {x});
  check_gradients("triu", [](Inputs i) { return triu(i[0], -1); }, {x});
  for (PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate}) {
    check_gradients("pad",
                    [=](Inputs i) {
                      return pad(i[0], {{1, 0}, {2, 3}, {0, 4}}, mode, 2);
                    },
                    {x});
  }
}

TEST(IndexGradient, WritingIsRefused) {
  Tensor x = numbers({3}, 6).requires_grad();
  EXPECT_EQ(error_of([&] { const_set(x, 1); }),
            "const_set: not differentiable: f64[3]@cpu: detach it first");
}

}  // namespace
}  // namespace wick
