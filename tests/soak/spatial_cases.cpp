// Convolutions, pools and resampling, with their gradients.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/soak/soak.h"
#include "wick/tensor/ops.h"

namespace wick::soak {
namespace {

/// The parameters of a convolution along h and w. In one dimension, h is 1 and its parameters have
/// no effect.
struct Conv {
  ConvParams p;
  int64_t batch, groups, in_group, out_group;
  int64_t size[2], kernel[2], output_padding[2] = {0, 0};
  bool one_d;

  Conv(Case& c, bool transposed, bool one_dimension) : one_d(one_dimension) {
    batch = c.between(1, 3);
    groups = c.one_in(3) ? c.between(2, 4) : 1;
    in_group = c.one_in(3) ? c.between(1, 20) : c.between(1, 4);
    out_group = c.one_in(3) ? c.between(1, 20) : c.between(1, 4);
    p.groups = groups;
    int64_t left =
        std::max<int64_t>(1, c.most_elems / (groups * std::max(in_group, out_group) * batch));
    for (int i = 0; i < 2; ++i) {
      const bool still = one_d && i == 0;
      kernel[i] = still ? 1 : c.between(1, 4);
      p.stride[i] = still ? 1 : c.between(1, 3);
      p.dilation[i] = still ? 1 : c.between(1, 3);
      p.padding[i] = still ? 0 : c.below(4);
      size[i] =
          still ? 1 : std::max<int64_t>(1, std::min(c.size(left), one_d ? 1500 : int64_t{40}));
      left = std::max<int64_t>(1, left / size[i]);
      // The padded input must contain the kernel.
      if (!transposed)
        size[i] = std::max(size[i], p.dilation[i] * (kernel[i] - 1) + 1 - 2 * p.padding[i]);
      size[i] = std::max<int64_t>(size[i], 1);
      if (transposed && !still) {
        output_padding[i] = c.below(std::max(p.stride[i], p.dilation[i]));
        while (transposed_size(i) < 1)
          p.padding[i] = std::max<int64_t>(0, p.padding[i] - 1), size[i] += 1;
      }
    }
    c.note(fmt::format("stride {},{} padding {},{} dilation {},{} groups {} output padding {},{}",
                       p.stride[0], p.stride[1], p.padding[0], p.padding[1], p.dilation[0],
                       p.dilation[1], groups, output_padding[0], output_padding[1]));
  }

  int64_t out_size(int i) const {
    return (size[i] + 2 * p.padding[i] - p.dilation[i] * (kernel[i] - 1) - 1) / p.stride[i] + 1;
  }
  int64_t transposed_size(int i) const {
    return (size[i] - 1) * p.stride[i] - 2 * p.padding[i] + p.dilation[i] * (kernel[i] - 1) +
           output_padding[i] + 1;
  }
  Shape image(int64_t channels, int64_t h, int64_t w) const {
    return one_d ? Shape{batch, channels, w} : Shape{batch, channels, h, w};
  }
  Shape filter(int64_t o, int64_t i) const {
    return one_d ? Shape{o, i, kernel[1]} : Shape{o, i, kernel[0], kernel[1]};
  }
  ConvParams1d params1d() const { return {p.stride[1], p.padding[1], p.dilation[1], groups}; }
};

/// Calls visit(b, group, o, i, y, x, ky, kx, iy, ix) for every product of a convolution from an
/// image of h × w to one of oh × ow. (y, x) is the output and (iy, ix) the input position.
template <class Visit>
void for_each_product(const Conv& v, int64_t h, int64_t w, int64_t oh, int64_t ow,
                      const Visit& visit) {
  for (int64_t b = 0; b < v.batch; ++b) {
    for (int64_t g = 0; g < v.groups; ++g) {
      for (int64_t y = 0; y < oh; ++y) {
        for (int64_t x = 0; x < ow; ++x) {
          for (int64_t ky = 0; ky < v.kernel[0]; ++ky) {
            for (int64_t kx = 0; kx < v.kernel[1]; ++kx) {
              const int64_t iy = y * v.p.stride[0] - v.p.padding[0] + ky * v.p.dilation[0];
              const int64_t ix = x * v.p.stride[1] - v.p.padding[1] + kx * v.p.dilation[1];
              if (iy < 0 || ix < 0 || iy >= h || ix >= w) continue;
              visit(b, g, y, x, ky, kx, iy, ix);
            }
          }
        }
      }
    }
  }
}

struct Sums {
  Array y;
  std::vector<Real> magnitude;
  Sums(DType dtype, const Shape& shape) : y(dtype, shape), magnitude(y.v.size(), 0) {}
  void add(int64_t at, Real product) {
    y[at] += product, magnitude[static_cast<size_t>(at)] += std::fabs(product);
  }
  Bound bound(int64_t terms) const {
    Bound b{2.0L, {}};
    for (const Real m : magnitude)
      b.slack.push_back(step(y.dtype) * static_cast<Real>(terms + 8) * m);
    return b;
  }
};

/// Adds a bias per channel.
void add_bias(Sums& s, const Array& bias, int64_t channels, int64_t pixels) {
  for (int64_t at = 0; at < s.y.elems(); ++at) {
    // The sum is rounded before the bias is added.
    const Real b = bias[at / pixels % channels];
    s.magnitude[static_cast<size_t>(at)] +=
        std::fabs(b) + (s.y.dtype == DType::f32 || s.y.dtype == DType::f64
                            ? 0
                            : parity::ulp(s.y.dtype, s.y[at]) / step(s.y.dtype));
    s.y[at] += b;
  }
}

}  // namespace

void conv_case(Case& c, Op op) {
  const DType dtype = c.float_dtype();
  const bool transposed = op == Op::conv_transpose1d || op == Op::conv_transpose2d;
  const Conv v(c, transposed, op == Op::conv1d || op == Op::conv_transpose1d);
  const int64_t oh = transposed ? v.transposed_size(0) : v.out_size(0),
                ow = transposed ? v.transposed_size(1) : v.out_size(1);
  const int64_t ins = v.groups * v.in_group, outs = v.groups * v.out_group, h = v.size[0],
                w = v.size[1];
  const Operand x = c.operand(dtype, v.image(ins, h, w));
  const Operand f =
      c.operand(dtype, transposed ? v.filter(ins, v.out_group) : v.filter(outs, v.in_group));
  const bool biased = c.one_in(3);
  const Operand bias = c.operand(dtype, {outs});
  Sums s(dtype, v.image(outs, oh, ow));
  const int64_t taps = v.kernel[0] * v.kernel[1];
  // The transposed convolution corresponds to the convolution from its output to its input.
  for_each_product(v, transposed ? oh : h, transposed ? ow : w, transposed ? h : oh,
                   transposed ? w : ow,
                   [&](int64_t b, int64_t g, int64_t y, int64_t xx, int64_t ky, int64_t kx,
                       int64_t iy, int64_t ix) {
                     const int64_t tap = ky * v.kernel[1] + kx;
                     for (int64_t i = 0; i < v.in_group; ++i) {
                       for (int64_t o = 0; o < v.out_group; ++o) {
                         const int64_t in = g * v.in_group + i, out = g * v.out_group + o;
                         if (transposed) {
                           s.add(((b * outs + out) * oh + iy) * ow + ix,
                                 x.a[((b * ins + in) * h + y) * w + xx] *
                                     f.a[(in * v.out_group + o) * taps + tap]);
                         } else {
                           s.add(((b * outs + out) * oh + y) * ow + xx,
                                 x.a[((b * ins + in) * h + iy) * w + ix] *
                                     f.a[(out * v.in_group + i) * taps + tap]);
                         }
                       }
                     }
                   });
  if (biased) add_bias(s, bias.a, outs, oh * ow);
  const Tensor add = biased ? bias.x : Tensor();
  const Tensor got =
      op == Op::conv1d   ? conv1d(x.x, f.x, add, v.params1d())
      : op == Op::conv2d ? conv2d(x.x, f.x, add, v.p)
      : op == Op::conv_transpose1d
          ? conv_transpose1d(x.x, f.x, add, v.params1d(), v.output_padding[1])
          : conv_transpose2d(x.x, f.x, add, v.p, {v.output_padding[0], v.output_padding[1]});
  c.expect(got, s.y, s.bound(v.in_group * taps));
}

void conv_weight_case(Case& c) {
  const DType dtype = c.float_dtype();
  const Conv v(c, false, false);
  const int64_t oh = v.out_size(0), ow = v.out_size(1), h = v.size[0], w = v.size[1];
  const int64_t ins = v.groups * v.in_group, outs = v.groups * v.out_group,
                taps = v.kernel[0] * v.kernel[1];
  const Operand x = c.operand(dtype, v.image(ins, h, w)),
                grad = c.operand(dtype, v.image(outs, oh, ow));
  Sums s(dtype, v.filter(outs, v.in_group));
  for_each_product(v, h, w, oh, ow,
                   [&](int64_t b, int64_t g, int64_t y, int64_t xx, int64_t ky, int64_t kx,
                       int64_t iy, int64_t ix) {
                     for (int64_t i = 0; i < v.in_group; ++i) {
                       for (int64_t o = 0; o < v.out_group; ++o) {
                         const int64_t in = g * v.in_group + i, out = g * v.out_group + o;
                         s.add((out * v.in_group + i) * taps + ky * v.kernel[1] + kx,
                               x.a[((b * ins + in) * h + iy) * w + ix] *
                                   grad.a[((b * outs + out) * oh + y) * ow + xx]);
                       }
                     }
                   });
  c.expect(conv2d_weight(x.x, grad.x, {v.kernel[0], v.kernel[1]}, v.p), s.y,
           s.bound(v.batch * oh * ow));
}

namespace {

/// The images of pools and resampling: b·c planes of h × w.
struct Planes {
  int64_t batch, channels, h, w;
  bool one_d;
  Planes(Case& c, bool one_dimension) : one_d(one_dimension) {
    batch = c.between(1, 2), channels = c.one_in(3) ? c.size(40) : c.between(1, 4);
    const int64_t left = std::max<int64_t>(4, c.most_elems / batch / channels);
    w = c.size(std::min<int64_t>(left, one_d ? 2000 : 64));
    h = one_d ? 1 : c.size(std::min<int64_t>(64, std::max<int64_t>(1, left / w)));
  }
  Shape shape(int64_t oh, int64_t ow) const {
    return one_d ? Shape{batch, channels, ow} : Shape{batch, channels, oh, ow};
  }
  int64_t count() const { return batch * channels; }
};

}  // namespace

void pool_case(Case& c, Op op) {
  const bool one_d = op == Op::max_pool1d || op == Op::avg_pool1d,
             average = op == Op::avg_pool1d || op == Op::avg_pool2d;
  const bool gradient = !one_d && c.one_in(3);
  const DType dtype = gradient ? c.float_dtype() : c.dtype(dtypes::kReal);
  const Planes v(c, one_d);
  PoolParams p;
  int64_t out[2];
  const int64_t in[2] = {v.h, v.w};
  for (int i = 0; i < 2; ++i) {
    const bool still = one_d && i == 0;
    p.kernel[i] = still ? 1 : c.between(1, 5);
    p.stride[i] = still ? 1 : c.between(1, 4);
    p.padding[i] = still ? 0 : c.below(p.kernel[i] / 2 + 1);
    p.kernel[i] = std::min(p.kernel[i], in[i] + 2 * p.padding[i]);
    p.padding[i] = std::min(p.padding[i], p.kernel[i] / 2);
    p.kernel[i] = std::min(p.kernel[i], in[i] + 2 * p.padding[i]);
    out[i] = (in[i] + 2 * p.padding[i] - p.kernel[i]) / p.stride[i] + 1;
  }
  p.count_include_pad = c.one_in(2);
  c.note(fmt::format("kernel {},{} stride {},{} padding {},{} {}", p.kernel[0], p.kernel[1],
                     p.stride[0], p.stride[1], p.padding[0], p.padding[1],
                     p.count_include_pad ? "with padding" : ""));
  const Operand x = c.operand(
      dtype, v.shape(v.h, v.w),
      average || gradient ? Values::ordinary : c.pick({Values::ordinary, Values::special}));
  const Operand grad = c.operand(dtype, v.shape(out[0], out[1]));
  Array y(dtype, v.shape(out[0], out[1]));
  Sums s(dtype, gradient ? x.a.shape : y.shape);
  for (int64_t plane = 0; plane < v.count(); ++plane) {
    for (int64_t oy = 0; oy < out[0]; ++oy) {
      for (int64_t ox = 0; ox < out[1]; ++ox) {
        const int64_t to = (plane * out[0] + oy) * out[1] + ox;
        std::vector<int64_t> window;
        for (int64_t ky = 0; ky < p.kernel[0]; ++ky) {
          for (int64_t kx = 0; kx < p.kernel[1]; ++kx) {
            const int64_t iy = oy * p.stride[0] - p.padding[0] + ky,
                          ix = ox * p.stride[1] - p.padding[1] + kx;
            if (iy >= 0 && ix >= 0 && iy < v.h && ix < v.w)
              window.push_back((plane * v.h + iy) * v.w + ix);
          }
        }
        const auto size = static_cast<Real>(
            p.count_include_pad ? p.kernel[0] * p.kernel[1] : static_cast<int64_t>(window.size()));
        int64_t best = window[0];
        for (const int64_t i : window) {
          const Real a = x.a[i], b = x.a[best];
          if (!std::isnan(b) &&
              (std::isnan(a) || a > b || (a == b && std::signbit(b) && !std::signbit(a))))
            best = i;
        }
        if (gradient) {
          if (!average) s.add(best, grad.a[to]);
          for (const int64_t i : average ? window : std::vector<int64_t>{})
            s.add(i, grad.a[to] / size);
        } else if (average) {
          for (const int64_t i : window) s.add(to, x.a[i] / (is_float(dtype) ? size : 1));
          if (!is_float(dtype)) s.y[to] = std::trunc(s.y[to] / size) + 0.0L;
        } else {
          s.y[to] = x.a[best];
        }
      }
    }
  }
  const PoolParams1d p1{p.kernel[1], p.stride[1], p.padding[1], p.count_include_pad};
  const Bound bound =
      (average || gradient) && is_float(dtype) ? s.bound(p.kernel[0] * p.kernel[1]) : Bound{};
  c.expect(gradient  ? average ? avg_pool2d_grad(x.x, grad.x, p) : max_pool2d_grad(x.x, grad.x, p)
            : average ? one_d ? avg_pool1d(x.x, p1) : avg_pool2d(x.x, p)
            : one_d ? max_pool1d(x.x, p1)
                     : max_pool2d(x.x, p),
           s.y, bound);
}

namespace {

/// The two inputs between which an output lies, and the weight of the second.
struct Place {
  int64_t low, high;
  Real weight;  ///< weight of `high`
};

Place place_of(int64_t i, int64_t in, int64_t out, double factor, bool corners) {
  Real at;
  if (corners) {
    at = out == 1 ? 0
                  : static_cast<Real>(i) * static_cast<Real>(in - 1) / static_cast<Real>(out - 1);
  } else {
    const Real scale =
        factor > 0 ? 1 / static_cast<Real>(factor) : static_cast<Real>(in) / static_cast<Real>(out);
    at = std::max<Real>(0, (static_cast<Real>(i) + 0.5L) * scale - 0.5L);
  }
  const int64_t low = std::min<int64_t>(static_cast<int64_t>(at), in - 1);
  return {low, std::min(low + 1, in - 1), at - static_cast<Real>(low)};
}

int64_t nearest(int64_t i, int64_t in, int64_t out, double factor) {
  const double scale = factor > 0 ? 1 / factor : static_cast<double>(in) / static_cast<double>(out);
  return std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<double>(i) * scale)),
                           in - 1);
}

}  // namespace

void upsample_case(Case& c, Op op) {
  const bool one_d = op == Op::upsample_nearest1d, linear = op == Op::upsample_bilinear2d;
  const bool gradient = !one_d && c.one_in(3);
  const DType dtype = linear || gradient ? c.float_dtype() : c.dtype(dtypes::kReal);
  const Planes v(c, one_d);
  UpsampleParams p;
  p.size = {one_d ? 1 : c.between(1, 2 * v.h + 3), c.between(1, 2 * v.w + 3)};
  // Powers of two have exact reciprocals, so both sides round equally.
  if (!one_d && c.one_in(3))
    p.scale_factor = {c.pick({0.5, 1.0, 2.0}), c.pick({0.5, 1.0, 2.0, 4.0})};
  p.align_corners = linear && c.one_in(2);
  c.note(fmt::format("to {},{} factors {},{}{}", p.size[0], p.size[1], p.scale_factor[0],
                     p.scale_factor[1], p.align_corners ? " corners" : ""));
  const Operand x = c.operand(
      dtype, v.shape(v.h, v.w),
      linear || gradient ? Values::ordinary : c.pick({Values::ordinary, Values::special}));
  const Operand grad = c.operand(dtype, v.shape(p.size[0], p.size[1]));
  Sums s(dtype, gradient ? x.a.shape : grad.a.shape);
  for (int64_t plane = 0; plane < v.count(); ++plane) {
    for (int64_t oy = 0; oy < p.size[0]; ++oy) {
      for (int64_t ox = 0; ox < p.size[1]; ++ox) {
        const int64_t to = (plane * p.size[0] + oy) * p.size[1] + ox;
        const auto add = [&](int64_t iy, int64_t ix, Real weight) {
          const int64_t from = (plane * v.h + iy) * v.w + ix;
          if (gradient) {
            s.add(from, grad.a[to] * weight);
          } else if (linear) {
            s.add(to, x.a[from] * weight);
          } else {
            s.y[to] = x.a[from];
          }
        };
        if (!linear) {
          add(nearest(oy, v.h, p.size[0], p.scale_factor[0]),
              nearest(ox, v.w, p.size[1], p.scale_factor[1]), 1);
          continue;
        }
        const Place py = place_of(oy, v.h, p.size[0], p.scale_factor[0], p.align_corners);
        const Place px = place_of(ox, v.w, p.size[1], p.scale_factor[1], p.align_corners);
        add(py.low, px.low, (1 - py.weight) * (1 - px.weight)),
            add(py.low, px.high, (1 - py.weight) * px.weight);
        add(py.high, px.low, py.weight * (1 - px.weight)),
            add(py.high, px.high, py.weight * px.weight);
      }
    }
  }
  Bound bound;
  if (linear || gradient) {
    bound = s.bound(linear ? 64 : 8);
    // A position is a number near the image's size, and its rounding changes the weights.
    if (linear) {
      for (Real& slack : bound.slack)
        slack += step(dtype == DType::f64 ? dtype : DType::f32) * static_cast<Real>(v.h + v.w) * 16;
    }
  }
  c.expect(gradient ? linear ? upsample_bilinear2d_grad(x.x, grad.x, p)
                             : upsample_nearest2d_grad(x.x, grad.x, p)
           : one_d ? upsample_nearest1d(x.x, p.size[1])
           : linear ? upsample_bilinear2d(x.x, p)
                    : upsample_nearest2d(x.x, p),
           s.y, bound);
}

}  // namespace wick::soak
