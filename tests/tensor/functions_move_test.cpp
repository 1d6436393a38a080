// Tests cumprod, round_to and the movement functions of wick/tensor/functions.h against plain loops
// on every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
using testing::StartsWith;

std::vector<double> values(const Tensor& x) {
  return x.to(Device::cpu()).contiguous().to(DType::f64).to_vector<double>();
}
Tensor counted(const Shape& shape, DType dtype = DType::f64) {
  return Tensor::arange(0, shape.elems(), 1, dtype).reshape(shape);
}

TEST(FunctionsMove, ProductsUpToEach) {
  for (const Device device : test::cpu_and_devices()) {
    for (const int64_t n : {1, 2, 3, 16, 17, 100}) {
      const Tensor x = test::numbers({3, n, 2}, static_cast<uint64_t>(n));
      const std::vector<double> in = values(x);
      for (const DType dtype : {DType::f64, DType::f32}) {
        const std::vector<double> got = values(cumprod(x.to(dtype).to(device), 1));
        for (int64_t i = 0; i < 6; ++i) {
          double product = 1;
          for (int64_t j = 0; j < n; ++j) {
            const auto at = static_cast<size_t>(i / 2 * n * 2 + j * 2 + i % 2);
            const double element = dtype == DType::f64 ? in[at] : static_cast<float>(in[at]);
            product *= element;
            const double bound = std::fabs(product) * (dtype == DType::f64 ? 1e-13 : 1.2e-7);
            ASSERT_NEAR(got[at], product, bound + 1e-37) << device.str() << " " << n << " " << at;
          }
        }
      }
    }
    const Tensor whole = Tensor::from<int32_t>({3, -2, 0, 5}, {4}, device);
    EXPECT_THAT(cumprod(whole, 0).to(Device::cpu()).to_vector<int32_t>(), ElementsAre(3, -6, 0, 0));
    EXPECT_EQ(cumprod(whole.to(DType::boolean), 0).dtype(), DType::i64);
    EXPECT_THAT(values(round_to(Tensor::from<float>({1.26f, -12.5f, 1e30f}, {3}, device), 1)),
                ElementsAre(1.3f, -12.5f, 1e30f));
    EXPECT_THAT(values(round_to(Tensor::from<float>({1.26f, -15.5f}, {2}, device), -1)),
                ElementsAre(0, -20));
  }
  EXPECT_THAT(error_of([] { cumprod(Tensor::ones({2}, DType::f32), 1); }), HasSubstr("cumprod: "));
  EXPECT_THAT(error_of([] { cumprod(Tensor(), 0); }), HasSubstr("cumprod: undefined tensor"));
  EXPECT_THAT(error_of([] { round_to(Tensor::ones({2}, DType::i32)); }),
              HasSubstr("round_to: unsupported dtype"));
}

TEST(FunctionsMove, SlicesReplaced) {
  const Tensor host = counted({4, 5});
  for (const Device device : test::cpu_and_devices()) {
    for (const DType dtype : {DType::f64, DType::f16, DType::i32, DType::u8, DType::boolean}) {
      const Tensor x = host.to(dtype).to(device);
      for (const Slice& s : {Slice{}, Slice{1, 3}, Slice{-2, {}}, Slice{0, 4, 3}, Slice{3, 1}}) {
        for (const int dim : {0, 1}) {
          const Tensor part = dim == 0 ? x[{s}] : x[{ellipsis, s}];
          const Tensor source = part.to(DType::boolean).to(dtype);
          Tensor written = host.to(dtype).clone();
          const Layout where = dim == 0 ? written[{s}].layout() : written[{ellipsis, s}].layout();
          slice_set(written, source.to(Device::cpu()), where);
          EXPECT_EQ(values(slice_scatter(x, source, dim, s)), values(written))
              << device.str() << " " << name(dtype) << " dim " << dim;
        }
      }
    }
    const Tensor x = host.to(device), seven = Tensor::full({}, 7, DType::f64, device);
    const Slice both[] = {{1, {}, 2}, {-2, {}}};
    std::vector<double> expected = values(host);
    for (const size_t row : {1U, 3U}) expected[row * 5 + 3] = expected[row * 5 + 4] = 7;
    EXPECT_EQ(values(slice_assign(x, both, seven)), expected) << device.str();
    // Strided operands, and an assignment to a single column.
    EXPECT_EQ(values(slice_assign(x.t(), {Slice{}, Slice{0, 1}}, seven)[{ellipsis, 0}]),
              std::vector<double>(5, 7));
    EXPECT_EQ(values(x), values(host));
  }
  const Tensor x = counted({4, 5});
  EXPECT_THAT(error_of([&] { slice_scatter(x, x, 0, {1, {}}); }), HasSubstr("sizes don't fit"));
  EXPECT_THAT(error_of([&] { slice_scatter(x, x, 0, {{}, {}, -1}); }), HasSubstr("a step below 1"));
  EXPECT_THAT(error_of([&] { slice_assign(x, Slice{0, 1}, x); }), HasSubstr("sizes don't fit"));
  EXPECT_THAT(error_of([&] {
                slice_assign(x, {Slice{}, Slice{}, Slice{}}, x);
              }),
              HasSubstr("more slices than dims"));
}

TEST(FunctionsMove, GradientsOfSlices) {
  for (const Device device : test::cpu_and_devices()) {
    const Tensor x = counted({3, 4}).to(device).requires_grad();
    const Tensor source = Tensor::zeros({2, 1}, DType::f64, device).requires_grad();
    const Slice where[] = {{0, {}, 2}, {1, 3}};
    backward(sum(slice_assign(x, where, source) * counted({3, 4}).to(device)));
    EXPECT_THAT(values(x.grad()), ElementsAre(0, 0, 0, 3, 4, 5, 6, 7, 8, 0, 0, 11));
    EXPECT_THAT(values(source.grad()), ElementsAre(1 + 2, 9 + 10));
  }
}

TEST(FunctionsMove, Tables) {
  for (const Device device : test::cpu_and_devices()) {
    const Tensor table = counted({4, 2}, DType::f32).to(device);
    const Tensor ids = Tensor::from<int64_t>({3, 0, 0, 1}, {2, 2}, device);
    EXPECT_EQ(embedding(ids, table).shape(), (Shape{2, 2, 2}));
    EXPECT_THAT(values(embedding(ids, table)), ElementsAre(6, 7, 0, 1, 0, 1, 2, 3));
  }
  EXPECT_THAT(error_of([] { embedding(Tensor::ones({1}, DType::i64), counted({2})); }),
              HasSubstr("embedding: wrong rank"));
  EXPECT_THAT(error_of([] {
                embedding(Tensor::ones({1}, DType::f32), counted({2, 2}));
              }),
              HasSubstr("embedding: unsupported id dtype"));
  for (const Device device : test::cpu_and_devices()) {
    const Tensor table = counted({4, 2}, DType::f32).to(device);
    const auto wrong = [&] {
      return embedding(Tensor::from<int64_t>({0, 4}, {2}, device), table).to_vector<float>();
    };
    EXPECT_THAT(error_of(wrong), StartsWith("embedding: id out of range: id 4")) << device.str();
  }
  const Tensor left = broadcast_left(counted({2, 3}), {4, 1});
  EXPECT_EQ(left.shape(), (Shape{4, 1, 2, 3}));
  EXPECT_EQ(left.layout().stride(0), 0);
  EXPECT_THAT(error_of([] {
                broadcast_left(counted({2}), {1, 1, 1, 1, 1, 1, 1, 1});
              }),
              HasSubstr("too many dimensions"));
}

TEST(FunctionsMove, ChannelsToPixels) {
  const Tensor host = counted({2, 12, 3, 2});
  for (const Device device : test::cpu_and_devices()) {
    const Tensor x = host.to(device);
    const Tensor y = pixel_shuffle(x, 2);
    ASSERT_EQ(y.shape(), (Shape{2, 3, 6, 4}));
    const std::vector<double> in = values(host), out = values(y);
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t column = i % 4, row = i / 4 % 6, channel = i / 24;
      const size_t from = (channel * 4 + row % 2 * 2 + column % 2) * 6 + row / 2 * 2 + column / 2;
      ASSERT_EQ(out[i], in[from]) << device.str() << " " << i;
    }
    EXPECT_EQ(values(pixel_unshuffle(y, 2)), in);
  }
  EXPECT_THAT(error_of([&] { pixel_shuffle(host, 5); }), HasSubstr("channels don't divide"));
  EXPECT_THAT(error_of([&] { pixel_unshuffle(host, 2); }), HasSubstr("sizes don't divide"));
}

}  // namespace
}  // namespace wick
