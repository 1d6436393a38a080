// Convolutions and their gradients as correlations: describes which taps, weights and pixels belong
// to an output.

#include "wick/backend/cpu/spatial/conv.h"

#include <set>

#include "wick/backend/cpu/cpu_backend.h"

namespace wick::cpu {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

const char* start(const ConstView& v) {
  return static_cast<const char*>(v.data) + v.layout.offset() * info(v.dtype).block_bytes;
}
char* start(const View& v) {
  return static_cast<char*>(v.data) + v.layout.offset() * info(v.dtype).block_bytes;
}

/// Taps k · dilation - padding of an axis.
std::vector<int64_t> taps_of(int64_t kernel, int64_t dilation, int64_t padding) {
  std::vector<int64_t> taps;
  for (int64_t k = 0; k < kernel; ++k) taps.push_back(k * dilation - padding);
  return taps;
}

/// Describes x [b, c, h, w] as the input of a convolution with result `out`.
PatchShape patch_shape(const ConstView& x, const Layout& w, const Layout& out,
                       const ConvParams& params) {
  PatchShape shape;
  shape.dtype = x.dtype;
  shape.batch = x.layout.shape()[0];
  shape.channels = w.shape()[1];
  shape.batch_stride = x.layout.stride(0);
  shape.channel_stride = x.layout.stride(1);
  for (size_t i = 0; i < 2; ++i) {
    const int d = 2 + static_cast<int>(i);
    shape.in_size[i] = x.layout.shape()[d];
    shape.in_stride[i] = x.layout.stride(d);
    shape.out_size[i] = out.shape()[d];
    shape.step[i] = params.stride[i];
    shape.taps[i] = taps_of(w.shape()[d], params.dilation[i], params.padding[i]);
  }
  return shape;
}

PixelTarget pixel_target(const Layout& out, DType dtype, int64_t rows) {
  PixelTarget target;
  target.dtype = dtype;
  target.group_stride = out.stride(1) * rows;
  target.row_stride = out.stride(1);
  target.batch_stride = out.stride(0);
  target.stride = {out.stride(2), out.stride(3)};
  return target;
}

/// Describes weights [rows of all groups, channels, kh, kw] as rows of terms.
Filters filters_of(const Layout& w, int64_t rows) {
  Filters filters;
  filters.group_stride = w.stride(0) * rows;
  filters.row_stride = w.stride(0);
  filters.channel_stride = w.stride(1);
  filters.tap_stride = {w.stride(2), w.stride(3)};
  return filters;
}

/// The taps of one axis of a transposed convolution that contribute to the outputs phase, phase +
/// stride, …: every step-th tap from `first` on.
struct PhaseTaps {
  int64_t first = 0, step = 1;
  std::vector<int64_t> reads;  ///< the input of each tap for the phase's output 0
};
PhaseTaps taps_of_phase(int64_t phase, int64_t kernel, int64_t stride, int64_t dilation,
                        int64_t padding) {
  PhaseTaps taps;
  int64_t found = 0, last = 0;
  for (int64_t k = 0; k < kernel; ++k) {
    const int64_t distance = phase + padding - k * dilation;
    if (floor_div(distance, stride) * stride != distance) continue;
    if (found == 0) taps.first = k;
    if (found == 1) taps.step = k - last;
    last = k;
    ++found;
    taps.reads.push_back(distance / stride);
  }
  return taps;
}

/// The phases to which any tap contributes.
std::set<int64_t> phases_of(int64_t kernel, int64_t stride, int64_t dilation, int64_t padding) {
  std::set<int64_t> phases;
  for (int64_t k = 0; k < kernel; ++k) {
    const int64_t at = k * dilation - padding;
    phases.insert(at - floor_div(at, stride) * stride);
  }
  return phases;
}

// Kernels of one element are a gemm for each image; with fewer pixels in an image, one gemm over
// the whole batch is faster.
constexpr int64_t kMatrixPixels = 128;

/// Whether each pixel of `to` depends on the pixel of `from` with the same index alone. Output
/// padding can make `to` larger than `from`.
bool is_pointwise(const Layout& w, const Layout& to, const Layout& from, const ConvParams& p) {
  return w.shape()[2] == 1 && w.shape()[3] == 1 && p.stride[0] == 1 && p.stride[1] == 1 &&
         p.padding[0] == 0 && p.padding[1] == 0 && to.shape()[2] == from.shape()[2] &&
         to.shape()[3] == from.shape()[3];
}

/// x [b, c, h, w] as [batch, group, channel, pixel], if the pixels have one stride.
std::optional<Layout> as_matrices(const Layout& x, int64_t groups) {
  const Shape& s = x.shape();
  return x.reshape(Shape{s[0], groups, s[1] / groups, s[2] * s[3]});
}

/// Runs a pointwise convolution as gemm; false if the layouts don't allow it. `w` is [group, out
/// channel, in channel].
bool as_matmul(CpuBackend& cpu, const View& out, const ConstView& x, const Layout& w,
               const void* weights, int64_t groups) {
  const int64_t pixels = out.layout.shape()[2] * out.layout.shape()[3];
  if (pixels < kMatrixPixels && out.layout.shape()[0] > 1) return false;
  const auto to = as_matrices(out.layout, groups), from = as_matrices(x.layout, groups);
  if (!to || !from) return false;
  const Layout by_batch =
      w.broadcast_to(Shape{out.layout.shape()[0], groups, w.shape()[1], w.shape()[2]});
  cpu.matmul({out.data, out.dtype, *to}, {weights, x.dtype, by_batch}, {x.data, x.dtype, *from});
  return true;
}

}  // namespace

void CpuBackend::conv2d(const View& out, const ConstView& x, const ConstView& w,
                        const ConvParams& params) {
  if (out.layout.elems() == 0) return;
  if (w.layout.elems() == 0) return fill(out, 0);
  const Layout& wl = w.layout;
  const int64_t rows = wl.shape()[0] / params.groups;
  if (is_pointwise(wl, out.layout, x.layout, params)) {
    const Layout matrices(Shape{params.groups, rows, wl.shape()[1]},
                          {wl.stride(0) * rows, wl.stride(0), wl.stride(1)}, wl.offset());
    if (as_matmul(*this, out, x, matrices, w.data, params.groups)) return;
  }
  Correlation job;
  job.shape = patch_shape(x, wl, out.layout, params);
  job.in = start(x);
  job.in_group_stride = x.layout.stride(1) * job.shape.channels;
  job.groups = params.groups;
  job.rows = rows;
  job.filters = filters_of(wl, rows);
  job.filters.data = start(w);
  job.out = pixel_target(out.layout, out.dtype, rows);
  job.out.data = start(out);
  correlate(isa_, job);
}

void CpuBackend::conv2d_input(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                              const ConvParams& params) {
  if (grad_x.layout.elems() == 0) return;
  if (w.layout.elems() == 0 || grad_out.layout.elems() == 0) return fill(grad_x, 0);
  const Layout &wl = w.layout, &gl = grad_out.layout, &xl = grad_x.layout;
  const int64_t channels = wl.shape()[0] / params.groups, rows = wl.shape()[1];
  if (is_pointwise(wl, xl, gl, params)) {
    const Layout matrices(Shape{params.groups, rows, channels},
                          {wl.stride(0) * channels, wl.stride(1), wl.stride(0)}, wl.offset());
    if (as_matmul(*this, grad_x, grad_out, matrices, w.data, params.groups)) return;
  }
  // The outputs of one phase are an ordinary convolution of grad_out with every stride-th tap.
  std::array<std::set<int64_t>, 2> phases;
  bool all = true;
  for (size_t i = 0; i < 2; ++i) {
    phases[i] = phases_of(wl.shape()[2 + static_cast<int>(i)], params.stride[i], params.dilation[i],
                          params.padding[i]);
    all = all && static_cast<int64_t>(phases[i].size()) == params.stride[i];
  }
  if (!all) fill(grad_x, 0);  // phases without taps are zero
  for (const int64_t y : phases[0]) {
    for (const int64_t x : phases[1]) {
      const std::array<int64_t, 2> phase{y, x};
      Correlation job;
      PatchShape& shape = job.shape;
      shape.dtype = grad_out.dtype;
      shape.batch = gl.shape()[0];
      shape.channels = channels;
      shape.batch_stride = gl.stride(0);
      shape.channel_stride = gl.stride(1);
      job.filters.data = start(w);
      job.out = pixel_target(xl, grad_x.dtype, rows);
      job.out.data = start(grad_x);
      for (size_t i = 0; i < 2; ++i) {
        const int d = 2 + static_cast<int>(i);
        const PhaseTaps taps = taps_of_phase(phase[i], wl.shape()[d], params.stride[i],
                                             params.dilation[i], params.padding[i]);
        shape.in_size[i] = gl.shape()[d];
        shape.in_stride[i] = gl.stride(d);
        shape.out_size[i] = (xl.shape()[d] - phase[i] + params.stride[i] - 1) / params.stride[i];
        shape.step[i] = 1;
        shape.taps[i] = taps.reads;
        job.filters.data += taps.first * wl.stride(d) * info(w.dtype).block_bytes;
        job.filters.tap_stride[i] = taps.step * wl.stride(d);
        job.out.data += phase[i] * xl.stride(d) * info(grad_x.dtype).block_bytes;
        job.out.stride[i] *= params.stride[i];
      }
      if (shape.out_size[0] <= 0 || shape.out_size[1] <= 0) continue;
      job.in = start(grad_out);
      job.in_group_stride = gl.stride(1) * channels;
      job.groups = params.groups;
      job.rows = rows;
      job.filters.group_stride = wl.stride(0) * channels;
      job.filters.row_stride = wl.stride(1);
      job.filters.channel_stride = wl.stride(0);
      correlate(isa_, job);
    }
  }
}

void CpuBackend::conv2d_weight(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                               const ConvParams& params) {
  if (grad_w.layout.elems() == 0) return;
  if (grad_out.layout.elems() == 0) return fill(grad_w, 0);
  const Layout& gl = grad_out.layout;
  FilterGradient job;
  job.shape = patch_shape(x, grad_w.layout, gl, params);
  job.in = start(x);
  job.in_group_stride = x.layout.stride(1) * job.shape.channels;
  job.groups = params.groups;
  job.rows = grad_w.layout.shape()[0] / params.groups;
  job.grad = start(grad_out);
  job.grad_at = pixel_target(gl, grad_out.dtype, job.rows);
  job.out = filters_of(grad_w.layout, job.rows);
  job.out_data = start(grad_w);
  correlate_filters(isa_, job);
}

}  // namespace wick::cpu
