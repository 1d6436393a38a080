// Gradient rules of convolutions, pools and resampling. conv2d, conv_transpose2d and conv2d_weight
// are the three partial derivatives of one sum that is linear in input, weight and output, so the
// gradients of each are the other two.

#include <cmath>

#include "wick/tensor/gradients.h"
#include "wick/tensor/shape_ops.h"

namespace wick::tape {
namespace {

/// The distance from the first to the last tap of a kernel.
int64_t reach(const Tensor& weight, const ConvParams& p, int i) {
  return p.dilation[i] * (weight.size(2 + i) - 1);
}

/// The transposed convolution of g [.., oh, ow] that gives an image of x's size.
Tensor to_image_of(const Tensor& x, const Tensor& g, const Tensor& weight, const ConvParams& p) {
  std::array<int64_t, 2> extra;
  for (int i = 0; i < 2; ++i) {
    extra[static_cast<size_t>(i)] = x.size(2 + i) - ((g.size(2 + i) - 1) * p.stride[i] -
                                                     2 * p.padding[i] + reach(weight, p, i) + 1);
  }
  return conv_transpose2d(g, weight, {}, p, extra);
}

std::array<int64_t, 2> kernel_of(const Tensor& weight) { return {weight.size(2), weight.size(3)}; }

/// For each window, the element of `from` at the position of x's first largest element. This is the
/// transpose of max_pool2d_grad and is used for second derivatives. If all elements of a window are
/// -inf, it may choose padding, which gives 0.
Tensor chosen_by_max(const Tensor& x, const Tensor& from, const PoolParams& p) {
  const Tensor first = x.detach(), second = from.detach();
  const int64_t oh = (x.size(2) + 2 * p.padding[0] - p.kernel[0]) / p.stride[0] + 1,
                ow = (x.size(3) + 2 * p.padding[1] - p.kernel[1]) / p.stride[1] + 1;
  const auto windows = [&](const Tensor& t, double edge) {
    const Tensor all = pad(t, {{p.padding[0], p.padding[0]}, {p.padding[1], p.padding[1]}},
                           PadMode::constant, edge);
    const Layout& l = all.layout();
    const Layout overlapping({t.size(0), t.size(1), oh, ow, p.kernel[0], p.kernel[1]},
                             {l.stride(0), l.stride(1), l.stride(2) * p.stride[0],
                              l.stride(3) * p.stride[1], l.stride(2), l.stride(3)},
                             l.offset());
    return Tensor(all.storage(), all.dtype(), overlapping).flatten(4, 5);
  };
  const Tensor best = argmax(windows(first, -INFINITY), -1, true);
  Tensor out = gather(windows(second, 0), best, -1).squeeze(-1);
  if (is_wanted(from)) {
    const auto rule = [](const Vjp& v) {
      v.to(1, max_pool2d_grad(v.x(0), v.grad(), v.get<PoolParams>()));
    };
    record(out, "max_pool2d_chosen", rule, {first, from}, p);
  }
  return out;
}

}  // namespace

void conv2d_rule(const Vjp& v) {
  const auto& p = v.get<ConvParams>();
  v.to_if_wanted(0, [&] { return to_image_of(v.x(0), v.grad(), v.x(1), p); });
  v.to_if_wanted(1, [&] { return conv2d_weight(v.x(0), v.grad(), kernel_of(v.x(1)), p); });
}

void conv_transpose2d_rule(const Vjp& v) {
  const ConvParams& p = v.get<ConvTranspose>().params;
  // With output_padding, convolving the output may give more elements than the input has; the
  // additional input elements count as 0.
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
  v.to_x(max_pool2d_grad(v.x(), v.grad(), v.get<PoolParams>()));
}
void avg_pool2d_rule(const Vjp& v) {
  v.to_x(avg_pool2d_grad(v.x(), v.grad(), v.get<PoolParams>()));
}
void upsample_nearest2d_rule(const Vjp& v) {
  v.to_x(upsample_nearest2d_grad(v.x(), v.grad(), v.get<UpsampleParams>()));
}
void upsample_bilinear2d_rule(const Vjp& v) {
  v.to_x(upsample_bilinear2d_grad(v.x(), v.grad(), v.get<UpsampleParams>()));
}

// Rules of the gradients of pools and resampling. x only selects elements or gives the shape, so
// the derivative with respect to x is 0.

void max_pool2d_grad_rule(const Vjp& v) {
  v.to_if_wanted(1, [&] { return chosen_by_max(v.x(0), v.grad(), v.get<PoolParams>()); });
}
void avg_pool2d_grad_rule(const Vjp& v) {
  v.to_if_wanted(1, [&] { return avg_pool2d(v.grad(), v.get<PoolParams>()); });
}
void upsample_nearest2d_grad_rule(const Vjp& v) {
  v.to_if_wanted(1, [&] { return upsample_nearest2d(v.grad(), v.get<UpsampleParams>()); });
}
void upsample_bilinear2d_grad_rule(const Vjp& v) {
  v.to_if_wanted(1, [&] { return upsample_bilinear2d(v.grad(), v.get<UpsampleParams>()); });
}

void conv2d_weight_rule(const Vjp& v) {
  const ConvParams& p = v.get<ConvWeight>().params;
  v.to_if_wanted(0, [&] { return to_image_of(v.x(0), v.x(1), v.grad(), p); });
  v.to_if_wanted(1, [&] { return conv2d(v.x(0), v.grad(), {}, p); });
}

}  // namespace wick::tape
