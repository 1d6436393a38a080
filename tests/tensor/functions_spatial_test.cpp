// Tests conv3d and adaptive pools against plain loops on every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"
#include "tests/test_devices.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/functions.h"

namespace wick {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr DType kFloats[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

std::vector<double> values(const Tensor& x) {
  return x.to(Device::cpu()).contiguous().to(DType::f64).to_vector<double>();
}

double step(DType dtype) {
  return dtype == DType::f64   ? 1e-13
         : dtype == DType::f32 ? 1e-5
         : dtype == DType::f16 ? 1e-3
                               : 8e-3;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double bound,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], bound) << what << " " << i;
}

std::vector<double> conv3d_by_hand(const Tensor& x, const Tensor& w, const ConvParams3d& p,
                                   const Shape& out) {
  const std::vector<double> in = values(x), kernel = values(w);
  std::vector<double> y;
  const int64_t per = w.size(1), outputs = w.size(0) / p.groups;
  for (int64_t i = 0; i < out.elems(); ++i) {
    int64_t at[5], left = i;
    for (int d = 4; d >= 0; --d) at[d] = left % out[d], left /= out[d];
    double sum = 0;
    for (int64_t k = 0; k < w.elems() / w.size(0); ++k) {
      int64_t tap[3], rest = k, from = at[0] * x.size(1);
      for (int d = 2; d >= 0; --d) tap[d] = rest % w.size(2 + d), rest /= w.size(2 + d);
      from += at[1] / outputs * per + rest;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const auto e = static_cast<size_t>(d);
        const int64_t place = at[2 + d] * p.stride[e] + tap[d] * p.dilation[e] - p.padding[e];
        inside = inside && place >= 0 && place < x.size(2 + d);
        from = from * x.size(2 + d) + place;
      }
      if (!inside) continue;
      sum += in[static_cast<size_t>(from)] *
             kernel[static_cast<size_t>(at[1] * (w.elems() / w.size(0)) + k)];
    }
    y.push_back(sum);
  }
  return y;
}

TEST(FunctionsSpatial, Conv3d) {
  struct Case {
    Shape x, w, out;
    ConvParams3d params;
  };
  const Case cases[] = {
      {{2, 3, 4, 5, 6}, {4, 3, 3, 3, 3}, {2, 4, 2, 3, 4}, {}},
      {{1, 4, 5, 4, 6},
       {6, 2, 2, 3, 1},
       {1, 6, 6, 2, 3},
       {.stride = {1, 2, 2}, .padding = {1, 1, 0}, .groups = 2}},
      {{2, 2, 7, 5, 3},
       {2, 2, 3, 2, 2},
       {2, 2, 2, 3, 4},
       {.stride = {2, 1, 1}, .padding = {0, 0, 1}, .dilation = {2, 2, 1}}},
      {{1, 2, 1, 3, 3}, {2, 2, 1, 3, 3}, {1, 2, 1, 1, 1}, {}},
  };
  for (const Device device : test::cpu_and_devices()) {
    for (const Case& c : cases) {
      for (const DType dtype : kFloats) {
        const Tensor x = test::numbers(c.x, 1).to(dtype), w = test::numbers(c.w, 2).to(dtype);
        const Tensor bias = test::numbers({w.size(0)}, 3).to(dtype);
        const std::string what = device.str() + " " + std::string(name(dtype)) + " " + c.x.str();
        const Tensor y = conv3d(x.to(device), w.to(device), {}, c.params);
        ASSERT_EQ(y.shape(), c.out) << what;
        EXPECT_TRUE(y.layout().is_contiguous());
        expect_near(values(y), conv3d_by_hand(x, w, c.params, c.out), 30 * step(dtype), what);
        // Strided operands and a bias.
        const Tensor strided = conv3d(test::strided(x).to(device), test::strided(w).to(device),
                                      bias.to(device), c.params);
        const Tensor whole = y + bias.to(device).reshape({w.size(0), 1, 1, 1});
        expect_near(values(strided), values(whole), 30 * step(dtype), what);
      }
    }
  }
}

/// y = Σ g conv3d(x, w) is linear in x and in w: replacing x by any v gives Σ v dy/dx.
TEST(FunctionsSpatial, GradientsOfConv3d) {
  const ConvParams3d params{.stride = {2, 1, 1}, .padding = {1, 0, 1}};
  const Shape of_x{1, 2, 4, 3, 3}, of_w{3, 2, 2, 2, 2};
  for (const Device device : test::cpu_and_devices()) {
    const Tensor x = test::numbers(of_x, 4).to(device).requires_grad();
    const Tensor w = test::numbers(of_w, 5).to(device).requires_grad();
    const Tensor y = conv3d(x, w, {}, params);
    const Tensor g = test::numbers(y.shape(), 6).to(device);
    backward(sum(y * g));
    const auto weighted = [&](const Tensor& a, const Tensor& b) {
      return values(sum(a * b)).front();
    };
    for (uint64_t seed = 10; seed < 15; ++seed) {
      const Tensor v = test::numbers(of_x, seed).to(device),
                   u = test::numbers(of_w, seed).to(device);
      EXPECT_NEAR(weighted(x.grad(), v), weighted(conv3d(v, w.detach(), {}, params), g), 1e-11);
      EXPECT_NEAR(weighted(w.grad(), u), weighted(conv3d(x.detach(), u, {}, params), g), 1e-11);
    }
  }
}

/// Returns the window [first, last) of an output position.
std::pair<int64_t, int64_t> window(int64_t i, int64_t size, int64_t count) {
  return {i * size / count, ((i + 1) * size + count - 1) / count};
}

std::vector<double> pooled(const Tensor& x, std::array<int64_t, 2> size, bool is_max) {
  const std::vector<double> in = values(x);
  const int64_t h = x.size(2), w = x.size(3);
  std::vector<double> y;
  for (int64_t image = 0; image < x.size(0) * x.size(1); ++image) {
    for (int64_t i = 0; i < size[0]; ++i) {
      for (int64_t j = 0; j < size[1]; ++j) {
        const auto [top, bottom] = window(i, h, size[0]);
        const auto [left, right] = window(j, w, size[1]);
        double sum = 0, most = -std::numeric_limits<double>::infinity();
        for (int64_t r = top; r < bottom; ++r) {
          for (int64_t c = left; c < right; ++c) {
            const double element = in[static_cast<size_t>((image * h + r) * w + c)];
            sum += element, most = std::max(most, element);
          }
        }
        y.push_back(is_max ? most : sum / static_cast<double>((bottom - top) * (right - left)));
      }
    }
  }
  return y;
}

TEST(FunctionsSpatial, AdaptivePools) {
  for (const Device device : test::cpu_and_devices()) {
    for (const std::array<int64_t, 2> from : {std::array<int64_t, 2>{5, 7}, {8, 6}, {1, 3}}) {
      for (const std::array<int64_t, 2> to :
           {std::array<int64_t, 2>{1, 1}, {3, 2}, {4, 3}, {9, 7}}) {
        for (const DType dtype : kFloats) {
          const Tensor x = test::numbers({2, 3, from[0], from[1]}, 7).to(dtype);
          const std::string what = device.str() + " " + x.str() + " to " + Shape(to).str();
          expect_near(values(adaptive_avg_pool2d(x.to(device), to)), pooled(x, to, false),
                      step(dtype), what);
          EXPECT_EQ(values(adaptive_max_pool2d(test::strided(x).to(device), to)),
                    pooled(x, to, true))
              << what;
        }
        const Tensor line = test::numbers({2, 3, from[1]}, 8);
        const Tensor image = line.unsqueeze(2);
        expect_near(values(adaptive_avg_pool1d(line.to(device), to[1])),
                    pooled(image, {1, to[1]}, false), 1e-14, device.str());
        EXPECT_EQ(values(adaptive_max_pool1d(line.to(device), to[1])),
                  pooled(image, {1, to[1]}, true));
      }
    }
    // The gradient goes to the first of several largest elements, whether or not windows overlap.
    const Tensor ones = Tensor::ones({1, 1, 5}, DType::f32, device).requires_grad();
    backward(sum(adaptive_max_pool1d(ones, 2)));
    EXPECT_THAT(values(ones.grad()), ElementsAre(1, 0, 1, 0, 0)) << device.str();
  }
}

TEST(FunctionsSpatial, Refuse) {
  const Tensor x = Tensor::ones({1, 1, 4, 4}, DType::f32);
  EXPECT_THAT(error_of([&] { adaptive_avg_pool2d(x, {0, 1}); }), HasSubstr("a size below 1"));
  EXPECT_THAT(error_of([&] { adaptive_max_pool1d(x, 2); }), HasSubstr("wrong rank"));
  EXPECT_THAT(error_of([&] { adaptive_max_pool2d(x, {INT64_MAX / 2, 1}); }),
              HasSubstr("too many elements"));
  EXPECT_THAT(error_of([&] { adaptive_avg_pool2d(x.to(DType::i32), {3, 3}); }),
              HasSubstr("adaptive_avg_pool2d: unsupported dtype"));
  EXPECT_THAT(
      error_of([&] { adaptive_max_pool2d(Tensor::ones({1, 1, 0, 4}, DType::f32), {1, 1}); }),
      HasSubstr("an empty image"));
  EXPECT_THAT(error_of([&] { conv3d(x, x); }), HasSubstr("conv3d: wrong rank"));
  const Tensor volume = Tensor::ones({1, 2, 3, 3, 3}, DType::f32);
  EXPECT_THAT(error_of([&] { conv3d(volume, volume, {}, {.groups = 2}); }),
              HasSubstr("conv3d: channels don't fit"));
  EXPECT_THAT(error_of([&] { conv3d(volume, volume, {}, {.stride = {0, 1, 1}}); }),
              HasSubstr("conv3d: parameters out of range: stride [0, 1, 1]"));
  EXPECT_THAT(error_of([&] { conv3d(volume, Tensor::ones({1, 2, 4, 1, 1}, DType::f32)); }),
              HasSubstr("kernel larger than the padded input"));
}

}  // namespace
}  // namespace wick
