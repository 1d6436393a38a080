#include "wick/backend/gpu/spatial/conv_pack.h"

#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

constexpr int64_t kPiece = kConvPiece;

/// Copies channels to the innermost dim of dense memory with `padded` channels, and writes zeros
/// behind them. Both layouts have the same shape.
void copy_channels(GpuBackend& backend, const View& out, const ConstView& in, int64_t channels,
                   int64_t padded) {
  if (channels != padded) {
    const int64_t elems = out.layout.elems() / channels * padded;
    backend.fill({out.data, out.dtype, Layout::contiguous({elems})}, Scalar(0));
  }
  backend.copy(out, in);
}

}  // namespace

PackedConv::PackedConv(GpuBackend& backend, const ConvJob& job)
    : job_(job), channels_(divide_up(job.gemm.outer_terms, kPiece) * kPiece) {
  pack_image(backend);
  pack_filters(backend);
  job_.gemm.outer_terms = static_cast<uint32_t>(channels_ / kPiece);
  job_.gemm.a_outer = job_.gemm.b_outer = 1;
  job_.gemm.packed = 1;
}

void PackedConv::pack_image(GpuBackend& backend) {
  ConvGemm& g = job_.gemm;
  const Layout& from = job_.b.layout;
  const Shape& shape = from.shape();  // [batch, channels, h, w]
  const int64_t channels = g.outer_terms, groups = job_.groups;
  Access pieces(job_.b.data, job_.b.dtype, from.offset());
  pieces.run(shape[1], from.stride(1));
  for (const int d : {0, 2, 3}) pieces.dim(shape[d], from.stride(d));
  Layout::Strides to = from.strides();
  if (channels != channels_ || !pieces.vectors_of(kPiece)) {
    const int64_t pixel = groups * channels_;
    to = {shape[2] * shape[3] * pixel, 1, shape[3] * pixel, pixel};
    image_.emplace(backend.gpu(), static_cast<size_t>(shape[0] * to[0]) * 2);
    const Shape split{shape[0], groups, channels, shape[2], shape[3]};
    const Layout out(split, {to[0], channels_, 1, to[2], to[3]}, 0);
    const Layout in(
        split,
        {from.stride(0), channels * from.stride(1), from.stride(1), from.stride(2), from.stride(3)},
        from.offset());
    copy_channels(backend, {image_->data(), job_.b.dtype, out}, {job_.b.data, job_.b.dtype, in},
                  channels, channels_);
    job_.b = {image_->data(), job_.b.dtype, Layout(shape, to, 0)};
  }
  g.b_row = to[0] / kPiece;
  g.b_group = channels_ / kPiece;
  for (size_t i = 0; i < 2; ++i) g.axis[i].b_step = to[2 + i] / kPiece;
}

void PackedConv::pack_filters(GpuBackend& backend) {
  ConvGemm& g = job_.gemm;
  const ConstView& w = job_.a;
  const int64_t rows = g.m, channels = g.outer_terms, groups = job_.groups;
  const int64_t taps[2] = {w.layout.shape()[2], w.layout.shape()[3]};
  const int64_t row = taps[0] * taps[1] * channels_;
  filters_.emplace(backend.gpu(), static_cast<size_t>(groups * rows * row) * 2);
  const Shape shape{groups, rows, channels, taps[0], taps[1]};
  const Layout out(shape, {rows * row, row, 1, taps[1] * channels_, channels_}, 0);
  const Layout in(shape, {g.a_group, g.a_row, g.a_outer, w.layout.stride(2), w.layout.stride(3)},
                  w.layout.offset());
  copy_channels(backend, {filters_->data(), w.dtype, out}, {w.data, w.dtype, in}, channels,
                channels_);
  g.a_group = rows * row / kPiece;
  g.a_row = row / kPiece;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t tap = out.stride(3 + static_cast<int>(i)) / kPiece;
    const ConvPhases& phases = g.phases[i];
    g.axis[i].a_step = (phases.count != 0 ? phases.tap_step : 1) * tap;
    g.phases[i].a_tap = tap;
  }
  job_.a = {filters_->data(), w.dtype, Layout(w.layout.shape(), {}, 0)};
}

}  // namespace wick::gpu
