// norm_grad and softmax_grad: kernels/norm/norm_grad.gpu, norm_grad_strided.gpu, softmax_grad.gpu.

#include <algorithm>
#include <array>
#include <limits>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/norm/norm_grad_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/norm/norm.h"
#include "wick/backend/gpu/norm/reshaped.h"
#include "wick/backend/gpu/norm/row_plan.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"

namespace wick::gpu {
namespace {

/// Vectors of a row that a thread of a kernel holds.
using GradPacks = OneOf<4, 8, 16, 32>;

const KernelFamily<NormGradArgs, DType, GradPacks> kNormGrad("norm_grad", "norm_grad_{}_{}");
const KernelFamily<NormGradArgs, DType, GradPacks> kNormGradByF32("norm_grad",
                                                                  "norm_grad_{}_by_f32_{}");
const KernelFamily<NormGradArgs, DType, GradPacks> kNormGradByChannel("norm_grad",
                                                                      "norm_grad_{}_by_channel_{}");
const KernelFamily<NormGradArgs, DType> kNormGradStrided("norm_grad_strided",
                                                         "norm_grad_strided_{}");
const KernelFamily<SoftmaxGradArgs, DType, GradPacks> kSoftmaxGrad("softmax_grad",
                                                                   "softmax_grad_{}_{}");
const KernelFamily<SoftmaxGradArgs, DType> kSoftmaxGradStrided("softmax_grad",
                                                               "softmax_grad_strided_{}");
const KernelFamily<SoftmaxGradBySumsArgs, DType> kSoftmaxGradBySums("softmax_grad",
                                                                    "softmax_grad_by_sums_{}");

/// The strided index of some operands of another one.
template <uint32_t M, uint32_t N>
StridedIndex<M> operands_of(const StridedIndex<N>& all, const std::array<uint32_t, M>& which) {
  StridedIndex<M> some;
  some.rank = all.rank;
  some.elems = all.elems;
  for (uint32_t d = 0; d < all.rank; ++d) {
    some.size[d] = all.size[d];
    for (uint32_t k = 0; k < M; ++k) some.stride[k][d] = all.stride[which[k]][d];
  }
  return some;
}

/// Rows of x, grad and a result along one dim, and their distribution over threads.
class GradRows {
 public:
  GradRows(Gpu& gpu, const View& out, const ConstView& x, const ConstView& grad, int dim)
      : reduction_(x.layout, out.layout, 1u << dim),
        plan_(gpu, reduction_, out, x, dim),
        grad_access_(grad.data, grad.dtype, grad.layout.offset()),
        n_(reduction_.n),
        grad_step_(n_ == 1 ? 1 : grad.layout.stride(dim)) {
    const Layout& layout = grad.layout;
    for (int d = 0; d < layout.rank(); ++d) {
      if (d != dim) grad_access_.dim(layout.shape()[d], layout.stride(d));
    }
    grad_access_.run(n_, grad_step_);
  }

  int64_t n() const { return n_; }
  int64_t grad_step() const { return grad_step_; }
  const RowPlan& plan() const { return plan_; }
  bool is_across() const { return reduction_.is_across(); }
  int64_t most_threads() const { return reduction_.most_threads(); }
  /// Vectors of a row that a thread holds.
  int64_t steps() const { return std::max<int64_t>(plan_.steps(), 4); }
  /// Whether a kernel that holds rows takes these.
  bool can_be_held() const { return plan_.can_be_held() && grad_access_.vectors_of(plan_.each()); }
  NormRows spread_held(const StridedIndex<2>& kept, Grid& grid) const {
    return plan_.spread(kept, plan_.each(), 128, 1, grid);
  }
  /// Whether four neighbours of grad may be loaded at once.
  uint32_t grad_packs() const { return n_ % 4 == 0 && grad_access_.vectors_of(4) ? 1 : 0; }

 private:
  Reduction reduction_;
  RowPlan plan_;
  Access grad_access_;
  int64_t n_, grad_step_;
};

/// The rows of a norm whose gradient is computed. The last dim of the views is a row.
struct NormViews {
  View out;
  ConstView x, grad;
};

void norm_grad(Gpu& gpu, const NormViews& views, const View& statistics, const ConstView& weight,
               const NormKind& kind, int64_t channels, int64_t each) {
  const auto& [out, x, grad] = views;
  const int dim = x.layout.rank() - 1;
  const GradRows rows(gpu, out, x, grad, dim);
  const int64_t copies = kind.groups == 0 ? 1 : channels;
  NormGradArgs args{};
  args.affine.weight = weights_of(weight);
  args.affine.groups = Divider(static_cast<uint32_t>(std::max<int64_t>(kind.groups, 1)));
  if (kind.groups != 0) {
    args.affine.channels = static_cast<uint32_t>(channels);
    args.affine.each = ChannelDivider(static_cast<uint64_t>(each));
  }
  args.grad_step = rows.grad_step();
  args.grad_packs = rows.grad_packs();
  args.copies = static_cast<uint32_t>(copies);
  args.second = statistics.layout.stride(0);
  args.centred = kind.centred ? 1 : 0;
  args.eps = kind.eps;
  const bool has_weight = weight.data != nullptr;
  const bool held =
      rows.can_be_held() && (kind.groups == 0 ? !has_weight || rows.plan().goes_with(weight)
                                              : each % rows.plan().each() == 0);
  const bool by_f32 = has_weight && weight.dtype != x.dtype;
  // The numbers of the rows, of which each has `copies`.
  Layout::Strides strides{};
  int64_t stride = copies;
  for (int d = dim - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= x.layout.shape()[d];
  }
  const Layout numbers(x.layout.shape(), strides, statistics.layout.offset());
  // The number of a row, in the order of the shape, tells its group.
  const CollapsedDims<4> all = collapse<4>({&x.layout, &out.layout, &grad.layout, &numbers},
                                           ~(1u << static_cast<unsigned>(dim)));
  const DType compute = statistics.dtype;
  int64_t done = 0;
  all.for_each_piece(rows.most_threads(), [&](const StridedIndex<4>& piece, const auto& start) {
    args.in = advance(x.data, x.dtype, start[0]);
    args.out = advance(out.data, out.dtype, start[1]);
    args.grad = advance(grad.data, grad.dtype, start[2]);
    args.statistics = advance(statistics.data, compute, start[3]);
    args.beside = operands_of<2>(piece, {2, 3});
    args.affine.first_group = static_cast<uint32_t>(done % args.affine.groups.by);
    done += piece.elems;
    const StridedIndex<2> kept = operands_of<2>(piece, {0, 1});
    Grid grid;
    grid.pdl = true;
    if (held) {
      args.rows = rows.spread_held(kept, grid);
      (kind.groups != 0 ? kNormGradByChannel
       : by_f32         ? kNormGradByF32
                        : kNormGrad)(x.dtype, rows.steps())
          .launch(gpu, grid, args);
    } else {
      args.rows = rows.plan().spread_strided(kept, grid);
      kNormGradStrided(x.dtype).launch(gpu, grid, args);
    }
  });
}

}  // namespace

void GpuBackend::norm_grad(const View& out, const View& statistics, const ConstView& x,
                           const ConstView& grad, const ConstView& weight, const NormKind& kind) {
  const Shape& shape = x.layout.shape();
  if (shape.elems() == 0) {
    if (statistics.layout.elems() != 0) {
      fill(statistics, std::numeric_limits<double>::quiet_NaN());
    }
    return;
  }
  if (kind.groups == 0) {
    return gpu::norm_grad(gpu_, {out, x, grad}, statistics, weight, kind, 0, 1);
  }
  const Shape rows{shape[0], kind.groups, shape.elems() / (shape[0] * kind.groups)};
  const Reshaped of_x(*this, gpu_, x, rows, true), of_grad(*this, gpu_, grad, rows, true),
      of_out(*this, gpu_, out, rows, false);
  gpu::norm_grad(gpu_, {of_out.view(), of_x.view(), of_grad.view()}, statistics, weight, kind,
                 shape[1] / kind.groups, shape.elems() / (shape[0] * shape[1]));
  of_out.finish(*this, out);
}

void GpuBackend::softmax_grad(const View& out, const ConstView& y, const ConstView& grad, int dim,
                              bool log) {
  if (y.layout.elems() == 0) return;
  const GradRows rows(gpu_, out, y, grad, dim);
  const uint32_t wants_log = log ? 1 : 0;
  if (rows.is_across()) {
    // Neighbours belong to different rows: columns are summed, and an elementwise kernel follows.
    const DType compute = y.dtype == DType::f64 ? DType::f64 : DType::f32;
    std::array<int64_t, Shape::kMaxRank> sizes{2};
    size_t rank = 1;
    const Shape& shape = y.layout.shape();
    for (int d = 0; d < shape.rank(); ++d) {
      if (d != dim) sizes[rank++] = shape[d];
    }
    const Layout pair = Layout::contiguous(Shape(std::span(sizes).first(rank)));
    const Scratch scratch(gpu_, static_cast<size_t>(bytes_of(compute, pair.elems())));
    norm_sums({scratch.data(), compute, pair}, y, grad, {}, {}, 1u << dim);
    Layout::Strides strides{};
    for (int d = 0, to = 1; d < shape.rank(); ++d) {
      if (d != dim) strides[static_cast<size_t>(d)] = pair.stride(to++);
    }
    const Layout sums(shape, strides, log ? pair.stride(0) : 0);
    const CollapsedDims<4> dims =
        collapse_for_map<4>({&out.layout, &y.layout, &grad.layout, &sums});
    dims.for_each_piece([&](const StridedIndex<4>& strided, const auto& start) {
      Grid grid = spread(gpu_, strided.elems, kMapEach);
      kSoftmaxGradBySums(y.dtype).launch(
          gpu_, grid,
          {advance(out.data, out.dtype, start[0]), advance(y.data, y.dtype, start[1]),
           advance(grad.data, grad.dtype, start[2]), advance(scratch.data(), compute, start[3]),
           strided, wants_log});
    });
    return;
  }
  const bool held = rows.can_be_held();
  const CollapsedDims<3> all = [&] {
    CollapsedDims<3> dims =
        collapse<3>({&y.layout, &out.layout, &grad.layout}, ~(1u << static_cast<unsigned>(dim)));
    dims.sort(RepeatedDims::outermost);
    return dims;
  }();
  all.for_each_piece(rows.most_threads(), [&](const StridedIndex<3>& piece, const auto& start) {
    const StridedIndex<2> kept = operands_of<2>(piece, {0, 1});
    Grid grid;
    grid.pdl = true;
    SoftmaxGradArgs args{};
    args.in = advance(y.data, y.dtype, start[0]);
    args.out = advance(out.data, out.dtype, start[1]);
    args.grad = advance(grad.data, grad.dtype, start[2]);
    args.grad_rows = operands_of<1>(piece, {2});
    args.grad_step = rows.grad_step();
    args.grad_packs = rows.grad_packs();
    args.log = wants_log;
    if (held) {
      args.rows = rows.spread_held(kept, grid);
      kSoftmaxGrad(y.dtype, rows.steps()).launch(gpu_, grid, args);
    } else {
      args.rows = rows.plan().spread_strided(kept, grid);
      kSoftmaxGradStrided(y.dtype).launch(gpu_, grid, args);
    }
  });
}

}  // namespace wick::gpu
