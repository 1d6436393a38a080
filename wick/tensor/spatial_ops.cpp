// Convolutions, pools and resampling: these functions check sizes and call the backend. 1D ops call
// 2D ops with views of height 1.
#include <fmt/format.h>

#include <cmath>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

// The limit of parameters, so that positions in the padded input don't overflow.
constexpr int64_t kMost = INT64_C(1) << 31;

std::string with_weight(const Tensor& x, const Tensor& weight) {
  return fmt::format("x {}, weight {}", x.str(), weight.str());
}

/// The op whose row checks a call, and the name for error messages.
struct Called {
  Op op;
  int dims;
  std::string_view name = wick::name(op);
};

std::string text(const int64_t (&values)[2], int dims) {
  return dims == 1 ? fmt::format("{}", values[1]) : fmt::format("[{}, {}]", values[0], values[1]);
}

std::string text(const ConvParams& p, int dims) {
  return fmt::format("stride {}, padding {}, dilation {}, groups {}", text(p.stride, dims),
                     text(p.padding, dims), text(p.dilation, dims), p.groups);
}

void check_range(const Called& called, const ConvParams& p) {
  bool fits = p.groups >= 1;
  for (int i = 0; i < 2; ++i) {
    fits = fits && p.stride[i] >= 1 && p.stride[i] < kMost && p.padding[i] >= 0 &&
           p.padding[i] < kMost && p.dilation[i] >= 1 && p.dilation[i] < kMost;
  }
  if (fits) return;
  throw Error(
      called.name, "parameters out of range", text(p, called.dims),
      "need stride, dilation and groups of 1 or more, padding of 0 or more, all below 2^31");
}

// `operands` is a function that formats the operands for an error, so that valid calls don't format
// them.

/// The elements from the first to the last kernel tap, inclusive. Errors: an empty kernel; too many
/// elements.
template <class F>
int64_t reach(const Called& called, const F& operands, int64_t kernel, int64_t dilation) {
  int64_t taps = 0;
  if (kernel < 1) throw Error(called.name, "an empty kernel", operands());
  if (__builtin_mul_overflow(kernel - 1, dilation, &taps) || taps >= INT64_C(1) << 61) {
    throw Error(called.name, "the kernel reaches too far", operands(),
                fmt::format("dilation {}", dilation));
  }
  return taps + 1;
}

/// The number of windows of `window` elements that fit. Errors: none fits.
template <class F>
int64_t output_size(const Called& called, const F& operands, int64_t size, int64_t window,
                    int64_t stride, int64_t padding) {
  const int64_t padded = size + 2 * padding;
  if (window > padded) {
    throw Error(called.name, "the kernel is larger than the padded input", operands(),
                fmt::format("need kernel <= input + 2·padding ({} > {})", window, padded));
  }
  return (padded - window) / stride + 1;
}

/// Errors: operands of a convolution don't fit each other.
void check_conv(const Called& called, const Tensor& x, const Tensor& weight, const Tensor& bias,
                const ConvParams& params, bool transposed) {
  check_operand(called.op, x);
  check_same(called.op, x, weight);
  if (bias.defined()) check_same(called.op, x, bias);
  check_range(called, params);
  const int rank = called.dims + 2;
  if (x.rank() != rank || weight.rank() != rank) {
    throw Error(called.name, "ranks don't fit", with_weight(x, weight),
                fmt::format("need x and weight of rank {}", rank));
  }
  const int64_t groups = params.groups, c = x.size(1), o = weight.size(0), per = weight.size(1);
  const bool fits = transposed ? o == c && c % groups == 0
                               : c % groups == 0 && c / groups == per && o % groups == 0;
  if (!fits) {
    throw Error(called.name, "channels don't fit", with_weight(x, weight),
                fmt::format("need {}, groups {}",
                            transposed ? "weight [c, o/groups, ..], c a multiple of groups"
                                       : "weight [o, c/groups, ..], c and o multiples of groups",
                            groups));
  }
  int64_t outputs = o;
  if (transposed && __builtin_mul_overflow(per, groups, &outputs)) {
    throw Error(called.name, "too many channels", with_weight(x, weight));
  }
  if (bias.defined() && !(bias.shape() == Shape{outputs})) {
    throw Error(called.name, "the bias has another size",
                fmt::format("{}, bias {}", with_weight(x, weight), bias.str()),
                fmt::format("need [{}]", outputs));
  }
}

Tensor add_bias(const Tensor& out, const Tensor& bias) {
  return bias.defined() ? add(out, bias.unsqueeze(1).unsqueeze(2)) : out;
}

/// The op and the name in errors of a call; conv1d, for example, calls conv2d.
Called called_of(const OpCall& call) {
  const std::string_view name = call.name();
  return {call.op, name.substr(name.size() - 2) == "1d" ? 1 : 2, name};
}

ResultSpec checked_conv(const OpCall& call) {
  const Tensor &x = call.x(0), &weight = call.x(1);
  const auto& params = call.get<ConvParams>();
  const Called called = called_of(call);
  const auto operands = [&] { return with_weight(x, weight); };
  int64_t size[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t window = reach(called, operands, weight.size(2 + i), params.dilation[i]);
    size[i] =
        output_size(called, operands, x.size(2 + i), window, params.stride[i], params.padding[i]);
  }
  return dense(x.dtype(), {x.size(0), weight.size(0), size[0], size[1]});
}

Tensor conv(const Called& called, const Tensor& x, const Tensor& weight, const Tensor& bias,
            const ConvParams& params) {
  return add_bias(apply({Op::conv2d, {&x, &weight}, params, called.name.data()}), bias);
}

ResultSpec checked_conv_transpose(const OpCall& call) {
  const Tensor &x = call.x(0), &weight = call.x(1);
  const auto& [params, output_padding] = call.get<ConvTranspose>();
  const Called called = called_of(call);
  const auto operands = [&] { return with_weight(x, weight); };
  int64_t size[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t extra = output_padding[static_cast<size_t>(i)];
    if (extra < 0 || extra >= std::max(params.stride[i], params.dilation[i])) {
      throw Error(called.name, "output_padding out of range",
                  fmt::format("{} with {}", extra, text(params, called.dims)),
                  "need 0 <= output_padding < max(stride, dilation)");
    }
    const int64_t window = reach(called, operands, weight.size(2 + i), params.dilation[i]);
    int64_t spread = 0;
    const bool empty = x.size(2 + i) == 0;
    if (__builtin_mul_overflow(x.size(2 + i) - 1, params.stride[i], &spread) ||
        spread >= INT64_C(1) << 61) {
      throw Error(called.name, "the output is too large", operands(), text(params, called.dims));
    }
    size[i] = spread - 2 * params.padding[i] + window + extra;
    if (empty || size[i] < 1) {
      throw Error(called.name, "the output is empty",
                  fmt::format("{}, {}", operands(), text(params, called.dims)),
                  "need (size - 1)·stride - 2·padding + dilation·(kernel - 1) + output_padding + 1 "
                  "of 1 or more");
    }
  }
  return dense(x.dtype(), {x.size(0), weight.size(1) * params.groups, size[0], size[1]});
}

Tensor conv_transpose(const Called& called, const Tensor& x, const Tensor& weight,
                      const Tensor& bias, const ConvParams& params,
                      std::array<int64_t, 2> output_padding) {
  return add_bias(apply({Op::conv_transpose2d,
                         {&x, &weight},
                         ConvTranspose{params, output_padding},
                         called.name.data()}),
                  bias);
}

ConvParams in_two(const ConvParams1d& p) {
  return {.stride = {1, p.stride},
          .padding = {0, p.padding},
          .dilation = {1, p.dilation},
          .groups = p.groups};
}
PoolParams in_two(const PoolParams1d& p) {
  return {.kernel = {1, p.kernel},
          .stride = {1, p.stride},
          .padding = {0, p.padding},
          .count_include_pad = p.count_include_pad};
}

/// Resolves strides of 0 and returns the output's shape. Errors: the windows don't fit.
Shape check_pool(const Called& called, const Tensor& x, PoolParams& p) {
  check_operand(called.op, x);
  if (x.rank() != 4) {
    throw Error(called.name, "the rank doesn't fit", x.str(),
                fmt::format("need rank {}", called.dims + 2));
  }
  const PoolParams given = p;
  const auto operands = [&] {
    return fmt::format("{}, kernel {}, stride {}, padding {}", x.str(),
                       text(given.kernel, called.dims), text(given.stride, called.dims),
                       text(given.padding, called.dims));
  };
  int64_t size[2];
  for (int i = 0; i < 2; ++i) {
    if (p.kernel[i] < 1 || p.stride[i] < 0 || p.padding[i] < 0 || p.kernel[i] >= kMost ||
        p.stride[i] >= kMost) {
      throw Error(called.name, "parameters out of range", operands(),
                  "need a kernel of 1 or more, stride and padding of 0 or more, all below 2^31");
    }
    if (p.padding[i] > p.kernel[i] / 2) {
      throw Error(called.name, "too much padding", operands(), "need padding <= kernel / 2");
    }
    if (p.stride[i] == 0) p.stride[i] = p.kernel[i];
    size[i] = output_size(called, operands, x.size(2 + i), p.kernel[i], p.stride[i], p.padding[i]);
  }
  if (x.size(2) == 0 || x.size(3) == 0) throw Error(called.name, "an empty image", x.str());
  return {x.size(0), x.size(1), size[0], size[1]};
}

/// Resolves strides of 0 and runs a pool. Errors: the windows don't fit.
Tensor pool(Op op, const Called& called, const Tensor& x, PoolParams params) {
  check_pool(called, x, params);
  return apply({op, {&x}, params, called.name.data()});
}

/// Errors: x is an integer or bool tensor, which has no gradient.
void check_has_gradient(const Called& called, const Tensor& x) {
  // check_operand reports other errors
  if (!x.defined() || is_float(x.dtype()) || is_block(x.dtype())) return;
  throw Error(ErrorKind::type, called.name, "no gradient of integers", x.str(),
              x.dtype() == DType::boolean ? "convert it first, as to f32" : "");
}

/// Errors: the gradient isn't a float tensor of the output's shape.
void check_grad(const Called& called, const Tensor& x, const Tensor& grad, const Shape& shape) {
  check_same(called.op, x, grad);
  check_has_gradient(called, x);
  if (grad.shape() == shape) return;
  throw Error(called.name, "the gradient has another shape",
              fmt::format("x {}, grad {}", x.str(), grad.str()),
              fmt::format("need {}", shape.str()));
}

ResultSpec checked_pool(const OpCall& call) {
  PoolParams params = call.get<PoolParams>();
  return dense(call.x().dtype(), check_pool(called_of(call), call.x(), params));
}

ResultSpec checked_pool_grad(const OpCall& call) {
  const Called called{call.op, 2};
  PoolParams params = call.get<PoolParams>();
  check_grad(called, call.x(0), call.x(1), check_pool(called, call.x(0), params));
  return like(call.x());
}

Tensor pool_grad(Op op, const Tensor& x, const Tensor& grad, PoolParams params) {
  check_has_gradient({op, 2}, x);
  check_pool({op, 2}, x, params);
  return apply(
      {.op = op, .inputs = {&x, &grad}, .attributes = params, .part = Part::input_gradient});
}

ResultSpec checked_conv_weight(const OpCall& call) {
  const Tensor &x = call.x(0), &grad = call.x(1);
  const ConvParams& params = call.get<ConvWeight>().params;
  const std::array<int64_t, 2>& sizes = call.get<ConvWeight>().kernel;
  const Called called{Op::conv2d, 2};
  check_operand(called.op, x);
  check_same(called.op, x, grad);
  check_range(called, params);
  const auto operands = [&] { return fmt::format("x {}, grad {}", x.str(), grad.str()); };
  if (x.rank() != 4 || grad.rank() != 4 || x.size(1) % params.groups != 0 ||
      grad.size(1) % params.groups != 0) {
    throw Error(called.name, "operands don't fit", operands(),
                fmt::format("need x [b, c, h, w] and grad [b, o, oh, ow], c and o multiples of "
                            "groups {}",
                            params.groups));
  }
  int64_t size[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t window =
        reach(called, operands, sizes[static_cast<size_t>(i)], params.dilation[i]);
    size[i] =
        output_size(called, operands, x.size(2 + i), window, params.stride[i], params.padding[i]);
  }
  check_grad(called, x, grad, {x.size(0), grad.size(1), size[0], size[1]});
  return dense(x.dtype(), {grad.size(1), x.size(1) / params.groups, sizes[0], sizes[1]});
}

/// Returns the output's shape and computes the input step per output. Errors: sizes are out of
/// range.
Shape check_upsample(const Called& called, const Tensor& x, const UpsampleParams& p,
                     ResampleParams* steps) {
  check_operand(called.op, x);
  if (x.rank() != 4) {
    throw Error(called.name, "the rank doesn't fit", x.str(),
                fmt::format("need rank {}", called.dims + 2));
  }
  steps->align_corners = p.align_corners;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t in = x.size(2 + static_cast<int>(i)), out = p.size[i];
    const double factor = p.scale_factor[i];
    if (out < 1 || in < 1 || !std::isfinite(factor) || factor < 0) {
      throw Error(called.name, "sizes don't fit",
                  fmt::format("{} to [{}, {}], scale factor [{}, {}]", x.str(), p.size[0],
                              p.size[1], p.scale_factor[0], p.scale_factor[1]),
                  "need sizes of 1 or more and scale factors that are positive, or 0 for none");
    }
    if (p.align_corners) {
      steps->scale[i] = out == 1 ? 0 : static_cast<double>(in - 1) / static_cast<double>(out - 1);
    } else {
      steps->scale[i] =
          factor > 0 ? 1.0 / factor : static_cast<double>(in) / static_cast<double>(out);
    }
  }
  return {x.size(0), x.size(1), p.size[0], p.size[1]};
}

ResultSpec checked_upsample(const OpCall& call) {
  ResampleParams steps;
  return dense(call.x().dtype(),
               check_upsample(called_of(call), call.x(), call.get<UpsampleParams>(), &steps));
}

ResultSpec checked_upsample_grad(const OpCall& call) {
  const Called called{call.op, 2};
  ResampleParams steps;
  check_has_gradient(called, call.x());
  check_grad(called, call.x(0), call.x(1),
             check_upsample(called, call.x(0), call.get<UpsampleParams>(), &steps));
  return like(call.x());
}

/// The input steps of a call that has been checked.
ResampleParams steps_of(const OpCall& call) {
  ResampleParams steps;
  check_upsample(called_of(call), call.x(), call.get<UpsampleParams>(), &steps);
  return steps;
}

Tensor upsample(Op op, const Called& called, const Tensor& x, const UpsampleParams& params) {
  return apply({op, {&x}, params, called.name.data()});
}

Tensor upsample_grad(Op op, const Tensor& x, const Tensor& grad, const UpsampleParams& params) {
  return apply(
      {.op = op, .inputs = {&x, &grad}, .attributes = params, .part = Part::input_gradient});
}

/// x [b, c, l] as [b, c, 1, l].
Tensor as_image(const Called& called, const Tensor& x) {
  check_operand(called.op, x);
  if (x.rank() != 3) throw Error(called.name, "the rank doesn't fit", x.str(), "need rank 3");
  return x.unsqueeze(2);
}

}  // namespace

namespace bodies {

const OpBody conv2d{checked_conv, [](Backend& backend, const OpCall& call, const Tensor* out) {
                      backend.conv2d(out->mutable_view(), call.x(0).view(), call.x(1).view(),
                                     call.get<ConvParams>());
                    }};
const OpBody conv2d_weight{checked_conv_weight,
                           [](Backend& backend, const OpCall& call, const Tensor* out) {
                             backend.conv2d_weight(out->mutable_view(), call.x(0).view(),
                                                   call.x(1).view(), call.get<ConvWeight>().params);
                           }};
const OpBody conv_transpose2d{
    checked_conv_transpose, [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.conv2d_input(out->mutable_view(), call.x(0).view(), call.x(1).view(),
                           call.get<ConvTranspose>().params);
    }};
const OpBody pool2d{checked_pool, [](Backend& backend, const OpCall& call, const Tensor* out) {
                      backend.pool2d(call.op, out->mutable_view(), call.x().view(),
                                     call.get<PoolParams>());
                    }};
const OpBody pool2d_grad{checked_pool_grad,
                         [](Backend& backend, const OpCall& call, const Tensor* out) {
                           backend.pool2d_grad(call.op, out->mutable_view(), call.x(1).view(),
                                               call.x(0).view(), call.get<PoolParams>());
                         }};
const OpBody upsample2d{
    checked_upsample, [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.resample(call.op, out->mutable_view(), call.x().view(), steps_of(call));
    }};
const OpBody upsample2d_grad{
    checked_upsample_grad, [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.resample_grad(call.op, out->mutable_view(), call.x(1).view(), steps_of(call));
    }};

}  // namespace bodies

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvParams& params) {
  const Called called{Op::conv2d, 2};
  check_conv(called, x, weight, bias, params, false);
  return conv(called, x, weight, bias, params);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvParams1d& params) {
  const Called called{Op::conv1d, 1};
  check_conv(called, x, weight, bias, in_two(params), false);
  return conv(called, x.unsqueeze(2), weight.unsqueeze(2), bias, in_two(params)).squeeze(2);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvParams& params, std::array<int64_t, 2> output_padding) {
  const Called called{Op::conv_transpose2d, 2};
  check_conv(called, x, weight, bias, params, true);
  return conv_transpose(called, x, weight, bias, params, output_padding);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvParams1d& params, int64_t output_padding) {
  const Called called{Op::conv_transpose1d, 1};
  check_conv(called, x, weight, bias, in_two(params), true);
  return conv_transpose(called, x.unsqueeze(2), weight.unsqueeze(2), bias, in_two(params),
                        {0, output_padding})
      .squeeze(2);
}

Tensor conv2d_weight(const Tensor& x, const Tensor& grad, std::array<int64_t, 2> kernel,
                     const ConvParams& params) {
  return apply({.op = Op::conv2d,
                .inputs = {&x, &grad},
                .attributes = ConvWeight{params, kernel},
                .part = Part::weight_gradient});
}

Tensor max_pool2d(const Tensor& x, const PoolParams& params) {
  return pool(Op::max_pool2d, {Op::max_pool2d, 2}, x, params);
}
Tensor avg_pool2d(const Tensor& x, const PoolParams& params) {
  return pool(Op::avg_pool2d, {Op::avg_pool2d, 2}, x, params);
}
Tensor max_pool1d(const Tensor& x, const PoolParams1d& params) {
  const Called called{Op::max_pool1d, 1};
  return pool(Op::max_pool2d, called, as_image(called, x), in_two(params)).squeeze(2);
}
Tensor avg_pool1d(const Tensor& x, const PoolParams1d& params) {
  const Called called{Op::avg_pool1d, 1};
  return pool(Op::avg_pool2d, called, as_image(called, x), in_two(params)).squeeze(2);
}
Tensor max_pool2d_grad(const Tensor& x, const Tensor& grad, const PoolParams& params) {
  return pool_grad(Op::max_pool2d, x, grad, params);
}
Tensor avg_pool2d_grad(const Tensor& x, const Tensor& grad, const PoolParams& params) {
  return pool_grad(Op::avg_pool2d, x, grad, params);
}

Tensor upsample_nearest2d(const Tensor& x, const UpsampleParams& params) {
  return upsample(Op::upsample_nearest2d, {Op::upsample_nearest2d, 2}, x,
                  {params.size, params.scale_factor, false});
}
Tensor upsample_nearest1d(const Tensor& x, int64_t size, double scale_factor) {
  const Called called{Op::upsample_nearest1d, 1};
  const UpsampleParams params{{1, size}, {0, scale_factor}, false};
  return upsample(Op::upsample_nearest2d, called, as_image(called, x), params).squeeze(2);
}
Tensor upsample_bilinear2d(const Tensor& x, const UpsampleParams& params) {
  return upsample(Op::upsample_bilinear2d, {Op::upsample_bilinear2d, 2}, x, params);
}
Tensor upsample_nearest2d_grad(const Tensor& x, const Tensor& grad, const UpsampleParams& params) {
  return upsample_grad(Op::upsample_nearest2d, x, grad, {params.size, params.scale_factor, false});
}
Tensor upsample_bilinear2d_grad(const Tensor& x, const Tensor& grad, const UpsampleParams& params) {
  return upsample_grad(Op::upsample_bilinear2d, x, grad, params);
}

}  // namespace wick
