#include "wick/nn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace wick::nn {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

// Small integers: every product is exact in any order.
Tensor whole(const Shape& shape, int64_t start) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elems(); ++i) {
    values.push_back(static_cast<float>((start + i * 7) % 11 - 5));
  }
  return Tensor::from(values, shape);
}

std::vector<float> product(const Tensor& x, const Tensor& w) {
  const auto xs = x.contiguous().to_vector<float>(), ws = w.to(DType::f32).to_vector<float>();
  const auto k = static_cast<size_t>(w.size(1)), n = static_cast<size_t>(w.size(0));
  std::vector<float> y;
  for (size_t r = 0; r < xs.size() / k; ++r) {
    for (size_t i = 0; i < n; ++i) {
      float sum = 0;
      for (size_t j = 0; j < k; ++j) sum += xs[r * k + j] * ws[i * k + j];
      y.push_back(sum);
    }
  }
  return y;
}

TEST(Layers, EmbeddingTakesRows) {
  const Embedding e(whole({5, 4}, 0).to(DType::f16));
  const Tensor rows = e(Tensor::from(std::vector<uint32_t>{3, 0, 3}, {3}));
  EXPECT_EQ(rows.dtype(), DType::f32);
  EXPECT_EQ(rows.shape(), (Shape{3, 4}));
  EXPECT_EQ(rows.narrow(0, 0, 1).to_vector<float>(), rows.narrow(0, 2, 1).to_vector<float>());
  EXPECT_NE(error_of([&] { e(Tensor::from(std::vector<uint32_t>{5}, {1})); }), "no error");
}

TEST(Layers, ProjectionsOfOneAndOfSeveralDtypes) {
  const Tensor x = whole({3, 32}, 2);
  for (bool mixed : {false, true}) {
    std::vector<Tensor> w = {whole({4, 32}, 1), whole({6, 32}, 3), whole({2, 32}, 5)};
    if (mixed) w[1] = w[1].to(DType::bf16);
    const std::vector<Tensor> biases = {Tensor(), whole({6}, 4), Tensor()};
    const auto y = Projections(w, {}, Device::cpu(), false)(x);
    const auto z = Projections(w, biases, Device::cpu(), false)(x);
    ASSERT_EQ(y.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(y[i].shape(), (Shape{3, w[i].size(0)}));
      EXPECT_EQ(y[i].to_vector<float>(), product(x, w[i])) << i << mixed;
      const Tensor expected = biases[i].defined() ? y[i] + biases[i] : y[i];
      EXPECT_EQ(z[i].to_vector<float>(), expected.to_vector<float>()) << i << mixed;
    }
  }
}

TEST(Layers, LinearWithBias) {
  const Tensor x = whole({2, 3, 32}, 0), w = whole({4, 32}, 1), b = whole({4}, 2);
  const Tensor y = Linear(w, b)(x);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(y.to_vector<float>(), (Linear{w}(x) + b).to_vector<float>());
}

TEST(Layers, Errors) {
  const Tensor w = whole({4, 32}, 0);
  EXPECT_EQ(error_of([&] { Linear(w, whole({1}, 0)); }),
            "projections: bias has the wrong size: f32[1]@cpu: need [4]");
  EXPECT_THAT(error_of([&] {
                Linear{w}(whole({2, 31}, 0));
              }),
              HasSubstr("linear: operands don't fit: x f32[2,31]@cpu, weight f32[4,32]@cpu"));
  EXPECT_THAT(error_of([&] { Linear(whole({4}, 0)); }), HasSubstr("weight: not matrices"));
  EXPECT_THAT(error_of([&] { Linear{Tensor()}; }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([&] { Linear()(w); }), HasSubstr("linear: "));
  EXPECT_THAT(error_of([&] { Norm()(w); }), HasSubstr("rms_norm: undefined tensor"));
  EXPECT_THAT(error_of([&] { Embedding()(w); }), HasSubstr("index_select: undefined tensor"));
}

}  // namespace
}  // namespace wick::nn
