// Convolutions with every combination of parameters along both dims: kernel size, stride, padding,
// dilation, number of groups, output padding, batch and image size. Operands are small integers, so
// results are exact and compared for equality.
//
// The lists below define the combinations; loops run over every member of every list. A parameter
// that is added to ConvParams needs a list here (see the assertion on its size).

#include <fmt/format.h>

#include <algorithm>

#include "tests/parity/grid.h"
#include "tests/parity/tensors.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

static_assert(sizeof(ConvParams) == 7 * sizeof(int64_t),
              "a parameter of ConvParams isn't crossed: add its list");

constexpr int64_t kKernels[] = {1, 2, 3}, kStrides[] = {1, 2, 3}, kPaddings[] = {0, 1, 2},
                  kDilations[] = {1, 2, 3};
constexpr int64_t kGroups[] = {1, 2}, kBatches[] = {1, 2};
// Below and above the 128 output pixels from which pointwise convolutions of a batch run as gemms.
constexpr int64_t kImages[][2] = {{3, 4}, {11, 13}};

struct Case {
  int64_t kernel, stride, padding, dilation, groups, batch, output_padding, h, w;
  ConvParams params() const {
    return {.stride = {stride, stride},
            .padding = {padding, padding},
            .dilation = {dilation, dilation},
            .groups = groups};
  }
  int64_t out(int64_t size) const {
    return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
  int64_t transposed(int64_t size) const {
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1;
  }
  bool fits(int64_t size) const { return size + 2 * padding >= dilation * (kernel - 1) + 1; }
  std::string text() const {
    return fmt::format(
        "kernel {} stride {} padding {} dilation {} groups {} batch {} output padding {} image "
        "{}x{}",
        kernel, stride, padding, dilation, groups, batch, output_padding, h, w);
  }
};

/// Calls visit(case) for every combination, and for `transposed` also with every permitted output
/// padding.
template <class Visit>
void for_each_case(bool transposed, const Visit& visit) {
  for (const auto& image : kImages) {
    for (const int64_t kernel : kKernels) {
      for (const int64_t stride : kStrides) {
        for (const int64_t padding : kPaddings) {
          for (const int64_t dilation : kDilations) {
            for (const int64_t groups : kGroups) {
              for (const int64_t batch : kBatches) {
                const int64_t paddings = transposed ? std::max(stride, dilation) : 1;
                for (int64_t output_padding = 0; output_padding < paddings; ++output_padding) {
                  visit(Case{kernel, stride, padding, dilation, groups, batch, output_padding,
                             image[0], image[1]});
                }
              }
            }
          }
        }
      }
    }
  }
}

constexpr int64_t kIns = 4, kOuts = 6;  // channels

/// Returns small integers that depend on the position.
TestTensor numbers(DType dtype, const Shape& shape, uint64_t seed) {
  Random random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elems(); ++i)
    values.push_back(static_cast<double>(random.below(5) - 2));
  return TestTensor(dtype, shape, values);
}

/// Calls visit(pixel of the large image, pixel of the small image, tap) for every product of a
/// convolution from the large image to the small one. Skips taps in the padding.
template <class Visit>
void for_each_product(const Case& c, int64_t large_h, int64_t large_w, int64_t small_h,
                      int64_t small_w, const Visit& visit) {
  for (int64_t y = 0; y < small_h; ++y) {
    for (int64_t x = 0; x < small_w; ++x) {
      for (int64_t tap = 0; tap < c.kernel * c.kernel; ++tap) {
        const int64_t iy = y * c.stride - c.padding + tap / c.kernel * c.dilation;
        const int64_t ix = x * c.stride - c.padding + tap % c.kernel * c.dilation;
        if (iy >= 0 && iy < large_h && ix >= 0 && ix < large_w)
          visit(iy * large_w + ix, y * small_w + x, tap);
      }
    }
  }
}

enum class Form : uint8_t { forward, transposed, weight };

/// Tests every combination of a function in a dtype that represents its results exactly.
void check(Form form, DType dtype) {
  int64_t count = 0;
  for_each_case(form == Form::transposed, [&](const Case& c) {
    if (failed()) return;
    const bool transposed = form == Form::transposed;
    if (transposed ? c.transposed(c.h) < 1 || c.transposed(c.w) < 1 : !c.fits(c.h) || !c.fits(c.w))
      return;
    ++count;
    const int64_t oh = transposed ? c.transposed(c.h) : c.out(c.h),
                  ow = transposed ? c.transposed(c.w) : c.out(c.w);
    const int64_t in_group = kIns / c.groups, out_group = kOuts / c.groups,
                  taps = c.kernel * c.kernel;
    const Shape x_shape{c.batch, kIns, c.h, c.w}, out_shape{c.batch, kOuts, oh, ow};
    const Shape f_shape = transposed ? Shape{kIns, out_group, c.kernel, c.kernel}
                                     : Shape{kOuts, in_group, c.kernel, c.kernel};
    const TestTensor x = numbers(dtype, x_shape, 3);
    const TestTensor other =
        form == Form::weight ? numbers(dtype, out_shape, 4) : numbers(dtype, f_shape, 5);
    const std::vector<double> xs = x.doubles(), others = other.doubles();
    const Shape result = form == Form::weight ? f_shape : out_shape;
    std::vector<double> expected(static_cast<size_t>(result.elems()));
    const auto at = [](int64_t i) { return static_cast<size_t>(i); };
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t o = 0; o < kOuts; ++o) {
        for (int64_t i = 0; i < in_group; ++i) {
          const int64_t in = o / out_group * in_group + i, x_plane = (b * kIns + in) * c.h * c.w,
                        y_plane = (b * kOuts + o) * oh * ow;
          const int64_t filter =
              transposed ? (in * out_group + o % out_group) * taps : (o * in_group + i) * taps;
          if (transposed) {
            for_each_product(c, oh, ow, c.h, c.w, [&](int64_t large, int64_t small, int64_t tap) {
              expected[at(y_plane + large)] += xs[at(x_plane + small)] * others[at(filter + tap)];
            });
            continue;
          }
          for_each_product(c, c.h, c.w, oh, ow, [&](int64_t large, int64_t small, int64_t tap) {
            if (form == Form::weight) {
              expected[at(filter + tap)] += xs[at(x_plane + large)] * others[at(y_plane + small)];
            } else {
              expected[at(y_plane + small)] += xs[at(x_plane + large)] * others[at(filter + tap)];
            }
          });
        }
      }
    }
    std::vector<uint64_t> bits;
    for (const double v : expected) bits.push_back(encode(dtype, v));
    const TestTensor* const inputs[] = {&x, &other};
    const std::string what = c.text();
    run_tensors(
        what, inputs, dtype, result,
        [&](auto in) {
          if (form == Form::weight)
            return conv2d_weight(in[0], in[1], {c.kernel, c.kernel}, c.params());
          if (form == Form::forward) return conv2d(in[0], in[1], {}, c.params());
          return conv_transpose2d(in[0], in[1], {}, c.params(),
                                  {c.output_padding, c.output_padding});
        },
        [&](const std::vector<uint64_t>& got) {
          // Zeros may have either sign.
          for (size_t i = 0; i < got.size(); ++i) {
            if (decode(dtype, got[i]) == decode(dtype, bits[i])) continue;
            ADD_FAILURE() << fmt::format("{}: element {} is {}, expected {}", what, i,
                                         static_cast<double>(decode(dtype, got[i])), expected[i]);
            return;
          }
        });
  });
  EXPECT_GT(count, 400);
}

TEST(ConvCross, Forward) { check(Form::forward, DType::f32); }
TEST(ConvCross, Transposed) { check(Form::transposed, DType::f32); }
TEST(ConvCross, TransposedOf64Bits) { check(Form::transposed, DType::f64); }
TEST(ConvCross, WeightGradient) { check(Form::weight, DType::f32); }

/// Output padding below the dilation.
TEST(ConvCross, OutputPaddingBelowTheDilation) {
  const Tensor x = Tensor::arange(0, 6).reshape({1, 1, 2, 3}),
               w = Tensor::ones({1, 1, 1, 1}, DType::f32);
  const Tensor y = conv_transpose2d(x, w, {}, {.dilation = {2, 2}}, {0, 1});
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 1, 2, 0, 3, 4, 5, 0}));
}

}  // namespace
}  // namespace wick::parity
