#include "wick/backend/gpu/norm/norm.h"

#include <algorithm>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"

namespace wick::gpu {
namespace {

using HeldPacks = OneOf<1, 4, 8, 16, 32>;
const KernelFamily<RmsNormRowArgs> kRmsNormRowShort("norm_row", "rms_norm_row_short");
const KernelFamily<RmsNormRowArgs> kRmsNormRowLong("norm_row", "rms_norm_row_long");
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

/// How rows along a dim are distributed over threads.
class RowPlan {
 public:
  RowPlan(const Gpu& gpu, const Reduction& reduction, const View& out, const ConstView& in, int dim)
      : gpu_(gpu),
        in_(in),
        n_(reduction.n),
        in_access_(access_of(reduction.kept, 0, in.data, bytes_of(in.dtype, 1))),
        out_access_(access_of(reduction.kept, 1, out.data, bytes_of(in.dtype, 1))) {
    out_step_ = n_ == 1 ? 1 : out.layout.stride(dim);
    in_step_ = n_ == 1 ? 1 : in.layout.stride(dim);
    in_access_.run(n_, in_step_);
    out_access_.run(n_, out_step_);
    while (steps_ < 32 && steps_ * kAccumulators < n_) steps_ = steps_ == 1 ? 4 : 2 * steps_;
  }

  /// Vectors of a row that a thread holds: 1, 4, 8, 16 or 32.
  int64_t steps() const { return steps_; }
  /// Whether a kernel that holds rows takes these: dense, aligned, short enough, 16- or 32-bit
  /// floats.
  bool can_be_held() const {
    return is_dense() && n_ % each() == 0 && threads_of(each()) <= kHeldThreads &&
           n_ <= kChunk << 3 && is_aligned();
  }
  /// Whether softmax_anywhere takes these rows: dense 16- or 32-bit floats that begin at any
  /// address.
  bool can_be_anywhere() const {
    return is_dense() && n_ > kAccumulators && threads_of(each_anywhere()) <= kHeldThreads &&
           n_ <= kChunk << 3;
  }
  NormRows spread_anywhere(const StridedIndex<2>& kept, Grid& grid) const {
    return spread(kept, each_anywhere(), 64, 1, grid);
  }
  /// Thread blocks of a cluster that shares a row; 0 if no cluster size fits.
  int64_t cluster() const {
    const int64_t wanted = divide_up(n_, kBlockElems);
    const bool can = is_dense() && n_ % each() == 0 && is_aligned() && gpu_.has(Feature::cluster);
    return can && wanted > 1 && wanted <= kMostClusterBlocks ? wanted : 0;
  }
  /// Whether a vector along the rows has the alignment that the rows' kernel needs.
  bool goes_with(const ConstView& vector) const { return access_of(vector).vectors_of(each()); }

  /// Whether f32 rows are done sooner by one thread block for each row, all of whose threads take
  /// part in it.
  bool is_alone(unsigned rows) const {
    const unsigned most = is_amd() ? 4 : 8;  // more rows fill thread blocks that share the weights
    return in_.dtype == DType::f32 && n_ % 4 == 0 && n_ > 256 &&
           n_ <= int64_t{kRowChunks} * kChunk &&
           rows <= most * static_cast<unsigned>(gpu_.info.multiprocessors);
  }
  bool is_amd() const { return gpu_.device.kind == DeviceKind::hip; }
  Spread in_spread() const { return {in_step_, in_access_.vectors_of(4)}; }
  Spread out_spread() const { return {out_step_, out_access_.vectors_of(4)}; }
  /// The Spread of a vector along the rows.
  Spread spread_of(const ConstView& vector) const {
    return {vector.layout.stride(0), access_of(vector).vectors_of(4)};
  }

  /// Rows for a kernel whose threads have `each` neighbouring accumulators and take `rows` rows.
  NormRows spread(const StridedIndex<2>& kept, int64_t each, unsigned least_threads, unsigned rows,
                  Grid& grid) const {
    NormRows result;
    result.kept = kept;
    result.n = static_cast<uint64_t>(n_);
    result.in_step = in_step_;
    result.out_step = out_step_;
    result.width_log = width_log(each);
    result.chunks_log = chunks_log();
    const unsigned row_threads = 1u << (result.width_log + result.chunks_log);
    grid.threads = std::max(least_threads, row_threads);
    const unsigned a_thread_block = grid.threads / row_threads * rows;
    grid.blocks[0] = (kept.elems + a_thread_block - 1) / a_thread_block;
    return result;
  }
  /// Rows for kernels that hold them in registers.
  NormRows spread_held(const StridedIndex<2>& kept, Grid& grid) const {
    if (steps_ > 1) return spread(kept, each(), 64, 1, grid);
    NormRows rows = spread(kept, each(), 128, 1, grid);
    rows.width_log = short_width_log(rows.width_log);
    const unsigned a_thread_block = (grid.threads >> rows.width_log) * held_rows(1);
    grid.blocks[0] = (kept.elems + a_thread_block - 1) / a_thread_block;
    return rows;
  }
  /// Rows that a cluster of thread blocks shares.
  NormRows spread_cluster(const StridedIndex<2>& kept, int64_t cluster, Grid& grid) const {
    NormRows rows = spread(kept, each(), kHeldThreads, 1, grid);
    rows.chunks_log = ceil_log(kBlockElems / kChunk);
    grid.threads = 1u << (rows.width_log + rows.chunks_log);
    grid.cluster = static_cast<unsigned>(cluster);
    grid.blocks[0] = kept.elems * grid.cluster;
    return rows;
  }
  /// Held rows for rms_norm on AMD: the largest thread blocks of which at least two fifths of the
  /// multiprocessors have one, which suffices for the memory's full bandwidth. The rows of a block
  /// share the weights, `bytes` in all, in shared memory.
  NormRows spread_sharing(const StridedIndex<2>& kept, int64_t bytes, Grid& grid) const {
    constexpr int64_t kMostBytes = 32 << 10;
    NormRows rows = spread_held(kept, grid);
    if (bytes > kMostBytes) return rows;  // a row takes the whole thread block
    const unsigned row_threads = 1u << (rows.width_log + rows.chunks_log);
    const auto thread_blocks = [&](unsigned threads) {
      return divide_up(kept.elems, int64_t{threads / row_threads} * held_rows(uint32_t(steps_)));
    };
    unsigned threads = kSharingThreads;
    while (threads > grid.threads && 5 * thread_blocks(threads) < 2 * gpu_.info.multiprocessors)
      threads -= grid.threads;
    grid.threads = threads;
    grid.blocks[0] = static_cast<unsigned>(thread_blocks(threads));
    if (threads > row_threads) grid.shared_bytes = static_cast<unsigned>(divide_up(bytes, 16) * 16);
    return rows;
  }
  /// Rows for scalar kernels. Small grids take smaller thread blocks.
  NormRows spread_strided(const StridedIndex<2>& kept, Grid& grid) const {
    const bool fours = n_ % 4 == 0;
    const bool few = uint64_t{kept.elems} * threads_of(4) <
                     uint64_t{512} * static_cast<unsigned>(gpu_.info.multiprocessors);
    NormRows rows = spread(kept, 4, few ? 64 : kNormLineThreads, 1, grid);
    rows.in_packs = fours && in_access_.vectors_of(4) ? 1 : 0;
    rows.out_packs = fours && out_access_.vectors_of(4) ? 1 : 0;
    return rows;
  }

 private:
  /// Elements of a row that one block of a cluster has.
  static constexpr int64_t kBlockElems = int64_t{kClusterChunks} * kChunk;

  /// Whether vectors of held rows can be loaded and stored at once.
  bool is_aligned() const {
    return in_access_.vectors_of(each()) && out_access_.vectors_of(each());
  }
  bool is_dense() const {
    return (bytes_of(in_.dtype, 1) == 2 || in_.dtype == DType::f32) && in_access_.is_dense() &&
           out_access_.is_dense();
  }

  /// Elements of a thread's vector.
  int64_t each() const { return held_each(uint32_t(steps_), elem_bytes()); }
  int64_t each_anywhere() const { return held_each_anywhere(uint32_t(steps_), elem_bytes()); }
  uint32_t elem_bytes() const { return static_cast<uint32_t>(bytes_of(in_.dtype, 1)); }
  uint32_t width_log(int64_t each) const {
    return ceil_log(static_cast<uint64_t>(divide_up(std::min(n_, int64_t{kAccumulators}), each)));
  }
  uint32_t chunks_log() const {
    return std::min(ceil_log(static_cast<uint64_t>(divide_up(n_, kChunk))), 3u);
  }
  uint64_t threads_of(int64_t each) const {
    return uint64_t{1} << (width_log(each) + chunks_log());
  }

  const Gpu& gpu_;
  const ConstView& in_;
  const int64_t n_;
  int64_t in_step_, out_step_, steps_ = 1;
  Access in_access_, out_access_;  // rows are the runs
};

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

}  // namespace

void rms_norm(Gpu& gpu, const View& out, const ConstView& in, const ConstView& weight, float eps) {
  if (out.layout.elems() == 0) return;
  const int dim = in.layout.rank() - 1;
  const Reduction reduction(in.layout, out.layout, 1u << dim);
  const RowPlan plan(gpu, reduction, out, in, dim);
  const void* w = advance(weight.data, weight.dtype, weight.layout.offset());
  const bool held = plan.can_be_held() && plan.goes_with(weight);
  reduction.kept.for_each_piece(reduction.most_threads(), [&](const StridedIndex<2>& kept,
                                                              const auto& start) {
    const void* x = advance(in.data, in.dtype, start[0]);
    void* y = advance(out.data, out.dtype, start[1]);
    Grid grid;
    if (weight.dtype == DType::f32 && plan.is_alone(kept.elems)) {
      const auto n = static_cast<uint32_t>(reduction.n);
      grid.pdl = true;
      grid.blocks[0] = kept.elems;
      grid.threads = std::clamp((n / 4 + 31) / 32 * 32, 128u, kNormRowThreads);
      grid.shared_bytes = (n + 127) / 128 * 128 * 4;
      (n <= kChunk ? kRmsNormRowShort : kRmsNormRowLong)().launch(
          gpu, grid,
          {static_cast<float*>(y), static_cast<const float*>(x), kept, static_cast<const float*>(w),
           n, plan.out_spread(), plan.in_spread(), plan.spread_of(weight), eps});
    } else if (held) {
      grid.pdl = true;
      const int64_t bytes = bytes_of(weight.dtype, reduction.n);
      const NormRows rows =
          plan.is_amd() ? plan.spread_sharing(kept, bytes, grid) : plan.spread_held(kept, grid);
      (weight.dtype == in.dtype ? kRmsNorm : kRmsNormByF32)(in.dtype, plan.steps())
          .launch(gpu, grid, {y, x, w, rows, eps});
    } else {
      const Weights weights{w, weight.layout.stride(0), weight.dtype == DType::f32 ? 1u : 0u};
      const NormRows rows = plan.spread_strided(kept, grid);
      kRmsNormStrided(in.dtype).launch(gpu, grid, {y, x, weights, rows, eps});
    }
  });
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

void GpuBackend::softmax(const View& out, const ConstView& in, int dim, bool log) {
  gpu::softmax(gpu_, out, in, dim, log);
}

}  // namespace wick::gpu
