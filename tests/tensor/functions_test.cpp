// Tests the functions of wick/tensor/functions.h against plain loops, for every float dtype and for
// non-contiguous layouts.
#include "wick/tensor/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "tests/expect_error.h"
#include "wick/tensor/random.h"

namespace wick {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr DType kFloats[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3};

std::vector<double> numbers(const Tensor& x) {
  return x.contiguous().to(DType::f64).to_vector<double>();
}
Tensor of(const std::vector<double>& values, const Shape& shape, DType dtype = DType::f64) {
  return Tensor::from(values, shape).to(dtype);
}

/// Returns a relative error that the dtype's rounding permits.
double step(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-14;
    case DType::f32:
      return 1.2e-7;
    case DType::f16:
      return 1e-3;
    case DType::bf16:
      return 8e-3;
    default:
      return 0.13;
  }
}

/// Returns half of a dtype's smallest number.
double least(DType dtype) {
  return dtype == DType::f8e4m3 ? 0x1p-10 : dtype == DType::f16 ? 0x1p-25 : 1e-30;
}

void expect_near(const Tensor& got, const std::vector<double>& expected, double tolerance,
                 const std::string& what) {
  const std::vector<double> values = numbers(got);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << what << " " << i << " is " << values[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << what << " " << i;
    } else {
      EXPECT_NEAR(values[i], expected[i], tolerance * std::fabs(expected[i]) + least(got.dtype()))
          << what << " " << i;
    }
  }
}

struct Function {
  const char* name;
  std::function<Tensor(const Tensor&)> of;
  std::function<double(double)> by_hand;
};

double softplus_of(double x, double beta, double threshold) {
  return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"log2", log2, [](double x) { return std::log2(x); }},
      {"log10", log10, [](double x) { return std::log10(x); }},
      {"exp2", exp2, [](double x) { return std::exp2(x); }},
      {"tan", tan, [](double x) { return std::tan(x); }},
      {"sinh", sinh, [](double x) { return std::sinh(x); }},
      {"cosh", cosh, [](double x) { return std::cosh(x); }},
      {"trunc", trunc, [](double x) { return std::trunc(x); }},
      {"isfinite", isfinite, [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.25); },
       [](double x) { return x > 0 ? x : 0.25 * x; }},
      {"softplus", [](const Tensor& x) { return softplus(x, 2, 10); },
       [](double x) { return softplus_of(x, 2, 10); }},
      {"mish", mish, [](double x) { return x * std::tanh(softplus_of(x, 1, 20)); }},
      {"selu", selu,
       [](double x) {
         return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
       }},
      {"hardsigmoid", hardsigmoid, [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"hardswish", hardswish, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
  };
  return all;
}

TEST(Functions, OfElements) {
  const std::vector<double> values = {0.5,  -0.5, 1,  -1,   2.75, -2.75, 0.03125, 3,
                                      -3.5, 6,    -7, 0.75, 1.5,  -0.25, 4.5,     2};
  for (const DType dtype : kFloats) {
    const Tensor x = of(values, {2, 2, 4}, dtype);
    const std::vector<double> rounded = numbers(x);
    for (const Function& f : functions()) {
      const std::string what = std::string(f.name) + " of " + std::string(name(dtype));
      std::vector<double> expected;
      for (const double v : rounded) expected.push_back(f.by_hand(v));
      // tan near a pole, hardswish near 0 and similar cases lose digits even in f64.
      const double tolerance = std::max(4 * step(dtype), dtype == DType::f64 ? 1e-13 : 0.0);
      expect_near(f.of(x), expected, tolerance, what);
      // Repeats the test with other layouts of the same elements.
      const Tensor turned = x.transpose(0, 2);
      expect_near(f.of(turned), numbers(f.of(x).transpose(0, 2)), 0, what);
      const Tensor cut = x.narrow(2, 1, 2);
      expect_near(f.of(cut), numbers(f.of(x).narrow(2, 1, 2)), 0, what);
      EXPECT_EQ(f.of(of({}, {0, 3}, dtype)).shape(), (Shape{0, 3})) << what;
      EXPECT_EQ(f.of(of({2}, {}, dtype)).rank(), 0) << what;
    }
  }
}

TEST(Functions, OfInfinitiesAndNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {kInf, -kInf, nan, 0.0};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const Function& f : functions()) {
      std::vector<double> expected;
      for (const double v : values) expected.push_back(f.by_hand(v));
      // For -inf, the formulas give x · 0, which has no value.
      if (std::string_view(f.name) == "mish" || std::string_view(f.name) == "hardswish") {
        expected[1] = nan;
      }
      expect_near(f.of(of(values, {4}, dtype)), expected, 4 * step(dtype), f.name);
    }
  }
}

TEST(Functions, TakeFloatsAlone) {
  for (const Function& f : functions()) {
    EXPECT_THAT(error_of([&] { f.of(Tensor::ones({2}, DType::i32)); }),
                HasSubstr("unsupported dtype"))
        << f.name;
    EXPECT_THAT(error_of([&] { f.of(Tensor()); }), HasSubstr("undefined tensor")) << f.name;
  }
}

TEST(Functions, DeviationsAndNorms) {
  const Tensor x = of({3, -4, 0, 1, 2, -2}, {2, 3});
  const int last[] = {-1};
  EXPECT_THAT(numbers(norm(x, 2, last)), ElementsAre(5, 3));
  EXPECT_THAT(numbers(norm(x, 1, last)), ElementsAre(7, 5));
  EXPECT_THAT(numbers(norm(x, 0, last)), ElementsAre(2, 3));
  EXPECT_THAT(numbers(norm(x, kInf, last)), ElementsAre(4, 2));
  EXPECT_NEAR(norm(x, 3).item<double>(), std::cbrt(27 + 64 + 1 + 8 + 8), 1e-12);
  EXPECT_EQ(norm(x, 2, last, true).shape(), (Shape{2, 1}));
  EXPECT_THAT(error_of([&] { norm(x, -1); }), HasSubstr("norm: a negative p"));
  const std::vector<double> s = numbers(std_dev(x, last));
  EXPECT_NEAR(s[0], std::sqrt((9 + 16 + 0 - 1.0 / 3) / 2), 1e-12);
  EXPECT_NEAR(s[1], std::sqrt((1 + 4 + 4 - 1.0 / 3) / 2), 1e-12);
  EXPECT_NEAR(std_dev(x, last, false, 0).contiguous().to_vector<double>()[1],
              std::sqrt((1 + 4 + 4 - 1.0 / 3) / 3), 1e-12);
  const Sorted m = median(of({5, 1, 4, 2, 9, 8, 7, 6}, {2, 4}), 1);
  EXPECT_THAT(numbers(m.values), ElementsAre(2, 7));
  EXPECT_THAT(m.indices.contiguous().to_vector<uint32_t>(), ElementsAre(3, 2));
  EXPECT_THAT(error_of([&] { median(of({}, {0}), 0); }), HasSubstr("no elements"));
  EXPECT_EQ(median(of({5, 1, 4, 2}, {2, 2})).item<double>(), 2);
  EXPECT_EQ(median(of({5, 1, 4, 2}, {2, 2}), 1, true).values.shape(), (Shape{2, 1}));
  EXPECT_TRUE(std::isnan(median(of({5, std::nan(""), 4}, {3})).item<double>()));
}

TEST(Functions, Products) {
  const Tensor a = of({1, 2, 3, 4, 5, 6}, {2, 3}), b = of({1, 0, 2, 1, 0, 3}, {3, 2});
  EXPECT_THAT(numbers(mm(a, b)), ElementsAre(5, 11, 14, 23));
  EXPECT_THAT(numbers(mm(b.transpose(0, 1), a.transpose(0, 1))), ElementsAre(5, 14, 11, 23));
  const Tensor two[] = {a.unsqueeze(0), (a * 2.0).unsqueeze(0)};
  const Tensor stack = cat(two, 0);
  EXPECT_THAT(numbers(bmm(stack, b.unsqueeze(0).broadcast_to({2, 3, 2}))),
              ElementsAre(5, 11, 14, 23, 10, 22, 28, 46));
  const Tensor v = of({1, 0, -1}, {3});
  EXPECT_THAT(numbers(mv(a, v)), ElementsAre(-2, -2));
  EXPECT_EQ(dot(v, v).item<double>(), 2);
  EXPECT_EQ(dot(v, v).rank(), 0);
  EXPECT_THAT(numbers(outer(of({1, 2}, {2}), v)), ElementsAre(1, 0, -1, 2, 0, -2));
  EXPECT_THAT(error_of([&] { mm(a, v); }), HasSubstr("mm: wrong rank"));
  EXPECT_THAT(error_of([&] { mv(v, v); }), HasSubstr("mv: wrong rank"));
  EXPECT_THAT(error_of([&] { dot(a, v); }), HasSubstr("dot: wrong rank"));
  EXPECT_THAT(error_of([&] { outer(v, a); }), HasSubstr("outer: wrong rank"));
  EXPECT_THAT(error_of([&] { bmm(stack, b.unsqueeze(0)); }), HasSubstr("bmm: batches differ"));
}

TEST(Functions, Shapes) {
  const Tensor x = of({1, 2, 3, 4, 5, 6}, {2, 3});
  const std::vector<Tensor> columns = unbind(x, 1);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_THAT(numbers(columns[1]), ElementsAre(2, 5));
  EXPECT_THAT(numbers(repeat_interleave(x, 2, 1)), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6));
  EXPECT_THAT(numbers(repeat_interleave(x, 2, 0)), ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
  EXPECT_EQ(repeat_interleave(x, 0, 0).shape(), (Shape{0, 3}));
  EXPECT_THAT(error_of([&] { repeat_interleave(x, -1, 0); }), HasSubstr("a negative count"));
  const Tensor axes[] = {of({1, 2}, {2}), of({3, 4, 5}, {3})};
  const auto ij = meshgrid(axes), xy = meshgrid(axes, true);
  EXPECT_THAT(numbers(ij[0]), ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(numbers(ij[1]), ElementsAre(3, 4, 5, 3, 4, 5));
  EXPECT_EQ(xy[0].shape(), (Shape{3, 2}));
  EXPECT_THAT(numbers(xy[0]), ElementsAre(1, 2, 1, 2, 1, 2));
  const Tensor wrong[] = {x};
  EXPECT_THAT(error_of([&] { meshgrid(wrong); }), HasSubstr("meshgrid: not a vector"));
}

TEST(Functions, Comparisons) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = of({1, kInf, -kInf, 2}, {4});
  EXPECT_TRUE(equal(x, x));
  EXPECT_TRUE(equal(x.reshape({2, 2}).transpose(0, 1), of({1, -kInf, kInf, 2}, {2, 2})));
  EXPECT_FALSE(equal(x, x.reshape({2, 2})));
  EXPECT_FALSE(equal(x, x.to(DType::f32)));
  EXPECT_FALSE(equal(of({nan}, {1}), of({nan}, {1})));
  EXPECT_TRUE(allclose(x, of({1 + 5e-6, kInf, -kInf, 2}, {4})));
  EXPECT_FALSE(allclose(x, of({1 + 5e-5, kInf, -kInf, 2}, {4})));
  EXPECT_FALSE(allclose(x, of({1, kInf, kInf, 2}, {4})));
  EXPECT_FALSE(allclose(of({1e300}, {1}), of({kInf}, {1})));
  EXPECT_FALSE(allclose(of({nan}, {1}), of({nan}, {1})));
  EXPECT_TRUE(allclose(of({nan}, {1}), of({nan}, {1}), 1e-5, 1e-8, true));
  EXPECT_THAT(error_of([&] { (void)allclose(x, x.to(DType::f32)); }), HasSubstr("allclose"));
}

TEST(Functions, WhatDependsOnValues) {
  const Tensor x = of({0, 2, 0, 3, 2, 0}, {2, 3});
  EXPECT_THAT(nonzero(x).to_vector<int64_t>(), ElementsAre(0, 1, 1, 0, 1, 1));
  EXPECT_THAT(nonzero(x.transpose(0, 1)).to_vector<int64_t>(), ElementsAre(0, 1, 1, 0, 1, 1));
  EXPECT_EQ(nonzero(of({}, {0, 2})).shape(), (Shape{0, 2}));
  EXPECT_THAT(numbers(masked_select(x, x > 1.0)), ElementsAre(2, 3, 2));
  const Tensor rows = of({1, 0}, {2, 1}) > 0.5;  // a broadcast column
  EXPECT_THAT(numbers(masked_select(x, rows)), ElementsAre(0, 2, 0));
  EXPECT_THAT(numbers(unique(x)), ElementsAre(0, 2, 3));
  EXPECT_EQ(unique(of({}, {0})).elems(), 0);
}

TEST(Functions, MakingTensors) {
  EXPECT_THAT(numbers(linspace(0, 1, 5)), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(numbers(linspace(3, 7, 1)), ElementsAre(3));
  EXPECT_EQ(linspace(0, 1, 0).elems(), 0);
  EXPECT_EQ(numbers(linspace(-1, 0.1, 7, DType::f64)).back(), 0.1);
  EXPECT_THAT(error_of([] { linspace(0, 1, -1); }), HasSubstr("a negative count"));
  EXPECT_THAT(error_of([] { linspace(0, 1, 2, DType::i32); }), HasSubstr("takes floats"));
  set_seed(5);
  std::set<int64_t> seen;
  for (const int64_t i : randint(-2, 3, {1000}).to_vector<int64_t>()) seen.insert(i);
  EXPECT_THAT(seen, ElementsAre(-2, -1, 0, 1, 2));
  EXPECT_THAT(error_of([] { randint(3, 3, {1}); }), HasSubstr("bounds out of range"));
  std::vector<int64_t> order = randperm(100).to_vector<int64_t>();
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_THAT(error_of([] { randperm(-1); }), HasSubstr("a negative count"));
}

}  // namespace
}  // namespace wick
