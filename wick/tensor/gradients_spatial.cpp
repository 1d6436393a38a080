// Gradient rules of convolutions, pools and resampling. A convolution is linear in the input and in
// the weight: its transposed form and the form that gives weights are the two other sides of one
// trilinear sum, so each has the others as its gradient.

#include "wick/tensor/gradients.h"
#include "wick/tensor/shape_ops.h"

namespace wick::tape {
namespace {

/// Elements from the first to the last tap of a kernel, less one.
int64_t reach(const Tensor& weight, const ConvParams& p, int i) {
  return p.dilation[i] * (weight.size(2 + i) - 1);
}

/// The transposed convolution of g [.., oh, ow] to an image of x's size.
Tensor to_image_of(const Tensor& x, const Tensor& g, const Tensor& weight, const ConvParams& p) {
  std::array<int64_t, 2> extra;
  for (int i = 0; i < 2; ++i) {
    extra[static_cast<size_t>(i)] = x.size(2 + i) - ((g.size(2 + i) - 1) * p.stride[i] -
                                                     2 * p.padding[i] + reach(weight, p, i) + 1);
  }
  return conv_transpose2d(g, weight, {}, p, extra);
}

std::array<int64_t, 2> kernel_of(const Tensor& weight) { return {weight.size(2), weight.size(3)}; }

}  // namespace

void conv2d_rule(const Vjp& v) {
  const auto& p = v.arguments<ConvParams>();
  v.to_if_wanted(0, [&] { return to_image_of(v.x(0), v.grad(), v.x(1), p); });
  v.to_if_wanted(1, [&] { return conv2d_weight(v.x(0), v.grad(), kernel_of(v.x(1)), p); });
}

void conv_transpose2d_rule(const Vjp& v) {
  const auto& p = v.arguments<ConvParams>();
  // With output_padding, what convolves to the input may convolve to some more: as if the input had
  // zeros there.
  const auto beyond = [&](int i) {
    const int64_t reached = v.grad().size(2 + i) + 2 * p.padding[i] - reach(v.x(1), p, i);
    return (reached - 1) / p.stride[i] + 1 - v.x(0).size(2 + i);
  };
  const Padding rows{0, beyond(0)}, columns{0, beyond(1)};
  v.to_if_wanted(0, [&] {
    const Tensor all = conv2d(v.grad(), v.x(1), {}, p);
    return all.narrow(2, 0, v.x(0).size(2)).narrow(3, 0, v.x(0).size(3));
  });
  v.to_if_wanted(1, [&] {
    const bool more = rows.after > 0 || columns.after > 0;
    const Tensor x = more ? pad(v.x(0), {rows, columns}) : v.x(0);
    return conv2d_weight(v.grad(), x, kernel_of(v.x(1)), p);
  });
}

void max_pool2d_rule(const Vjp& v) {
  v.to_x(max_pool2d_grad(v.x(), v.grad(), v.arguments<PoolParams>()));
}
void avg_pool2d_rule(const Vjp& v) {
  v.to_x(avg_pool2d_grad(v.x(), v.grad(), v.arguments<PoolParams>()));
}
void upsample_nearest2d_rule(const Vjp& v) {
  v.to_x(upsample_nearest2d_grad(v.x(), v.grad(), v.arguments<UpsampleParams>()));
}
void upsample_bilinear2d_rule(const Vjp& v) {
  v.to_x(upsample_bilinear2d_grad(v.x(), v.grad(), v.arguments<UpsampleParams>()));
}

void conv2d_weight_rule(const Vjp& v) {
  const auto& p = v.arguments<ConvParams>();
  v.to_if_wanted(0, [&] { return to_image_of(v.x(0), v.x(1), v.grad(), p); });
  v.to_if_wanted(1, [&] { return conv2d(v.x(0), v.grad(), {}, p); });
}

}  // namespace wick::tape
