// The tensor layer of elementwise ops: broadcasting, result dtypes, bounds, signs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "wick/tensor/ops.h"

namespace wick {
namespace {

using testing::ElementsAre;

Tensor floats(const std::vector<float>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}
std::vector<uint8_t> truths(const Tensor& x) { return x.to_vector<uint8_t>(); }

TEST(MapOps, ComparisonsBroadcastAndGiveBools) {
  const Tensor column = floats({1, 2}, {2, 1}), row = floats({1, 2, 3}, {3});
  const Tensor less = column < row;
  EXPECT_EQ(less.dtype(), DType::boolean);
  EXPECT_EQ(less.shape(), (Shape{2, 3}));
  EXPECT_THAT(truths(less), ElementsAre(0, 1, 1, 0, 0, 1));
  EXPECT_THAT(truths(column <= row), ElementsAre(1, 1, 1, 0, 1, 1));
  EXPECT_THAT(truths(column > row), ElementsAre(0, 0, 0, 1, 0, 0));
  EXPECT_THAT(truths(column >= row), ElementsAre(1, 0, 0, 1, 1, 0));
  EXPECT_THAT(truths(eq(column, row)), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(truths(ne(column, row)), ElementsAre(0, 1, 1, 1, 0, 1));
}

TEST(MapOps, NanIsInNoOrderAndTrue) {
  const Tensor x = floats({NAN, NAN, -0.0f, INFINITY}, {4}), y = floats({NAN, 1, 0, 0}, {4});
  EXPECT_THAT(truths(eq(x, y)), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(truths(ne(x, y)), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(truths(x <= y), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(truths(logical_not(x)), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(truths(logical_and(x, y)), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(truths(logical_xor(x, y)), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(truths(isnan(x)), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(truths(isinf(x)), ElementsAre(0, 0, 0, 1));
}

TEST(MapOps, WhereBroadcastsAllThree) {
  const Tensor condition = Tensor::from(std::vector<int64_t>{0, -1}, {2, 1});
  const Tensor a = floats({1, 2, 3}, {3}), b = floats({9}, {1, 1});
  const Tensor y = where(condition, a, b);
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(9, 9, 9, 1, 2, 3));
  EXPECT_EQ(
      where(condition, Tensor::zeros({0}, DType::f16), Tensor::zeros({1}, DType::f16)).shape(),
      (Shape{2, 0}));
}

TEST(MapOps, MaskedFillKeepsTheShapeAndConverts) {
  const Tensor x = Tensor::from(std::vector<uint8_t>{1, 2, 3, 4}, {2, 2});
  const Tensor mask = Tensor::from(std::vector<uint8_t>{0, 7}, {2});
  EXPECT_THAT(masked_fill(x, mask, 1000.0).to_vector<uint8_t>(), ElementsAre(1, 255, 3, 255));
  EXPECT_THAT(masked_fill(x.t(), mask, 0).to_vector<uint8_t>(), ElementsAre(1, 0, 2, 0));
}

TEST(MapOps, BoundsOfIntegersMayLieOutside) {
  const Tensor bytes = Tensor::from(std::vector<uint8_t>{0, 7, 255}, {3});
  EXPECT_THAT(clamp(bytes, -1, 300).to_vector<uint8_t>(), ElementsAre(0, 7, 255));
  EXPECT_THAT(clamp(bytes, 6.5, 7.9).to_vector<uint8_t>(), ElementsAre(7, 7, 7));
  EXPECT_THAT(clamp(bytes, -INFINITY, 1e30).to_vector<uint8_t>(), ElementsAre(0, 7, 255));
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = -(kLeast + 1);
  const Tensor longs = Tensor::from(std::vector<int64_t>{kLeast, 0, kMost}, {3});
  EXPECT_THAT(clamp(longs, -1e30, 1e30).to_vector<int64_t>(), ElementsAre(kLeast, 0, kMost));
  EXPECT_THAT(clamp(longs, -2.5, 0x1p63).to_vector<int64_t>(), ElementsAre(-2, 0, kMost));
  const Tensor x = floats({-2, NAN, 2}, {3});
  const std::vector<float> y = clamp(x, -1, 1.5).to_vector<float>();
  EXPECT_EQ(y[0], -1);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 1.5f);
}

TEST(MapOps, SignsOfIntegers) {
  const Tensor a = Tensor::from(std::vector<int32_t>{-7, 7, -7, 6}, {4});
  const Tensor b = Tensor::from(std::vector<int32_t>{3, -3, -3, 3}, {4});
  EXPECT_THAT(rem(a, b).to_vector<int32_t>(), ElementsAre(2, -2, -1, 0));
  EXPECT_THAT((a & b).to_vector<int32_t>(), ElementsAre(-7 & 3, 7 & -3, -7 & -3, 6 & 3));
  EXPECT_THAT((a | b).to_vector<int32_t>(), ElementsAre(-7 | 3, 7 | -3, -7 | -3, 6 | 3));
  EXPECT_THAT((a ^ b).to_vector<int32_t>(), ElementsAre(-7 ^ 3, 7 ^ -3, -7 ^ -3, 6 ^ 3));
  EXPECT_THAT((~a).to_vector<int32_t>(), ElementsAre(6, -8, 6, -7));
  EXPECT_THAT(shift_left(a, b).to_vector<int32_t>(), ElementsAre(-56, 0, 0, 48));
  EXPECT_THAT(shift_right(a, b).to_vector<int32_t>(), ElementsAre(-1, 0, -1, 0));
  EXPECT_THAT(sign(a).to_vector<int32_t>(), ElementsAre(-1, 1, -1, 1));
  EXPECT_THAT(relu(a).to_vector<int32_t>(), ElementsAre(0, 7, 0, 6));
}

TEST(MapOps, PowersAndElu) {
  EXPECT_THAT(powf(floats({-2, 0, 3}, {3}), 3).to_vector<float>(), ElementsAre(-8, 0, 27));
  EXPECT_THAT(pow(floats({2, 9}, {2}), floats({-1, 0.5f}, {2})).to_vector<float>(),
              ElementsAre(0.5f, 3));
  EXPECT_THAT(elu(floats({-INFINITY, 0, 2}, {3}), 0.5).to_vector<float>(),
              ElementsAre(-0.5f, 0, 2));
}

}  // namespace
}  // namespace wick
