// Ops that are composed of other ops.

#include <cmath>
#include <limits>

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::error_of;
using test::numbers;

void expect_near(const Tensor& got, const std::vector<double>& expected, double off = 1e-12) {
  const std::vector<double> values = got.to(DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << i;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << i;
    } else {
      EXPECT_NEAR(values[i], expected[i], off) << i;
    }
  }
}

TEST(ComposedOps, BestOverSeveralDims) {
  // Ties, NaN and zeros of both signs, over every set of dims, dense and transposed.
  const double nan = std::nan("");
  const std::vector<double> values{1, 3, 3,    0, -0.0, 2, 3, nan, 1,  0, nan, 3,
                                   0, 0, -0.0, 5, 5,    1, 2, -1,  -1, 5, 4,   -1};
  const Tensor x = Tensor::from(values, {2, 3, 4});
  const std::vector<std::vector<int>> sets{{}, {0, 1}, {1, 2}, {0, 2}, {2, 0}, {0, 1, 2}, {-1}};
  for (const bool turned : {false, true}) {
    const Tensor t = turned ? x.transpose(0, 2) : x;
    for (const std::vector<int>& dims : sets) {
      // A copy with the reduced dims flattened into one gives the expected result.
      std::vector<int> order, last;
      for (int d = 0; d < 3; ++d) {
        const bool in = dims.empty() || std::any_of(dims.begin(), dims.end(),
                                                    [&](int e) { return (e + 3) % 3 == d; });
        (in ? last : order).push_back(d);
      }
      const int kept = static_cast<int>(order.size());
      order.insert(order.end(), last.begin(), last.end());
      const Tensor rows = t.permute(order).contiguous().flatten(kept, -1);
      EXPECT_EQ(argmax(t, dims).to_vector<uint32_t>(), argmax(rows, -1).to_vector<uint32_t>());
      EXPECT_EQ(argmin(t, dims).to_vector<uint32_t>(), argmin(rows, -1).to_vector<uint32_t>());
      EXPECT_EQ(argmin(t, dims).shape(), argmin(rows, -1).shape());
      EXPECT_EQ(argmax(t, dims, true).shape(), max(t, dims, true).shape());
    }
  }
  EXPECT_EQ(argmax(Tensor::ones({}, DType::f32)).item<uint32_t>(), 0u);
}

Tensor f64(const std::vector<double>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}

TEST(ComposedOps, Variance) {
  const Tensor x = f64({1, 2, 4, 0, 0, 6}, {2, 3});
  const int last[] = {-1};
  expect_near(var(x, last), {7.0 / 3, 12});
  expect_near(var(x, last, true, 0), {14.0 / 9, 8});
  expect_near(var(x, {}, false, 0), {173.0 / 36});
  expect_near(var(f64({5}, {1, 1}), last), {std::nan("")});  // 0 / 0
}

/// Squares overflow in a narrow type: only results are rounded to it.
TEST(ComposedOps, VarianceOfNarrowTypes) {
  const Tensor x = f64({1792, 2192, 1792, 2192, 1792, 2192}, {3, 2});
  expect_near(var(x.to(DType::f16), {}, false, 0), {40000});
  expect_near(var(x.to(DType::bf16), {}, false, 0), {39936});  // the nearest bf16
  const int rows[] = {0};
  expect_near(var(f64({-16, 16, 8, -16}, {2, 2}).to(DType::f8e4m3), rows, false, 0), {144, 256});
  // More elements than f16 can count, and deviations that are exact only in f32.
  const Tensor many = affine(Tensor::arange(0, 80000, 1, DType::f32), 0, 1.5).to(DType::f16);
  expect_near(var(many, {}, false), {0});

  const Tensor wide = f64({-900, 900, -900, 900}, {4, 1});
  const BatchNorm batch = batch_norm_of_batch(wide.to(DType::f16), {}, {}, 0);
  expect_near(batch.y, {-1, 1, -1, 1});
  expect_near(batch.mean, {0});
  expect_near(batch.variance, {std::numeric_limits<double>::infinity()});  // 810,000
}

TEST(ComposedOps, LogSumExp) {
  const double inf = std::numeric_limits<double>::infinity();
  const int last[] = {1};
  expect_near(logsumexp(f64({1000, 1000, -inf, -inf, inf, 3}, {3, 2}), last),
              {1000 + std::log(2.0), -inf, inf});
}

TEST(ComposedOps, AnyAndAll) {
  const Tensor x = f64({0, 0, 1, std::nan(""), -0.0, 0}, {3, 2});
  const int last[] = {1};
  EXPECT_EQ(any(x, last).to_vector<uint8_t>(), std::vector<uint8_t>({0, 1, 0}));
  EXPECT_EQ(all(x, last).to_vector<uint8_t>(), std::vector<uint8_t>({0, 1, 0}));
  const Tensor none = Tensor::zeros({2, 0}, DType::i32);
  EXPECT_EQ(any(none, last).to_vector<uint8_t>(), std::vector<uint8_t>({0, 0}));
  EXPECT_EQ(all(none, last).to_vector<uint8_t>(), std::vector<uint8_t>({1, 1}));
}

TEST(ComposedOps, GroupAndBatchNorm) {
  const Tensor x = numbers({2, 4, 3}, 1), w = numbers({4}, 2), b = numbers({4}, 3);
  const Tensor y = group_norm(x, 2, w, b, 0);
  const std::vector<double> xs = x.to_vector<double>(), ws = w.to_vector<double>(),
                            bs = b.to_vector<double>();
  std::vector<double> expected;
  for (size_t i = 0; i < xs.size(); ++i) {
    const size_t first = i / 6 * 6;
    double mean = 0, squares = 0;
    for (size_t j = first; j < first + 6; ++j) mean += xs[j] / 6;
    for (size_t j = first; j < first + 6; ++j) squares += (xs[j] - mean) * (xs[j] - mean) / 6;
    expected.push_back((xs[i] - mean) / std::sqrt(squares) * ws[i / 3 % 4] + bs[i / 3 % 4]);
  }
  expect_near(y, expected);

  const BatchNorm batch = batch_norm_of_batch(x, w, b, 0);
  expected.clear();
  for (size_t i = 0; i < xs.size(); ++i) {
    const size_t c = i / 3 % 4;
    double mean = 0, squares = 0;
    for (size_t j = 0; j < xs.size(); ++j) mean += j / 3 % 4 == c ? xs[j] / 6 : 0;
    for (size_t j = 0; j < xs.size(); ++j) {
      squares += j / 3 % 4 == c ? (xs[j] - mean) * (xs[j] - mean) / 6 : 0;
    }
    expected.push_back((xs[i] - mean) / std::sqrt(squares) * ws[c] + bs[c]);
  }
  expect_near(batch.y, expected);
}

TEST(ComposedOps, Einsum) {
  const Tensor a = numbers({2, 3, 4}, 4), b = numbers({4, 3}, 5), c = numbers({3}, 6);
  const Tensor product[] = {a, b};
  expect_near(einsum("bij,jk->bik", product), matmul(a, b).to_vector<double>());
  expect_near(einsum("bij,jk->kib", product),
              matmul(a, b).permute({2, 1, 0}).contiguous().to_vector<double>());
  const Tensor three[] = {a, b, c};
  expect_near(einsum("bij,jk,i->b", three),
              sum(matmul(a, b) * c.unsqueeze(1), std::vector<int>{1, 2}).to_vector<double>());
  const Tensor one[] = {a};
  expect_near(einsum("bij -> ib", one), sum(a.transpose(0, 1), 2).to_vector<double>());
  EXPECT_EQ(error_of([&] { einsum("ij,jk->ik", product); }).find("einsum: letters don't match"),
            0u);
  EXPECT_EQ(error_of([&] { einsum("bij,jk", product); }).find("einsum: no result given"), 0u);
  EXPECT_EQ(error_of([&] { einsum("bij,kj->bik", product); }).find("einsum: sizes of a letter"),
            0u);
}

TEST(ComposedOps, AttentionOfLengthsAndPages) {
  const Tensor q = numbers({5, 2, 4}, 7).to(DType::f32), k = numbers({7, 1, 4}, 8).to(DType::f32),
               v = numbers({7, 1, 3}, 9).to(DType::f32);
  const AttentionOptions p{.scale = 0.5f, .causal = true};
  const int64_t queries[] = {0, 2, 5}, keys[] = {0, 3, 7};
  const Tensor y = attention_of_lengths(q, k, v, queries, keys, p);
  const auto part = [](const Tensor& x, int64_t from, int64_t to) {
    return x.narrow(0, from, to - from).transpose(0, 1).unsqueeze(0);
  };
  const Tensor second = attention(part(q, 2, 5), part(k, 3, 7), part(v, 3, 7), p);
  EXPECT_EQ(part(y, 2, 5).contiguous().to_vector<float>(), second.contiguous().to_vector<float>());

  // Seven keys in pages of two, out of order. The last page is half used.
  const Tensor key_pages = Tensor::zeros({5, 1, 2, 4}, DType::f32),
               value_pages = Tensor::zeros({5, 1, 2, 3}, DType::f32);
  const std::vector<uint32_t> table = {3, 0, 4, 1};
  Tensor kp = key_pages, vp = value_pages;
  const auto paged = [&](const Tensor& x, Tensor pages) {
    std::vector<Tensor> all = pages.chunk(5, 0);
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t count = i == 3 ? 1 : 2;
      const Tensor page = x.narrow(0, 2 * i, count).transpose(0, 1).unsqueeze(0);
      const Tensor rest = Tensor::full({1, 1, 2 - count, x.size(2)}, 9, DType::f32);
      const Tensor pieces[] = {page, rest};
      all[table[static_cast<size_t>(i)]] = cat(pieces, 2);
    }
    return cat(all, 0);
  };
  const Tensor lengths = Tensor::from(std::vector<uint32_t>{7}, {1});
  const Tensor z = attention_of_pages(part(q, 0, 5), paged(k, kp), paged(v, vp),
                                      Tensor::from(table, {1, 4}), lengths, p);
  EXPECT_EQ(
      z.contiguous().to_vector<float>(),
      attention(part(q, 0, 5), part(k, 0, 7), part(v, 0, 7), p).contiguous().to_vector<float>());
}

TEST(ComposedOps, GroupedLinear) {
  const Tensor x = numbers({3, 4}, 10).to(DType::f32);
  const std::vector<Tensor> matrices = {numbers({2, 4}, 11).to(DType::f32),
                                        numbers({2, 4}, 12).to(DType::f32)};
  const std::vector<Weight> experts = {Weight(matrices[0]), Weight(matrices[1])};
  const std::vector<uint32_t> chosen = {1, 0, 1, 1, 0, 1};
  const Tensor y = grouped_linear(x, experts, Tensor::from(chosen, {3, 2}));
  for (int64_t i = 0; i < 6; ++i) {
    const Tensor one = linear(x.narrow(0, i / 2, 1), experts[chosen[static_cast<size_t>(i)]]);
    EXPECT_EQ(y.reshape({6, 2}).narrow(0, i, 1).contiguous().to_vector<float>(),
              one.to_vector<float>());
  }
}

}  // namespace
}  // namespace wick
