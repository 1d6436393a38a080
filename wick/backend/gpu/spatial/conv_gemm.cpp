#include "wick/backend/gpu/spatial/conv_gemm.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "wick/backend/gpu/kernels/linear/gemm_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

uint32_t narrow(int64_t n) { return static_cast<uint32_t>(n); }

/// An estimate of the memory transactions of 32 threads that load adjacent elements along three
/// dims, the last one fastest.
struct Transactions {
  int64_t run = 1, distance = 8;
  Transactions& dim(int64_t size, int64_t stride) {
    if (size > 1) {
      run = std::min<int64_t>(size, 32);
      distance = std::min<int64_t>(std::abs(stride), 8);
    }
    return *this;
  }
  int64_t count() const { return 32 / run + 4 * distance; }
};

/// Sets whether adjacent threads load adjacent terms or adjacent rows of each operand.
void choose_loads(ConvGemm& g) {
  const ConvAxis &h = g.axis[0], &w = g.axis[1];
  const auto a_terms =
      Transactions().dim(g.outer_terms, g.a_outer).dim(h.terms, h.a_step).dim(w.terms, w.a_step);
  g.a_along_k = a_terms.count() < Transactions().dim(g.m, g.a_row).count() ? 1 : 0;
  const auto b_terms = Transactions()
                           .dim(g.outer_terms, g.b_outer)
                           .dim(h.terms, h.term_step * h.b_step)
                           .dim(w.terms, w.term_step * w.b_step);
  const auto b_rows = Transactions()
                          .dim(g.outer_rows, g.b_row)
                          .dim(h.rows, h.row_step * h.b_step)
                          .dim(w.rows, w.row_step * w.b_step);
  // Along k a thread has several rows, which takes more registers.
  g.b_along_k = 3 * b_terms.count() < 2 * b_rows.count() ? 1 : 0;
}

/// Completes a job of conv2d or conv2d_weight: sets its axes and how its operands are loaded. The
/// rows of the gemm are positions of out, its terms are positions of a.
void set_axes(ConvJob& job, const ConvParams& params, const int64_t (&row_step)[2],
              const int64_t (&term_step)[2]) {
  const Layout &out = job.out.layout, &a = job.a.layout, &b = job.b.layout;
  for (int i = 0; i < 2; ++i) {
    job.gemm.axis[i] = {.rows = narrow(out.shape()[2 + i]),
                        .terms = narrow(a.shape()[2 + i]),
                        .size = b.shape()[2 + i],
                        .start = -params.padding[i],
                        .row_step = row_step[i],
                        .term_step = term_step[i],
                        .b_step = b.stride(2 + i),
                        .a_step = a.stride(2 + i),
                        .out_step = out.stride(2 + i)};
  }
  job.gemm.most_rows = narrow(job.rows());
  choose_loads(job.gemm);
}

}  // namespace

int64_t ConvJob::rows() const {
  return int64_t{gemm.outer_rows} * gemm.axis[0].rows * gemm.axis[1].rows;
}
int64_t ConvJob::terms() const {
  return int64_t{gemm.outer_terms} * gemm.axis[0].terms * gemm.axis[1].terms;
}
int64_t ConvJob::phases() const {
  return int64_t{std::max(gemm.phases[0].count, 1u)} * std::max(gemm.phases[1].count, 1u);
}
int64_t ConvJob::gemms() const { return groups * gemm.slabs * phases(); }

bool ConvJob::is_near() const {
  constexpr int64_t kMost = int64_t{1} << 29;
  const int64_t outer = std::max<int64_t>(gemm.outer_terms, 1);
  int64_t in_a = outer * std::abs(gemm.a_outer), in_b = outer * std::abs(gemm.b_outer);
  for (int i = 0; i < 2; ++i) {
    const ConvAxis& axis = gemm.axis[i];
    const int64_t terms = std::max<int64_t>(axis.terms, 1);
    const int64_t reach = terms * std::abs(axis.term_step);
    const int64_t farthest = std::abs(axis.start) + axis.rows * axis.row_step + reach;
    if (farthest >= kMost || axis.size >= kMost || std::abs(axis.b_step) >= kMost ||
        std::abs(axis.a_step) >= kMost) {
      return false;
    }
    in_a += terms * std::abs(axis.a_step);
    in_b += reach * std::abs(axis.b_step);
    if (in_a >= kMost || in_b >= kMost) return false;
  }
  return in_a < kMost && in_b < kMost;
}

bool ConvJob::has_near_rows() const {
  constexpr int64_t kMost = int64_t{1} << 29;
  int64_t in_b = int64_t{gemm.outer_rows} * std::abs(gemm.b_row);
  for (const ConvAxis& axis : gemm.axis) {
    in_b += (std::abs(axis.start) + axis.rows * axis.row_step) * std::abs(axis.b_step);
  }
  return is_near() && in_b < kMost;
}

ConvJob forward_job(const View& out, const ConstView& x, const ConstView& w,
                    const ConvParams& params) {
  const Layout &lo = out.layout, &lx = x.layout, &lw = w.layout;
  ConvJob job = {out, w, x, params.groups, {}};
  ConvGemm& g = job.gemm;
  const int64_t o = lw.shape()[0] / params.groups, c = lw.shape()[1];
  g.m = narrow(o);
  g.outer_rows = narrow(lo.shape()[0]);
  g.outer_terms = narrow(c);
  g.a_row = lw.stride(0), g.a_outer = lw.stride(1), g.a_group = o * lw.stride(0);
  g.b_row = lx.stride(0), g.b_outer = lx.stride(1), g.b_group = c * lx.stride(1);
  g.out_m = lo.stride(1), g.out_outer = lo.stride(0), g.out_group = o * lo.stride(1);
  set_axes(job, params, params.stride, params.dilation);
  return job;
}

ConvJob input_job(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                  const ConvParams& params) {
  const Layout &lx = grad_x.layout, &lg = grad_out.layout, &lw = w.layout;
  ConvJob job = {grad_x, w, grad_out, params.groups, {}};
  ConvGemm& g = job.gemm;
  const int64_t o = lw.shape()[0] / params.groups, c = lw.shape()[1];
  g.m = narrow(c);
  g.outer_rows = narrow(lx.shape()[0]);
  g.outer_terms = narrow(o);
  g.a_row = lw.stride(1), g.a_outer = lw.stride(0), g.a_group = o * lw.stride(0);
  g.b_row = lg.stride(0), g.b_outer = lg.stride(1), g.b_group = o * lg.stride(1);
  g.out_m = lx.stride(1), g.out_outer = lx.stride(0), g.out_group = c * lx.stride(1);
  for (int i = 0; i < 2; ++i) {
    const int64_t stride = params.stride[i], dilation = params.dilation[i];
    const int64_t outputs = lx.shape()[2 + i], taps = lw.shape()[2 + i];
    const int64_t tap_step = stride / std::gcd(stride, dilation);
    // The sizes are those of phase 0, which has the most outputs, and of the first tap, which has
    // the most taps after it. The kernel computes the sizes and the start of each phase.
    g.axis[i] = {.rows = narrow(divide_up(outputs, stride)),
                 .terms = narrow(divide_up(taps, tap_step)),
                 .size = lg.shape()[2 + i],
                 .start = (params.padding[i] + outputs) / stride,
                 .row_step = 1,
                 .term_step = -(dilation * tap_step / stride),
                 .b_step = lg.stride(2 + i),
                 .a_step = tap_step * lw.stride(2 + i),
                 .out_step = stride * lx.stride(2 + i)};
    g.phases[i] = {.count = narrow(std::min(stride, outputs)),
                   .outputs = narrow(outputs),
                   .taps = narrow(taps),
                   .tap_step = narrow(tap_step),
                   .stride = stride,
                   .padding = params.padding[i],
                   .dilation = dilation,
                   .a_tap = lw.stride(2 + i),
                   .out_tap = lx.stride(2 + i)};
  }
  g.most_rows = narrow(job.rows());
  choose_loads(g);
  return job;
}

ConvJob weight_job(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                   const ConvParams& params) {
  const Layout &lw = grad_w.layout, &lx = x.layout, &lg = grad_out.layout;
  ConvJob job = {grad_w, grad_out, x, params.groups, {}};
  ConvGemm& g = job.gemm;
  const int64_t o = lw.shape()[0] / params.groups, c = lw.shape()[1];
  g.m = narrow(o);
  g.outer_rows = narrow(c);
  g.outer_terms = narrow(lx.shape()[0]);
  g.a_row = lg.stride(1), g.a_outer = lg.stride(0), g.a_group = o * lg.stride(1);
  g.b_row = lx.stride(1), g.b_outer = lx.stride(0), g.b_group = c * lx.stride(1);
  g.out_m = lw.stride(0), g.out_outer = lw.stride(1), g.out_group = o * lw.stride(0);
  set_axes(job, params, params.dilation, params.stride);
  return job;
}

bool takes_depthwise_weight(const ConvJob& job) { return job.gemm.m <= 4 && job.is_near(); }

namespace {

/// Divides a job's terms so that `tiles` thread blocks per slab become `enough`, but each slab has
/// `least` terms. The number of terms of a slab is a multiple of `unit`.
ConvSlabs divide(const ConvJob& job, int64_t tiles, int64_t enough, int64_t least, int64_t unit) {
  const int64_t terms = job.terms(), most = std::max<int64_t>(terms / least, 1);
  const int64_t count = std::clamp<int64_t>(enough / tiles, 1, most);
  const int64_t each = std::max<int64_t>(divide_up(divide_up(terms, count), unit), 1) * unit;
  return {std::max<int64_t>(divide_up(terms, each), 1), each};
}

}  // namespace

ConvSlabs slabs_of(const ConvJob& job) {
  const bool depthwise = takes_depthwise_weight(job);
  const int64_t tiles = job.groups * divide_up(job.gemm.m, depthwise ? 1 : kSmallTile) *
                        divide_up(job.rows(), depthwise ? kDepthwiseTaps : kSmallTile);
  // Enough thread blocks for the largest devices, and slabs long enough that their sums cost little
  // beside the terms.
  return divide(job, tiles, 1024, 1024, 64);
}

ConvSlabs slabs_of_few_tiles(const ConvJob& job) {
  const int64_t tiles =
      job.gemms() * divide_up(job.gemm.m, kSmallTile) * divide_up(job.rows(), kLargeTile);
  const int64_t piece = job.gemm.packed != 0 ? kConvPiece : 1;
  return divide(job, tiles, 128, 512 / piece, 64 / piece);
}

}  // namespace wick::gpu
