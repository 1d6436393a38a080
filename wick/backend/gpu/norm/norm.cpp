#include "wick/backend/gpu/norm/norm.h"

#include <algorithm>
#include <span>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/norm/row_plan.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"

namespace wick::gpu {
namespace {

const KernelFamily<RmsNormRowArgs> kRmsNormRowShort("norm_row", "rms_norm_row_short");
const KernelFamily<RmsNormRowArgs> kRmsNormRowLong("norm_row", "rms_norm_row_long");
const KernelFamily<RmsNormWarpsArgs> kRmsNormWarps("norm_row", "rms_norm_warps");
const KernelFamily<RmsNormArgs, DType, HeldPacks> kRmsNorm("norm", "rms_norm_{}_{}");
const KernelFamily<RmsNormArgs, DType, HeldPacks> kRmsNormByF32("norm", "rms_norm_{}_by_f32_{}");
const KernelFamily<RmsNormStridedArgs, DType> kRmsNormStrided("norm_strided",
                                                              "rms_norm_strided_{}");
const KernelFamily<SoftmaxArgs, DType, HeldPacks> kSoftmax("softmax", "softmax_{}_{}");
const KernelFamily<SoftmaxArgs, DType, HeldPacks> kSoftmaxAnywhere("softmax",
                                                                   "softmax_anywhere_{}_{}");
const KernelFamily<SoftmaxClusterArgs, DType> kSoftmaxCluster("softmax", "softmax_cluster_{}");
const KernelFamily<SoftmaxArgs, DType> kSoftmaxStrided("softmax_strided", "softmax_strided_{}");
const KernelFamily<SoftmaxColumnsArgs, DType> kSoftmaxColumns("softmax_strided",
                                                              "softmax_columns_{}");
const KernelFamily<SoftmaxShortArgs, DType, OneOf<8, 32>> kSoftmaxShort("softmax_strided",
                                                                        "softmax_short_{}_{}");

/// Columns for softmax, with as many lanes as the reduction order has for n rows.
Columns softmax_columns(const StridedIndex<2>& kept, int64_t n, Grid& grid) {
  Columns c = columns_of(kept, n);
  c.lanes_log = ceil_log(static_cast<uint64_t>(divide_up(std::min(n, int64_t{kAccumulators}), 4)));
  c.across_log = std::min(ceil_log(c.columns), ceil_log(kColumnThreads >> c.lanes_log));
  c.across_log = std::max(c.across_log, 5 - c.lanes_log);
  c.strips = (c.columns + (1u << c.across_log) - 1) >> c.across_log;
  grid.threads = 1u << (c.lanes_log + c.across_log);
  grid.blocks[0] = c.outer.elems * c.strips;
  return c;
}

/// The most elements of columns that a thread takes whole, 8 or 32; 0 if columns are longer, too
/// few for a thread block, or not aligned to words.
int64_t short_columns(const Reduction& reduction, const View& out, const ConstView& in, int dim) {
  if (reduction.n > 32 || !reduction.is_across()) return 0;
  if (bytes_of(in.dtype, 1) != 2 && in.dtype != DType::f32) return 0;
  const CollapsedDims<2>& kept = reduction.kept;
  const int64_t elem = bytes_of(in.dtype, 1), word = 4 / elem;
  if (kept.dims.back().size < 128 || kept.dims.back().size % word != 0) return 0;
  constexpr int64_t kMost = 32;
  const auto fits = [&](size_t k, const void* data, int64_t step) {
    const size_t columns = kept.dims.size() - 1;
    return access_of(kept, k, data, elem, columns).dim(reduction.n, step).vectors_of(word) &&
           // The kernel counts elements of a column in u32.
           Access(nullptr, 1, 0).dim(kMost + 1, step).has_u32_distances(1);
  };
  if (!fits(0, in.data, in.layout.stride(dim)) || !fits(1, out.data, out.layout.stride(dim))) {
    return 0;
  }
  return reduction.n <= 8 ? 8 : kMost;
}

/// The operands of a norm for kernels of a few rows of f32. residual: none if its data is null.
RmsNormTensor tensor_of(const RowPlan& plan, const NormOperands& x, const StridedIndex<2>& rows,
                        const auto& start, const ConstView& residual) {
  const auto at = [](const ConstView& view, int64_t offset) {
    return static_cast<const float*>(advance(view.data, view.dtype, offset));
  };
  RmsNormTensor t{static_cast<float*>(advance(x.out.data, x.out.dtype, start[1])),
                  at(x.in, start[0]),
                  rows,
                  at(x.weight, x.weight.layout.offset()),
                  plan.out_spread(),
                  plan.in_spread(),
                  plan.spread_of(x.weight)};
  if (residual.data == nullptr) return t;
  t.residual = at(residual, start[1] - x.out.layout.offset() + residual.layout.offset());
  const Layout& l = residual.layout;
  t.residual_spread = {l.stride(l.rank() - 1), access_of(residual).vectors_of(4) ? 1u : 0u};
  return t;
}

/// Launches rms_norm_warps for one or two tensors. Returns false if they have long rows, rows of
/// other lengths or dtypes, or more rows than multiprocessors take at once. residual: added to each
/// result, unless its data is null.
bool launch_warps(Gpu& gpu, std::span<const NormOperands> tensors, float eps,
                  const ConstView& residual = {}) {
  constexpr unsigned kEach = kNormWarpsThreads / 32;  // rows of a thread block
  const int64_t most = int64_t{8} * kEach * gpu.info.multiprocessors;
  RmsNormWarpsArgs args{};
  args.of[1].rows.elems = 0;
  args.eps = eps;
  unsigned rows = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [out, in, weight] = tensors[i];
    const int dim = in.layout.rank() - 1;
    const int64_t n = in.layout.shape()[dim];
    const bool fits = in.dtype == DType::f32 && weight.dtype == DType::f32 && n % 4 == 0 &&
                      n <= kMostOfWarp && (i == 0 || n == args.n) && in.layout.elems() / n <= most;
    if (!fits) return false;
    const Reduction reduction(in.layout, out.layout, 1u << dim);
    const RowPlan plan(gpu, reduction, out, in, dim);
    args.n = static_cast<uint32_t>(n);
    reduction.kept.for_each_piece([&](const StridedIndex<2>& kept, const auto& start) {
      args.of[i] = tensor_of(plan, tensors[i], kept, start, residual);
    });
    rows += args.of[i].rows.elems;
  }
  Grid grid{{(rows + kEach - 1) / kEach, 1, 1}};
  grid.threads = kNormWarpsThreads;
  grid.pdl = true;
  kRmsNormWarps().launch(gpu, grid, args);
  return true;
}

/// Launches rms_norm_row: a thread block takes a row of n elements.
void launch_row(Gpu& gpu, int64_t n, const RmsNormTensor& of, float eps) {
  const auto elems = static_cast<uint32_t>(n);
  Grid grid;
  grid.pdl = true;
  grid.blocks[0] = of.rows.elems;
  grid.threads = std::clamp((elems / 4 + 31) / 32 * 32, 128u, kNormRowThreads);
  grid.shared_bytes = (elems + 127) / 128 * 128 * 4;
  (n <= kChunk ? kRmsNormRowShort : kRmsNormRowLong)().launch(gpu, grid, {of, elems, eps});
}

}  // namespace

Weights weights_of(const ConstView& vector) {
  if (vector.data == nullptr) return {};
  return {advance(vector.data, vector.dtype, vector.layout.offset()), vector.layout.stride(0),
          vector.dtype == DType::f32 ? 1u : 0u};
}

void rms_norm(Gpu& gpu, const View& out, const ConstView& in, const ConstView& weight, float eps) {
  const NormOperands operands{out, in, weight};
  if (out.layout.elems() == 0 || launch_warps(gpu, {&operands, 1}, eps)) return;
  const int dim = in.layout.rank() - 1;
  const Reduction reduction(in.layout, out.layout, 1u << dim);
  const RowPlan plan(gpu, reduction, out, in, dim);
  const void* w = advance(weight.data, weight.dtype, weight.layout.offset());
  const bool held = plan.can_be_held_by_norm() && plan.goes_with(weight);
  reduction.kept.for_each_piece(
      reduction.most_threads(), [&](const StridedIndex<2>& kept, const auto& start) {
        const void* x = advance(in.data, in.dtype, start[0]);
        void* y = advance(out.data, out.dtype, start[1]);
        Grid grid;
        if (weight.dtype == DType::f32 && plan.is_alone(kept.elems)) {
          launch_row(gpu, reduction.n, tensor_of(plan, operands, kept, start, {}), eps);
        } else if (held) {
          grid.pdl = true;
          const int64_t bytes = bytes_of(weight.dtype, reduction.n);
          const NormRows rows =
              plan.is_amd() ? plan.spread_sharing(kept, bytes, grid) : plan.spread_held(kept, grid);
          (weight.dtype == in.dtype ? kRmsNorm : kRmsNormByF32)(in.dtype, plan.steps())
              .launch(gpu, grid, {y, x, w, rows, eps});
        } else {
          const NormRows rows = plan.spread_strided(kept, grid);
          kRmsNormStrided(in.dtype).launch(gpu, grid, {y, x, weights_of(weight), rows, eps});
        }
      });
}

bool rms_norm_add(Gpu& gpu, const NormOperands& x, const ConstView& residual, float eps) {
  const Layout& out = x.out.layout;
  if (residual.dtype != DType::f32 || x.weight.dtype != DType::f32 || x.in.dtype != DType::f32) {
    return false;
  }
  for (int d = 0; d < out.rank(); ++d) {
    if (out.shape()[d] > 1 && residual.layout.stride(d) != out.stride(d)) return false;
  }
  if (out.elems() == 0 || launch_warps(gpu, {&x, 1}, eps, residual)) return true;
  const int dim = out.rank() - 1;
  const Reduction reduction(x.in.layout, out, 1u << dim);
  const RowPlan plan(gpu, reduction, x.out, x.in, dim);
  bool alone = true;
  reduction.kept.for_each_piece(reduction.most_threads(),
                                [&](const StridedIndex<2>& kept, const auto&) {
                                  alone = alone && plan.is_alone(kept.elems);
                                });
  if (!alone) return false;
  reduction.kept.for_each_piece(
      reduction.most_threads(), [&](const StridedIndex<2>& kept, const auto& start) {
        launch_row(gpu, reduction.n, tensor_of(plan, x, kept, start, residual), eps);
      });
  return true;
}

void softmax(Gpu& gpu, const View& out, const ConstView& in, int dim, bool log) {
  if (out.layout.elems() == 0) return;
  const Reduction reduction(in.layout, out.layout, 1u << dim);
  const RowPlan plan(gpu, reduction, out, in, dim);
  // With 32 vectors of f32 a thread has a single accumulator.
  const bool held = plan.can_be_held() && !(in.dtype == DType::f32 && plan.steps() == 32);
  const int64_t cluster = plan.cluster();
  const int64_t whole = short_columns(reduction, out, in, dim);
  const uint32_t wants_log = log ? 1 : 0;
  reduction.kept.for_each_piece(reduction.most_threads(), [&](const StridedIndex<2>& kept,
                                                              const auto& start) {
    const void* x = advance(in.data, in.dtype, start[0]);
    void* y = advance(out.data, out.dtype, start[1]);
    Grid grid;
    if (cluster != 0) {
      const NormRows rows = plan.spread_cluster(kept, cluster, grid);
      kSoftmaxCluster(in.dtype).launch(gpu, grid,
                                       {y, x, rows, wants_log, static_cast<uint32_t>(cluster)});
    } else if (!held && plan.can_be_anywhere()) {
      const NormRows rows = plan.spread_anywhere(kept, grid);
      kSoftmaxAnywhere(in.dtype, plan.steps()).launch(gpu, grid, {y, x, rows, wants_log});
    } else if (held) {
      const NormRows rows = plan.spread_held(kept, grid);
      // A thread block takes up to four long rows of 16-bit elements, if there are enough thread
      // blocks.
      const unsigned enough = 8 * static_cast<unsigned>(gpu.info.multiprocessors);
      const unsigned most = in.dtype == DType::f32 || plan.steps() < 16 ? 1u : 4u;
      const unsigned turns = std::clamp(grid.blocks[0] / enough, 1u, most);
      grid.blocks[0] = (grid.blocks[0] + turns - 1) / turns;
      kSoftmax(in.dtype, plan.steps()).launch(gpu, grid, {y, x, rows, wants_log});
    } else if (whole != 0) {
      Columns columns = columns_of(kept, reduction.n);
      grid.threads = kNormLineThreads;
      columns.strips = static_cast<uint32_t>(
          divide_up(columns.columns, grid.threads * 4 / bytes_of(in.dtype, 1)));
      grid.blocks[0] = columns.outer.elems * columns.strips;
      kSoftmaxShort(in.dtype, whole)
          .launch(gpu, grid,
                  {y, x, columns, static_cast<uint32_t>(reduction.reduced_step()),
                   static_cast<uint32_t>(out.layout.stride(dim)), wants_log});
    } else if (reduction.is_across()) {
      const Columns columns = softmax_columns(kept, reduction.n, grid);
      kSoftmaxColumns(in.dtype).launch(
          gpu, grid, {y, x, columns, reduction.reduced_step(), out.layout.stride(dim), wants_log});
    } else {
      const NormRows rows = plan.spread_strided(kept, grid);
      kSoftmaxStrided(in.dtype).launch(gpu, grid, {y, x, rows, wants_log});
    }
  });
}

void GpuBackend::rms_norm(const View& out, const ConstView& in, const ConstView& weight,
                          float eps) {
  gpu::rms_norm(gpu_, out, in, weight, eps);
}
void GpuBackend::rms_norm_pair(const NormOperands& a, const NormOperands& b, float eps) {
  const NormOperands both[] = {a, b};
  const bool empty = a.out.layout.elems() == 0 || b.out.layout.elems() == 0;
  if (empty || !launch_warps(gpu_, both, eps)) Backend::rms_norm_pair(a, b, eps);
}

void GpuBackend::rms_norm_add(const NormOperands& x, const ConstView& residual, float eps) {
  if (!gpu::rms_norm_add(gpu_, x, residual, eps)) Backend::rms_norm_add(x, residual, eps);
}

void GpuBackend::softmax(const View& out, const ConstView& in, int dim, bool log) {
  gpu::softmax(gpu_, out, in, dim, log);
}

}  // namespace wick::gpu
