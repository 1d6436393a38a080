// Convolutions, pools and resampling through the public functions: shapes, bias, one-dimensional
// forms, errors. tests/parity checks the values for every dtype and layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/expect_error.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor make(const Shape& shape, DType dtype = DType::f32) { return Tensor::zeros(shape, dtype); }
Tensor counted(const Shape& shape) { return Tensor::arange(1, shape.elems()).reshape(shape); }

TEST(Conv, SlidesTheKernelAndAddsTheBias) {
  const Tensor x = counted({1, 1, 3, 3});
  const Tensor w = Tensor::from(std::vector<float>{1, 0, 0, -1, 2, 0, 0, 2}, {2, 1, 2, 2});
  const Tensor bias = Tensor::from(std::vector<float>{10, 0.5f}, {2});
  const Tensor y = conv2d(x, w, bias);
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2, 2}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(6, 6, 6, 6, 12.5, 16.5, 24.5, 28.5));
  EXPECT_EQ(conv2d(x, w, {}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}}).shape(),
            (Shape{1, 2, 2, 1}));
}

TEST(Conv, OneDimension) {
  const Tensor x = counted({1, 2, 4});
  const Tensor w = Tensor::from(std::vector<float>{1, 1, 1, -1}, {1, 2, 2});
  const Tensor bias = Tensor::from(std::vector<float>{1}, {1});
  EXPECT_THAT(conv1d(x, w, bias).to_vector<float>(), ElementsAre(3, 5, 7));
  const Tensor wide = conv1d(x, w, {}, {.stride = 3, .padding = 1});
  EXPECT_EQ(wide.shape(), (Shape{1, 1, 2}));
  EXPECT_THAT(wide.to_vector<float>(), ElementsAre(-4, 6));
  // A permuted view whose last stride isn't 1.
  const Tensor turned = counted({4, 2, 1}).permute({2, 1, 0});
  EXPECT_THAT(conv1d(turned, w).to_vector<float>(), ElementsAre(2, 6, 10));
}

TEST(Conv, TransposedSpreadsItsInput) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {1, 1, 2});
  const Tensor w = Tensor::from(std::vector<float>{1, 10, 100}, {1, 1, 3});
  EXPECT_THAT(conv_transpose1d(x, w).to_vector<float>(), ElementsAre(1, 12, 120, 200));
  EXPECT_THAT(conv_transpose1d(x, w, {}, {.stride = 4}, 2).to_vector<float>(),
              ElementsAre(1, 10, 100, 0, 2, 20, 200, 0, 0));
  EXPECT_THAT(conv_transpose1d(x, w, {}, {.stride = 2, .padding = 1}, 1).to_vector<float>(),
              ElementsAre(10, 102, 20, 200));
  const Tensor two = conv_transpose2d(make({2, 4, 3, 5}), make({4, 3, 2, 3}), make({6}),
                                      {.stride = {2, 3}, .groups = 2}, {1, 2});
  EXPECT_EQ(two.shape(), (Shape{2, 6, 7, 17}));
}

TEST(Conv, EmptyBatchesAndChannels) {
  EXPECT_EQ(conv2d(make({0, 2, 4, 4}), make({3, 2, 3, 3})).shape(), (Shape{0, 3, 2, 2}));
  EXPECT_THAT(
      conv1d(make({1, 0, 3}), make({1, 0, 2}), Tensor::ones({1}, DType::f32)).to_vector<float>(),
      ElementsAre(1, 1));
  EXPECT_EQ(conv_transpose1d(make({0, 2, 4}), make({2, 3, 2})).shape(), (Shape{0, 3, 5}));
}

TEST(Conv, Errors) {
  const Tensor x = make({1, 4, 5, 5}), w = make({6, 2, 3, 3});
  EXPECT_EQ(error_of([&] { conv2d(x, w); }),
            "conv2d: channels don't fit: x f32[1,4,5,5]@cpu, weight f32[6,2,3,3]@cpu: need weight "
            "[o, c/groups, ..], c and o multiples of groups, groups 1");
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.groups = 4}); }).substr(0, 27),
            "conv2d: channels don't fit:");
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.groups = 2}); }), "no error");
  EXPECT_EQ(error_of([&] { conv2d(x, w, make({5}), {.groups = 2}); }),
            "conv2d: the bias has another size: x f32[1,4,5,5]@cpu, weight f32[6,2,3,3]@cpu, bias "
            "f32[5]@cpu: need [6]");
  EXPECT_EQ(error_of([&] { conv2d(x, w, make({6}, DType::f16), {.groups = 2}); }).substr(0, 22),
            "conv2d: dtypes differ:");
  EXPECT_EQ(error_of([&] { conv2d(x.squeeze(0), w); }),
            "conv2d: ranks don't fit: x f32[4,5,5]@cpu, weight f32[6,2,3,3]@cpu: need x and weight "
            "of rank 4");
  EXPECT_EQ(error_of([&] {
              conv2d(x, w, {}, {.dilation = {3, 1}, .groups = 2});
            }),
            "conv2d: the kernel is larger than the padded input: x f32[1,4,5,5]@cpu, weight "
            "f32[6,2,3,3]@cpu: need kernel <= input + 2·padding (7 > 5)");
  EXPECT_EQ(error_of([&] {
              conv1d(make({1, 2, 3}), make({1, 2, 0}));
            }),
            "conv1d: an empty kernel: x f32[1,2,1,3]@cpu, weight f32[1,2,1,0]@cpu");
  for (const ConvParams& bad :
       {ConvParams{.stride = {0, 1}}, ConvParams{.padding = {0, -1}},
        ConvParams{.dilation = {1, 0}}, ConvParams{.groups = 0}, ConvParams{.groups = -1},
        ConvParams{.stride = {INT64_MAX, 1}}, ConvParams{.padding = {INT64_MAX, 1}},
        ConvParams{.dilation = {1, INT64_MAX}}}) {
    EXPECT_THAT(error_of([&] { conv2d(x, w, {}, bad); }),
                HasSubstr("conv2d: parameters out of range: stride ["));
    EXPECT_THAT(error_of([&] { conv_transpose2d(x, w, {}, bad); }), HasSubstr("out of range"));
    EXPECT_THAT(error_of([&] { conv2d_weight(x, x, {1, 1}, bad); }), HasSubstr("out of range"));
  }
  EXPECT_EQ(error_of([&] {
              conv1d(make({1, 2, 3}), make({1, 2, 2}), {}, {.stride = -2});
            }),
            "conv1d: parameters out of range: stride -2, padding 0, dilation 1, groups 1: need "
            "stride, dilation and groups of 1 or more, padding of 0 or more, all below 2^31");
}

TEST(Conv, TransposedErrors) {
  const Tensor x = make({1, 4, 5}), w = make({4, 3, 3});
  EXPECT_EQ(error_of([&] { conv_transpose1d(x, w, {}, {.stride = 2}, 2); }),
            "conv_transpose1d: output_padding out of range: 2 with stride 2, padding 0, dilation "
            "1, groups 1: need 0 <= output_padding < max(stride, dilation)");
  EXPECT_THAT(error_of([&] { conv_transpose1d(x, w, {}, {}, -1); }), HasSubstr("output_padding"));
  EXPECT_EQ(error_of([&] { conv_transpose1d(x, w, {}, {.stride = 2, .dilation = 3}, 2); }),
            "no error");
  EXPECT_THAT(error_of([&] { conv_transpose1d(x, w, {}, {.groups = 3}); }),
              HasSubstr("conv_transpose1d: channels don't fit"));
  EXPECT_THAT(error_of([&] { conv_transpose1d(x, w, {}, {.padding = 4}); }),
              HasSubstr("conv_transpose1d: the output is empty"));
  EXPECT_THAT(error_of([&] {
                conv_transpose1d(make({1, 4, 0}), w);
              }),
              HasSubstr("the output is empty"));
  const Tensor long_x = make({1, 4, 1}).broadcast_to({1, 4, INT64_C(1) << 40});
  EXPECT_THAT(error_of([&] { conv_transpose1d(long_x, w, {}, {.stride = 1 << 30}); }),
              HasSubstr("conv_transpose1d: the output is too large"));
  const Tensor long_w = make({4, 3, 1}).broadcast_to({4, 3, INT64_C(1) << 40});
  EXPECT_THAT(error_of([&] { conv_transpose1d(x, long_w, {}, {.dilation = 1 << 30}); }),
              HasSubstr("the kernel reaches too far"));
  EXPECT_THAT(error_of([&] { conv1d(x, long_w.narrow(1, 0, 1), {}, {.groups = 4}); }),
              HasSubstr("the kernel is larger than the padded input"));
}

TEST(Conv, WeightGradientErrors) {
  const Tensor x = make({1, 4, 5, 5});
  EXPECT_EQ(error_of([&] {
              conv2d_weight(x, make({1, 2, 3, 4}), {3, 3});
            }),
            "conv2d: the gradient has another shape: x f32[1,4,5,5]@cpu, grad f32[1,2,3,4]@cpu: "
            "need [1,2,3,3]");
  EXPECT_THAT(error_of([&] {
                conv2d_weight(x, make({1, 2, 3}), {3, 3});
              }),
              HasSubstr("conv2d: operands don't fit"));
  EXPECT_THAT(error_of([&] {
                conv2d_weight(x, make({1, 2, 3, 3}), {0, 3});
              }),
              HasSubstr("conv2d: an empty kernel"));
  EXPECT_EQ(conv2d_weight(x, make({1, 2, 3, 3}), {3, 3}, {.groups = 2}).shape(),
            (Shape{2, 2, 3, 3}));
}

TEST(Pool, Values) {
  const Tensor x = counted({1, 1, 4, 4});
  const PoolParams square{.kernel = {2, 2}};
  EXPECT_THAT(max_pool2d(x, square).to_vector<float>(), ElementsAre(6, 8, 14, 16));
  EXPECT_THAT(avg_pool2d(x, square).to_vector<float>(), ElementsAre(3.5, 5.5, 11.5, 13.5));
  const PoolParams padded{.kernel = {2, 2}, .stride = {3, 3}, .padding = {1, 1}};
  EXPECT_THAT(max_pool2d(neg(x), padded).to_vector<float>(), ElementsAre(-1, -3, -9, -11));
  EXPECT_THAT(avg_pool2d(x, padded).to_vector<float>(), ElementsAre(0.25, 1.75, 5.5, 13.5));
  PoolParams inside = padded;
  inside.count_include_pad = false;
  EXPECT_THAT(avg_pool2d(x, inside).to_vector<float>(), ElementsAre(1, 3.5, 11, 13.5));
  const Tensor line = Tensor::from(std::vector<int32_t>{-7, 2, 2, 9, 1}, {1, 1, 5});
  EXPECT_THAT(max_pool1d(line, {.kernel = 3, .stride = 1}).to_vector<int32_t>(),
              ElementsAre(2, 9, 9));
  EXPECT_THAT(avg_pool1d(line, {.kernel = 2, .padding = 1}).to_vector<int32_t>(),
              ElementsAre(-3, 2, 5));
  EXPECT_THAT(max_pool2d_grad(x, counted({1, 1, 2, 2}), square).to_vector<float>(),
              ElementsAre(0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4));
  EXPECT_THAT(avg_pool2d_grad(x, counted({1, 1, 2, 2}), square).narrow(2, 1, 2).to_vector<float>(),
              ElementsAre(0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1));
}

TEST(Pool, Errors) {
  const Tensor x = make({1, 2, 4, 4});
  EXPECT_EQ(error_of([&] {
              max_pool2d(x, {.kernel = {5, 2}});
            }),
            "max_pool2d: the kernel is larger than the padded input: f32[1,2,4,4]@cpu, kernel [5, "
            "2], stride [0, 0], padding [0, 0]: need kernel <= input + 2·padding (5 > 4)");
  EXPECT_EQ(error_of([&] {
              avg_pool2d(x, {.kernel = {2, 3}, .padding = {0, 2}});
            }),
            "avg_pool2d: too much padding: f32[1,2,4,4]@cpu, kernel [2, 3], stride [0, 0], padding "
            "[0, 2]: need padding <= kernel / 2");
  EXPECT_THAT(error_of([&] { max_pool2d(x, {.kernel = {0, 1}}); }), HasSubstr("out of range"));
  EXPECT_THAT(error_of([&] {
                max_pool2d(x, {.kernel = {1, 1}, .stride = {-1, 1}});
              }),
              HasSubstr("max_pool2d: parameters out of range"));
  EXPECT_THAT(error_of([&] {
                max_pool2d(x, {.kernel = {1, 1}, .padding = {-1, 0}});
              }),
              HasSubstr("out of range"));
  EXPECT_THAT(error_of([&] { max_pool1d(x, {}); }),
              HasSubstr("max_pool1d: the rank doesn't fit: f32[1,2,4,4]@cpu: need rank 3"));
  EXPECT_THAT(error_of([&] { avg_pool2d(x.squeeze(0), {}); }), HasSubstr("need rank 4"));
  EXPECT_THAT(error_of([&] {
                max_pool2d(make({1, 2, 0, 4}), {.kernel = {2, 2}, .padding = {1, 1}});
              }),
              HasSubstr("max_pool2d: an empty image"));
  EXPECT_THAT(error_of([&] {
                max_pool2d_grad(x, make({1, 2, 3, 2}), {.kernel = {2, 2}});
              }),
              HasSubstr("max_pool2d: the gradient has another shape"));
  EXPECT_THAT(error_of([&] {
                avg_pool2d_grad(make({1, 1, 2, 2}, DType::i32), make({1, 1, 1, 1}, DType::i32),
                                {.kernel = {2, 2}});
              }),
              HasSubstr("avg_pool2d: no gradient of integers"));
  EXPECT_EQ(max_pool2d(make({0, 2, 4, 4}), {.kernel = {2, 2}}).shape(), (Shape{0, 2, 2, 2}));
}

TEST(Upsample, Values) {
  const Tensor x = Tensor::from(std::vector<float>{0, 4, 8, 12}, {1, 1, 2, 2});
  EXPECT_THAT(upsample_nearest2d(x, {.size = {2, 3}}).to_vector<float>(),
              ElementsAre(0, 0, 4, 8, 8, 12));
  EXPECT_THAT(upsample_nearest1d(counted({1, 1, 5}), 2).to_vector<float>(), ElementsAre(1, 3));
  EXPECT_THAT(upsample_nearest1d(counted({1, 1, 3}), 5, 2.0).to_vector<float>(),
              ElementsAre(1, 1, 2, 2, 3));
  EXPECT_THAT(upsample_bilinear2d(x, {.size = {2, 4}}).to_vector<float>(),
              ElementsAre(0, 1, 3, 4, 8, 9, 11, 12));
  EXPECT_THAT(upsample_bilinear2d(x, {.size = {3, 2}, .align_corners = true}).to_vector<float>(),
              ElementsAre(0, 4, 4, 8, 8, 12));
  const Tensor ones = Tensor::ones({1, 1, 2, 4}, DType::f32);
  EXPECT_THAT(upsample_bilinear2d_grad(x, ones, {.size = {2, 4}}).to_vector<float>(),
              ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(upsample_nearest2d_grad(x, Tensor::ones({1, 1, 2, 3}, DType::f32), {.size = {2, 3}})
                  .to_vector<float>(),
              ElementsAre(2, 1, 2, 1));
}

TEST(Upsample, Errors) {
  const Tensor x = make({1, 2, 4, 4});
  EXPECT_EQ(error_of([&] {
              upsample_nearest2d(x, {.size = {0, 2}});
            }),
            "upsample_nearest2d: sizes don't fit: f32[1,2,4,4]@cpu to [0, 2], scale factor [0, 0]: "
            "need sizes of 1 or more and scale factors that are positive, or 0 for none");
  for (double factor : {-1.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    EXPECT_THAT(error_of([&] {
                  upsample_bilinear2d(x, {.size = {2, 2}, .scale_factor = {1, factor}});
                }),
                HasSubstr("upsample_bilinear2d: sizes don't fit"));
  }
  EXPECT_THAT(error_of([&] {
                upsample_nearest2d(make({1, 2, 0, 4}), {.size = {2, 2}});
              }),
              HasSubstr("sizes don't fit"));
  EXPECT_THAT(error_of([&] { upsample_nearest1d(x, 2); }), HasSubstr("need rank 3"));
  EXPECT_THAT(error_of([&] {
                upsample_bilinear2d(x.squeeze(0), {.size = {2, 2}});
              }),
              HasSubstr("need rank 4"));
  EXPECT_THAT(error_of([&] {
                upsample_bilinear2d(make({1, 1, 2, 2}, DType::u8), {.size = {2, 2}});
              }),
              HasSubstr("upsample_bilinear2d: unsupported dtype: u8[1,1,2,2]@cpu"));
  EXPECT_THAT(error_of([&] {
                upsample_nearest2d(x, {.size = {INT64_C(1) << 40, 1 << 30}});
              }),
              HasSubstr("too many elements"));
  EXPECT_THAT(error_of([&] {
                upsample_nearest2d_grad(x, x, {.size = {2, 2}});
              }),
              HasSubstr("upsample_nearest2d: the gradient has another shape"));
}

}  // namespace
}  // namespace wick
