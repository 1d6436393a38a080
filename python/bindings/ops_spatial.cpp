// Convolutions, pools and resampling.
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "python/bindings/fields.h"
#include "python/bindings/ops.h"
#include "wick/base/error.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

ConvParams conv_params(const char* op, IntsArg stride, IntsArg padding, IntsArg dilation,
                       int64_t groups) {
  ConvParams params;
  std::ranges::copy(two(stride, op, "stride"), params.stride);
  std::ranges::copy(two(padding, op, "padding"), params.padding);
  std::ranges::copy(two(dilation, op, "dilation"), params.dilation);
  params.groups = groups;
  return params;
}

/// Computes f(x), where x may lack the batch dim.
template <class F>
Tensor batched(const Tensor& x, int spatial_dims, const F& f) {
  const auto run = [&] {
    const bool lacks = x.rank() == spatial_dims + 1 && !is_block(x.dtype());
    return lacks ? f(x.unsqueeze(0)).squeeze(0) : f(x);
  };
  return unlocked(run, x);
}

/// The paddings that text stands for, and an extra element after each dim where "same" needs an odd
/// number.
struct SpatialPadding {
  std::vector<int64_t> around;
  std::vector<Padding> behind;

  /// weight [o, c, k..]. Errors: the text isn't a padding; "same" with a stride.
  SpatialPadding(const char* op, PaddingArg arg, const Tensor& weight,
                 std::span<const int64_t> stride, std::span<const int64_t> dilation) {
    if (!nb::isinstance<nb::str>(arg.object)) return;
    const std::string text = utf8_of(arg.object, fmt::format("{}: padding", op));
    if (text != "same" && text != "valid") {
      throw Error(op, "no such padding", text, "ints, \"same\" or \"valid\"");
    }
    for (size_t i = 0; i < stride.size(); ++i) {
      const int dim = weight.rank() - static_cast<int>(stride.size() - i);
      if (text == "same" && stride[i] != 1) {
        throw Error(op, "padding \"same\" with a stride", fmt::format("{}", stride[i]),
                    "need stride 1");
      }
      const bool is_same = text == "same" && dim >= 0;
      const int64_t all = is_same ? dilation[i] * (weight.shape()[dim] - 1) : 0;
      around.push_back(all / 2);
      behind.push_back({0, all % 2});
    }
  }
  Tensor padded(const Tensor& x) const {
    const bool is_odd = std::ranges::any_of(behind, [](const Padding& p) { return p.after != 0; });
    return is_odd ? pad(x, behind, PadMode::constant, 0) : x;
  }
};

PoolParams pool_params(const char* op, IntsArg kernel, IntsArg stride, IntsArg padding,
                       bool count_include_pad) {
  PoolParams params;
  std::ranges::copy(two(kernel, op, "kernel_size"), params.kernel);
  std::ranges::copy(two(stride, op, "stride"), params.stride);
  std::ranges::copy(two(padding, op, "padding"), params.padding);
  params.count_include_pad = count_include_pad;
  return params;
}

/// Resampling parameters from a size, or from scale factors, which then also determine source
/// positions.
UpsampleParams upsample_params(const char* op, const Tensor& x, IntsArg size, NumbersArg factor,
                               bool align_corners) {
  if (size.given() == factor.given()) {
    throw nb::type_error(fmt::format("{}: need size or scale_factor, one of them", op).c_str());
  }
  UpsampleParams params;
  params.align_corners = align_corners;
  if (size.given()) {
    params.size = two(size, op, "size");
    return params;
  }
  std::vector<double> factors = factor.get(fmt::format("{}: scale_factor", op));
  if (factors.size() == 1) factors.push_back(factors[0]);
  if (factors.size() != 2) {
    throw nb::type_error(fmt::format("{}: scale_factor: need one number or two", op).c_str());
  }
  for (size_t i = 0; i < 2; ++i) {
    const int from = static_cast<int>(i) - 2;
    params.scale_factor[i] = factors[i];
    if (!(factors[i] > 0) || !std::isfinite(factors[i])) {
      throw Error(op, "scale factor isn't positive", fmt::format("{}", factors[i]));
    }
    const double to = std::floor(static_cast<double>(x.size(from)) * factors[i]);
    if (to > 0x1p62) throw Error(op, "too many elements", x.str());
    params.size[i] = static_cast<int64_t>(to);
  }
  return params;
}

void bind_convolutions(OpBinder& ops) {
  ops.add_as(
      Op::conv2d, "conv2d",
      [](const Tensor& x, const Tensor& weight, MaybeTensor bias, IntsArg stride,
         PaddingArg padding, IntsArg dilation, int64_t groups) {
        const auto strides = two(stride, "conv2d", "stride");
        const auto dilations = two(dilation, "conv2d", "dilation");
        const SpatialPadding named_padding("conv2d", padding, weight, strides, dilations);
        ConvParams params{.groups = groups};
        std::ranges::copy(strides, params.stride);
        std::ranges::copy(dilations, params.dilation);
        if (named_padding.around.empty()) {
          std::ranges::copy(two({padding.object}, "conv2d", "padding"), params.padding);
        } else {
          std::ranges::copy(named_padding.around, params.padding);
        }
        const Tensor b = bias.get();
        return batched(x, 2, [&](const Tensor& images) {
          return conv2d(named_padding.padded(images), weight, b, params);
        });
      },
      "", "x"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1);
  ops.add_as(
      Op::conv1d, "conv1d",
      [](const Tensor& x, const Tensor& weight, MaybeTensor bias, IntsArg stride,
         PaddingArg padding, IntsArg dilation, int64_t groups) {
        const int64_t strides[] = {one(stride, "conv1d", "stride")};
        const int64_t dilations[] = {one(dilation, "conv1d", "dilation")};
        const SpatialPadding named_padding("conv1d", padding, weight, strides, dilations);
        const int64_t around = named_padding.around.empty()
                                   ? one({padding.object}, "conv1d", "padding")
                                   : named_padding.around[0];
        const ConvParams1d params{strides[0], around, dilations[0], groups};
        const Tensor b = bias.get();
        return batched(x, 1, [&](const Tensor& lines) {
          return conv1d(named_padding.padded(lines), weight, b, params);
        });
      },
      "", "x"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1);
}

/// Converts one or three numbers to three.
std::array<int64_t, 3> three(IntsArg arg, const char* name) {
  const std::string what = fmt::format("conv3d: {}", name);
  const std::vector<int64_t> values = arg.get(what);
  if (values.size() == 1) return {values[0], values[0], values[0]};
  if (values.size() == 3) return {values[0], values[1], values[2]};
  throw nb::type_error(fmt::format("{}: need one int or three", what).c_str());
}

void bind_conv3d(OpBinder& ops) {
  ops.made_as<true>(
      "conv3d",
      [](const Tensor& x, const Tensor& weight, MaybeTensor bias, IntsArg stride,
         PaddingArg padding, IntsArg dilation, int64_t groups) {
        ConvParams3d params{.stride = three(stride, "stride"),
                            .dilation = three(dilation, "dilation"),
                            .groups = groups};
        const SpatialPadding named_padding("conv3d", padding, weight, params.stride,
                                           params.dilation);
        if (named_padding.around.empty()) {
          params.padding = three({padding.object}, "padding");
        } else {
          std::ranges::copy(named_padding.around, params.padding.begin());
        }
        const Tensor b = bias.get();
        return batched(x, 3, [&](const Tensor& volumes) {
          return conv3d(named_padding.padded(volumes), weight, b, params);
        });
      },
      "3D convolution (cross-correlation) of x [b, c, d, h, w] with kernels [o, c/groups, kd, "
      "kh, kw].\n\nbias [o]. -> [b, o, od, oh, ow]; x and the result may lack b. padding: ints, "
      "\"valid\" or \"same\", which keeps the sizes d, h and w. Runs one conv2d whose input has "
      "the channels of all kd taps, which takes kd times x's memory.",
      "x"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1,
      "groups"_a = 1);
}

using Pool1d = Tensor (*)(const Tensor&, int64_t);
using Pool2d = Tensor (*)(const Tensor&, std::array<int64_t, 2>);

void bind_adaptive_pool1d(OpBinder& ops, const char* name, Pool1d f, const char* doc) {
  ops.made_as<true>(
      name,
      [name, f](const Tensor& x, OutputSizeArg output_size) {
        const auto size = output_size.get(x, 1, fmt::format("{}: output_size", name));
        return batched(x, 1, [&](const Tensor& lines) { return f(lines, size[0]); });
      },
      doc, "x"_a, nb::arg("output_size").none());
}

void bind_adaptive_pool2d(OpBinder& ops, const char* name, Pool2d f, const char* doc) {
  ops.made_as<true>(
      name,
      [name, f](const Tensor& x, OutputSizeArg output_size) {
        const auto size = output_size.get(x, 2, fmt::format("{}: output_size", name));
        return batched(x, 2, [&](const Tensor& images) { return f(images, {size[0], size[1]}); });
      },
      doc, "x"_a, nb::arg("output_size").none());
}

void bind_adaptive_pools(OpBinder& ops) {
  bind_adaptive_pool1d(
      ops, "adaptive_avg_pool1d", &adaptive_avg_pool1d,
      "Average pooling of x [b, c, l] to output_size windows.\n\n-> [b, c, output_size]; x and "
      "the result may lack b. Floats, kept.");
  bind_adaptive_pool2d(
      ops, "adaptive_avg_pool2d", &adaptive_avg_pool2d,
      "Average pooling of images x [b, c, h, w] to windows that cover them evenly.\n\n-> [b, c, "
      "oh, ow]; x and the result may lack b. output_size: one or two numbers, None for x's own "
      "size. Floats, kept.");
  bind_adaptive_pool1d(ops, "adaptive_max_pool1d", &adaptive_max_pool1d,
                       "Max pooling of x [b, c, l] to output_size windows.\n\n-> [b, c, "
                       "output_size]; x and the result may lack b.");
  bind_adaptive_pool2d(
      ops, "adaptive_max_pool2d", &adaptive_max_pool2d,
      "Max pooling of images x [b, c, h, w] to windows that cover them evenly.\n\n-> [b, c, oh, "
      "ow]; x and the result may lack b. output_size: one or two numbers, None for x's own size.");
}

/// The values of a max pool, or values and indices, of lines or images with or without a batch.
template <class F, class WithIndices>
std::variant<Tensor, ValuesIndices> pooled(const Tensor& x, int spatial_dims, bool return_indices,
                                           const F& f, const WithIndices& with_indices) {
  if (!return_indices) return batched(x, spatial_dims, f);
  const auto run = [&] {
    const bool lacks = x.rank() == spatial_dims + 1 && !is_block(x.dtype());
    Sorted result = with_indices(lacks ? x.unsqueeze(0) : x);
    if (lacks) result = {result.values.squeeze(0), result.indices.squeeze(0)};
    return ValuesIndices{std::move(result.values), std::move(result.indices)};
  };
  return unlocked(run, x);
}

/// Max pools with PyTorch's return_indices.
void bind_pool_indices(OpBinder& ops) {
  ops.overload<true>(
      Op::max_pool2d, "max_pool2d",
      [](const Tensor& x, IntsArg kernel, IntsArg stride, IntsArg padding, bool return_indices) {
        const PoolParams params = pool_params("max_pool2d", kernel, stride, padding, true);
        return pooled(
            x, 2, return_indices, [&](const Tensor& images) { return max_pool2d(images, params); },
            [&](const Tensor& images) { return max_pool2d_with_indices(images, params); });
      },
      "x"_a, "kernel_size"_a, "stride"_a = 0, "padding"_a = 0, nb::kw_only(), "return_indices"_a);
  ops.overload<true>(
      Op::max_pool1d, "max_pool1d",
      [](const Tensor& x, IntsArg kernel, IntsArg stride, IntsArg padding, bool return_indices) {
        const PoolParams1d params{.kernel = one(kernel, "max_pool1d", "kernel_size"),
                                  .stride = one(stride, "max_pool1d", "stride"),
                                  .padding = one(padding, "max_pool1d", "padding")};
        return pooled(
            x, 1, return_indices, [&](const Tensor& lines) { return max_pool1d(lines, params); },
            [&](const Tensor& lines) { return max_pool1d_with_indices(lines, params); });
      },
      "x"_a, "kernel_size"_a, "stride"_a = 0, "padding"_a = 0, nb::kw_only(), "return_indices"_a);
  ops.made_as<true>(
      "adaptive_max_pool2d",
      [](const Tensor& x, OutputSizeArg output_size, bool return_indices) {
        const auto s = output_size.get(x, 2, "adaptive_max_pool2d: output_size");
        const std::array<int64_t, 2> size = {s[0], s[1]};
        return pooled(
            x, 2, return_indices,
            [&](const Tensor& images) { return adaptive_max_pool2d(images, size); },
            [&](const Tensor& images) { return adaptive_max_pool2d_with_indices(images, size); });
      },
      "", "x"_a, nb::arg("output_size").none(), "return_indices"_a);
  ops.made_as<true>(
      "adaptive_max_pool1d",
      [](const Tensor& x, OutputSizeArg output_size, bool return_indices) {
        const int64_t size = output_size.get(x, 1, "adaptive_max_pool1d: output_size")[0];
        return pooled(
            x, 1, return_indices,
            [&](const Tensor& lines) { return adaptive_max_pool1d(lines, size); },
            [&](const Tensor& lines) { return adaptive_max_pool1d_with_indices(lines, size); });
      },
      "", "x"_a, nb::arg("output_size").none(), "return_indices"_a);
}

/// Gradients of the ops above as functions.
void bind_gradients(OpBinder& ops) {
  constexpr const char* kDoc =
      "The gradient with respect to x, from the output's gradient; only"
      " x's shape is used.";
  ops.function(
      Op::conv2d, "conv2d_weight",
      [](const Tensor& x, const Tensor& grad, IntsArg kernel, IntsArg stride, IntsArg padding,
         IntsArg dilation, int64_t groups) {
        const ConvParams params = conv_params("conv2d_weight", stride, padding, dilation, groups);
        const std::array<int64_t, 2> sizes = two(kernel, "conv2d_weight", "kernel_size");
        return unlocked([&] { return conv2d_weight(x, grad, sizes, params); }, x, grad);
      },
      "The gradient with respect to the weight [o, c/groups, kh, kw], from the output's gradient"
      " [b, o, oh, ow].",
      "x"_a, "grad"_a, "kernel_size"_a, "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1,
      "groups"_a = 1);
  ops.function(
      Op::max_pool2d, "max_pool2d_grad",
      [](const Tensor& x, const Tensor& grad, IntsArg kernel, IntsArg stride, IntsArg padding) {
        const PoolParams params = pool_params("max_pool2d_grad", kernel, stride, padding, true);
        return unlocked([&] { return max_pool2d_grad(x, grad, params); }, x);
      },
      "The gradient with respect to x, from the output's gradient; it goes to the first largest "
      "element of each window.",
      "x"_a, "grad"_a, "kernel_size"_a, "stride"_a = 0, "padding"_a = 0);
  ops.function(
      Op::avg_pool2d, "avg_pool2d_grad",
      [](const Tensor& x, const Tensor& grad, IntsArg kernel, IntsArg stride, IntsArg padding,
         bool count_include_pad) {
        const PoolParams params =
            pool_params("avg_pool2d_grad", kernel, stride, padding, count_include_pad);
        return unlocked([&] { return avg_pool2d_grad(x, grad, params); }, x);
      },
      kDoc, "x"_a, "grad"_a, "kernel_size"_a, "stride"_a = 0, "padding"_a = 0,
      "count_include_pad"_a = true);
  ops.function(
      Op::upsample_nearest2d, "upsample_nearest2d_grad",
      [](const Tensor& x, const Tensor& grad, IntsArg to, NumbersArg factor) {
        const UpsampleParams params =
            upsample_params("upsample_nearest2d_grad", x, to, factor, false);
        return unlocked([&] { return upsample_nearest2d_grad(x, grad, params); }, x);
      },
      kDoc, "x"_a, "grad"_a, "size"_a = nb::none(), "scale_factor"_a = nb::none());
  ops.function(
      Op::upsample_bilinear2d, "upsample_bilinear2d_grad",
      [](const Tensor& x, const Tensor& grad, IntsArg to, NumbersArg factor, bool align_corners) {
        const UpsampleParams params =
            upsample_params("upsample_bilinear2d_grad", x, to, factor, align_corners);
        return unlocked([&] { return upsample_bilinear2d_grad(x, grad, params); }, x);
      },
      kDoc, "x"_a, "grad"_a, "size"_a = nb::none(), "scale_factor"_a = nb::none(),
      "align_corners"_a = false);
}

void bind_upsampling(OpBinder& ops) {
  ops.add_as(
      Op::upsample_nearest2d, "upsample_nearest2d",
      [](const Tensor& x, IntsArg to, NumbersArg factor) {
        const UpsampleParams params = upsample_params("upsample_nearest2d", x, to, factor, false);
        return unlocked([&] { return upsample_nearest2d(x, params); }, x);
      },
      "", "x"_a, "size"_a = nb::none(), "scale_factor"_a = nb::none());
  ops.add_as(
      Op::upsample_bilinear2d, "upsample_bilinear2d",
      [](const Tensor& x, IntsArg to, NumbersArg factor, bool align_corners) {
        const UpsampleParams params =
            upsample_params("upsample_bilinear2d", x, to, factor, align_corners);
        return unlocked([&] { return upsample_bilinear2d(x, params); }, x);
      },
      "", "x"_a, "size"_a = nb::none(), "scale_factor"_a = nb::none(), "align_corners"_a = false);
  ops.add_as(
      Op::upsample_nearest1d, "upsample_nearest1d",
      [](const Tensor& x, IntsArg size, double factor) {
        const int64_t to = one(size, "upsample_nearest1d", "size");
        return unlocked([&] { return upsample_nearest1d(x, to, factor); }, x);
      },
      "", "x"_a, "size"_a, "scale_factor"_a = 0.0);
}

/// Resizes lines as images of height 1; size and factor apply to the width.
Tensor resized_lines(const char* op, const Tensor& x, IntsArg size, NumbersArg factor,
                     bool is_linear, bool align_corners) {
  UpsampleParams params{.size = {1, 0}, .scale_factor = {0, 0}, .align_corners = align_corners};
  if (size.given() == factor.given()) (void)upsample_params(op, x, size, factor, false);
  if (size.given()) {
    params.size[1] = one(size, op, "size");
  } else {
    const std::vector<double> factors = factor.get(fmt::format("{}: scale_factor", op));
    if (factors.size() != 1) {
      throw nb::type_error(fmt::format("{}: scale_factor: need one number", op).c_str());
    }
    const UpsampleParams both = upsample_params(op, x, size, factor, false);
    params.size[1] = both.size[1];
    params.scale_factor[1] = factors[0];
  }
  const auto run = [&] {
    const Tensor lines = x.unsqueeze(2);
    return (is_linear ? upsample_bilinear2d(lines, params) : upsample_nearest2d(lines, params))
        .squeeze(2);
  };
  return unlocked(run, x);
}

Tensor interpolated(const Tensor& x, IntsArg size, NumbersArg factor, const std::string& mode,
                    std::optional<bool> align_corners) {
  constexpr const char* kOp = "interpolate";
  const bool is_linear = mode == "linear", is_bilinear = mode == "bilinear";
  if (mode != "nearest" && mode != "area" && !is_linear && !is_bilinear) {
    throw Error(kOp, "no such mode", mode, "nearest, linear, bilinear or area");
  }
  if (align_corners && !is_linear && !is_bilinear) {
    throw Error(kOp, "align_corners with mode " + mode, {},
                "only linear and bilinear have align_corners");
  }
  const int rank = x.rank();
  if ((is_linear && rank != 3) || (is_bilinear && rank != 4) || (rank != 3 && rank != 4)) {
    throw Error(kOp, "wrong rank", x.str(),
                is_linear     ? "linear: need [b, c, l]"
                : is_bilinear ? "bilinear: need [b, c, h, w]"
                              : "need [b, c, l] or [b, c, h, w]");
  }
  const bool aligned = align_corners.value_or(false);
  if (mode == "area") {
    if (rank == 3) {
      const Tensor image = x.unsqueeze(2);
      UpsampleParams params = upsample_params(kOp, image, size, factor, false);
      return unlocked([&] { return adaptive_avg_pool1d(x, params.size[1]); }, x);
    }
    const UpsampleParams params = upsample_params(kOp, x, size, factor, false);
    return unlocked([&] { return adaptive_avg_pool2d(x, params.size); }, x);
  }
  if (rank == 3) return resized_lines(kOp, x, size, factor, is_linear, aligned);
  const UpsampleParams params = upsample_params(kOp, x, size, factor, aligned);
  return unlocked(
      [&] { return is_bilinear ? upsample_bilinear2d(x, params) : upsample_nearest2d(x, params); },
      x);
}

void bind_interpolate(OpBinder& ops) {
  ops.made_as<true>(
      "interpolate",
      [](const Tensor& x, IntsArg size, NumbersArg factor, const std::string& mode,
         std::optional<bool> align_corners) {
        return interpolated(x, size, factor, mode, align_corners);
      },
      "Resizes lines x [b, c, l] or images x [b, c, h, w].\n\nGive either size or scale_factor. "
      "mode: \"nearest\", \"linear\" (lines), \"bilinear\" (images) or \"area\", which is "
      "adaptive_avg_pool. align_corners (linear and bilinear): the centres of the end elements "
      "of input and output coincide.",
      "x"_a, "size"_a = nb::none(), "scale_factor"_a = nb::none(), "mode"_a = "nearest",
      "align_corners"_a = nb::none());
}

}  // namespace

void bind_spatial_ops(OpBinder& ops) {
  bind_convolutions(ops);
  bind_conv3d(ops);
  bind_adaptive_pools(ops);
  bind_pool_indices(ops);
  bind_upsampling(ops);
  bind_interpolate(ops);
  bind_gradients(ops);
}

}  // namespace wick::python
