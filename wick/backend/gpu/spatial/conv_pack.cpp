#include "wick/backend/gpu/spatial/conv_pack.h"

#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

constexpr int64_t kPiece = kConvPiece;

/// Copies to dense memory whose innermost dim, of `size` elements, is followed by zeros up to
/// `padded` elements. Both layouts have the same shape.
void copy_padded(GpuBackend& backend, const View& out, const ConstView& in, int64_t size,
                 int64_t padded) {
  if (size != padded) {
    const int64_t elems = out.layout.elems() / size * padded;
    backend.fill({out.data, out.dtype, Layout::contiguous({elems})}, Scalar(0));
  }
  backend.copy(out, in);
}

/// The filters of a job, [groups, m, outer terms, h, w].
Layout filters_of(const ConvJob& job) {
  const ConvGemm& g = job.gemm;
  const Layout& w = job.a.layout;
  return {Shape{job.groups, g.m, g.outer_terms, w.shape()[2], w.shape()[3]},
          {g.a_group, g.a_row, g.a_outer, w.stride(2), w.stride(3)},
          w.offset()};
}

/// Makes dense copies of the filters the job's operand a, with these distances of taps.
void use_filters(ConvJob& job, void* filters, int64_t h_tap, int64_t w_tap) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t tap = i == 0 ? h_tap : w_tap;
    const ConvPhases& phases = job.gemm.phases[i];
    job.gemm.axis[i].a_step = (phases.count != 0 ? phases.tap_step : 1) * tap;
    job.gemm.phases[i].a_tap = tap;
  }
  job.a = {filters, job.a.dtype, Layout(job.a.layout.shape(), {}, 0)};
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
    copy_padded(backend, {image_->data(), job_.b.dtype, out}, {job_.b.data, job_.b.dtype, in},
                channels, channels_);
    job_.b = {image_->data(), job_.b.dtype, Layout(shape, to, 0)};
  }
  g.b_row = to[0] / kPiece;
  g.b_group = channels_ / kPiece;
  for (size_t i = 0; i < 2; ++i) g.axis[i].b_step = to[2 + i] / kPiece;
}

void PackedConv::pack_filters(GpuBackend& backend) {
  ConvGemm& g = job_.gemm;
  const DType dtype = job_.a.dtype;
  const Layout in = filters_of(job_);
  const int64_t w_taps = in.shape()[4], row = in.shape()[3] * w_taps * channels_;
  filters_.emplace(backend.gpu(), static_cast<size_t>(job_.groups * g.m * row) * 2);
  const Layout out(in.shape(), {g.m * row, row, 1, w_taps * channels_, channels_}, 0);
  copy_padded(backend, {filters_->data(), dtype, out}, {job_.a.data, dtype, in}, g.outer_terms,
              channels_);
  g.a_group = g.m * row / kPiece;
  g.a_row = row / kPiece;
  use_filters(job_, filters_->data(), w_taps * channels_ / kPiece, channels_ / kPiece);
}

TurnedFilters::TurnedFilters(GpuBackend& backend, const ConvJob& job) : job_(job) {
  ConvGemm& g = job_.gemm;
  const DType dtype = job_.a.dtype;
  const Layout in = filters_of(job_);
  const int64_t rows = divide_up(g.m, 4) * 4, h_taps = in.shape()[3], w_taps = in.shape()[4];
  const int64_t tap = g.outer_terms * rows, group = h_taps * w_taps * tap;
  filters_.emplace(backend.gpu(), static_cast<size_t>(job_.groups * group) * 4);
  const Layout out(in.shape(), {group, 1, rows, w_taps * tap, tap}, 0);
  copy_padded(backend, {filters_->data(), dtype, out}, {job_.a.data, dtype, in}, g.m, rows);
  g.a_group = group;
  g.a_row = 1;
  g.a_outer = rows;
  use_filters(job_, filters_->data(), w_taps * tap, tap);
}

}  // namespace wick::gpu
