// Gradients of convolutions, pools and resampling.

#include "tests/tensor/gradient_check.h"

namespace wick {
namespace {

using test::GradientCheck;
using test::Inputs;
using test::numbers;

const ConvParams kConvolutions[] = {
    {.stride = {1, 1}, .padding = {0, 1}, .dilation = {1, 1}, .groups = 2},
    {.stride = {3, 2}, .padding = {1, 0}, .dilation = {2, 1}, .groups = 2},
};

WICK_GRADIENT_CHECK(conv2d) {
  for (const ConvParams& p : kConvolutions) {
    check.twice("with a bias", [&](Inputs i) { return conv2d(i[0], i[1], i[2], p); },
                {numbers({2, 4, 6, 5}, 11), numbers({4, 2, 3, 2}, 12), numbers({4}, 13)});
  }
}
WICK_GRADIENT_CHECK(conv_transpose2d) {
  const Tensor x = numbers({2, 4, 4, 3}, 11), w = numbers({4, 2, 3, 2}, 14);
  for (const ConvParams& p : kConvolutions) {
    for (int64_t extra : {0, 1}) {
      if (extra >= p.stride[0]) continue;
      check.twice("with a bias",
                  [&](Inputs i) {
                    return conv_transpose2d(i[0], i[1], i[2], p, {extra, 0});
                  },
                  {x, w, numbers({4}, 13)});
    }
  }
  check.twice(
      "padding beyond a stride",
      [](Inputs i) {
        const ConvParams p{.stride = {1, 1}, .padding = {0, 0}, .dilation = {3, 3}, .groups = 1};
        return conv_transpose2d(i[0], i[1], {}, p, {2, 1});
      },
      {numbers({1, 2, 3, 3}, 15), numbers({2, 2, 2, 2}, 16)});
  // output_padding extends the output that padding has cut.
  for (const int64_t stride : {1, 2}) {
    for (const int64_t padding : {1, 2, 3}) {
      const ConvParams p{
          .stride = {stride, 1}, .padding = {padding, 1}, .dilation = {3, 2}, .groups = 2};
      check.twice("padding on both sides",
                  [&](Inputs i) {
                    return conv_transpose2d(i[0], i[1], {}, p, {2, 1});
                  },
                  {numbers({1, 2, 4, 3}, 15), numbers({2, 2, 3, 2}, 16)});
    }
  }
}
WICK_GRADIENT_CHECK(conv1d) {
  const ConvParams1d p{.stride = 2, .padding = 1, .dilation = 1, .groups = 1};
  check.twice("with a bias", [&](Inputs i) { return conv1d(i[0], i[1], i[2], p); },
              {numbers({2, 3, 8}, 17), numbers({4, 3, 3}, 18), numbers({4}, 19)});
}
WICK_GRADIENT_CHECK(conv_transpose1d) {
  const ConvParams1d p{.stride = 2, .padding = 1, .dilation = 1, .groups = 2};
  check.twice("with a bias", [&](Inputs i) { return conv_transpose1d(i[0], i[1], i[2], p, 1); },
              {numbers({2, 4, 5}, 17), numbers({4, 2, 3}, 18), numbers({4}, 19)});
}

const PoolParams kPools[] = {
    {.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}},
    {.kernel = {2, 2}},
    {.kernel = {3, 3}, .stride = {1, 2}, .padding = {1, 1}, .count_include_pad = false},
};

WICK_GRADIENT_CHECK(max_pool2d) {
  for (const PoolParams& p : kPools) {
    check.twice("windows", [&](Inputs i) { return max_pool2d(i[0], p); },
                {numbers({2, 2, 6, 5}, 19)});
  }
}
WICK_GRADIENT_CHECK(avg_pool2d) {
  for (const PoolParams& p : kPools) {
    check.twice("windows", [&](Inputs i) { return avg_pool2d(i[0], p); },
                {numbers({2, 2, 6, 5}, 19)});
  }
}
WICK_GRADIENT_CHECK(max_pool1d) {
  check.twice("windows",
              [](Inputs i) { return max_pool1d(i[0], {.kernel = 3, .stride = 2, .padding = 1}); },
              {numbers({2, 2, 7}, 20)});
}
WICK_GRADIENT_CHECK(avg_pool1d) {
  check.twice("windows",
              [](Inputs i) { return avg_pool1d(i[0], {.kernel = 2, .stride = 1, .padding = 1}); },
              {numbers({2, 2, 5}, 20)});
}

/// Third derivatives, through the ops that compute second ones.
TEST(GradientOf, GradientsOfPools) {
  const PoolParams p{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}};
  const Tensor x = numbers({1, 2, 4, 3}, 21);
  GradientCheck check(Op::max_pool2d);
  check.twice("max", [&](Inputs i) { return max_pool2d_grad(x, i[0], p); },
              {numbers({1, 2, 2, 2}, 22)});
  check.twice("avg", [&](Inputs i) { return avg_pool2d_grad(x, i[0], p); },
              {numbers({1, 2, 2, 2}, 22)});
  const UpsampleParams up{.size = {5, 7}};
  check.twice("nearest", [&](Inputs i) { return upsample_nearest2d_grad(x, i[0], up); },
              {numbers({1, 2, 5, 7}, 23)});
  check.twice("bilinear", [&](Inputs i) { return upsample_bilinear2d_grad(x, i[0], up); },
              {numbers({1, 2, 5, 7}, 23)});
  check.twice("conv2d_weight",
              [](Inputs i) {
                return conv2d_weight(i[0], i[1], {3, 2}, {});
              },
              {x, numbers({1, 2, 2, 2}, 22)});
}

WICK_GRADIENT_CHECK(upsample_nearest1d) {
  check.twice("up", [](Inputs i) { return upsample_nearest1d(i[0], 7); }, {numbers({2, 2, 5}, 20)});
}
WICK_GRADIENT_CHECK(upsample_nearest2d) {
  const Tensor x = numbers({2, 2, 6, 5}, 19);
  check.twice("up", [](Inputs i) { return upsample_nearest2d(i[0], {.size = {9, 10}}); }, {x});
  check.twice("down", [](Inputs i) { return upsample_nearest2d(i[0], {.size = {3, 4}}); }, {x});
}
WICK_GRADIENT_CHECK(upsample_bilinear2d) {
  const Tensor x = numbers({2, 2, 6, 5}, 19);
  for (bool align : {false, true}) {
    for (const auto& size : {std::pair{9, 10}, std::pair{4, 3}}) {
      check.twice("resized",
                  [&](Inputs i) {
                    return upsample_bilinear2d(
                        i[0], {.size = {size.first, size.second}, .align_corners = align});
                  },
                  {x});
    }
  }
}

}  // namespace
}  // namespace wick
