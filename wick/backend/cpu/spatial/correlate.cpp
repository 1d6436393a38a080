// The sums of a convolution and of a transposed one: directly from the slab for few rows, else as
// gemm. Either way an output is one chain over its terms.

#include "wick/backend/cpu/spatial/correlate.h"

#include <cstring>

#include "wick/backend/cpu/move/strided.h"
#include "wick/base/collapsed_dims.h"

namespace wick::cpu {

int64_t term_stride(const Correlation& job) {
  const Filters& f = job.filters;
  const auto ny = static_cast<int64_t>(job.shape.taps[0].size());
  const auto nx = static_cast<int64_t>(job.shape.taps[1].size());
  CollapsedDims<1> terms;
  terms.add(job.shape.channels, {f.channel_stride});
  terms.add(ny, {f.tap_stride[0]});
  terms.add(nx, {f.tap_stride[1]});
  if (terms.rank() > 1) return 0;
  return terms.rank() == 0 ? 1 : terms.inner(0).stride[0];
}

namespace {

/// The weights of a job as runs of terms with one stride.
struct FilterRuns {
  int64_t lines, count, stride, runs;  ///< lines: runs per channel; count: terms of a run; runs:
                                       ///< per row

  explicit FilterRuns(const CorrelationSetup& s) {
    const Filters& f = s.job.filters;
    const auto ny = static_cast<int64_t>(s.job.shape.taps[0].size());
    const auto nx = static_cast<int64_t>(s.job.shape.taps[1].size());
    const bool merged = ny == 1 || nx == 1 || f.tap_stride[0] == f.tap_stride[1] * nx;
    lines = merged ? 1 : ny;
    count = merged ? ny * nx : nx;
    stride = nx == 1 ? f.tap_stride[0] : f.tap_stride[1];
    runs = s.job.shape.channels * lines;
  }
};

/// Calls visit(first, rows, starts) for a few rows of all groups at a time; starts are their
/// offsets. Neighbours in memory may belong to different rows.
template <class F>
void for_each_filter_block(const CorrelationSetup& s, F&& visit) {
  constexpr int64_t kRows = 16;
  const Filters& f = s.job.filters;
  const int64_t all = s.job.groups * s.job.rows;
  parallel_for((all + kRows - 1) / kRows, 1024 / std::max<int64_t>(s.terms, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t first = block * kRows, rows = std::min(all - first, kRows);
                   int64_t starts[kRows];
                   for (int64_t r = 0; r < rows; ++r) {
                     const int64_t row = first + r;
                     starts[r] =
                         row / s.job.rows * f.group_stride + row % s.job.rows * f.row_stride;
                   }
                   visit(first, rows, starts);
                 }
               });
}

/// Calls visit(row of all groups, first term, offset) for all runs of weights.
template <class F>
void for_each_filter_run(const CorrelationSetup& s, const FilterRuns& runs, F&& visit) {
  const Filters& f = s.job.filters;
  for_each_filter_block(s, [&](int64_t first, int64_t rows, const int64_t* starts) {
    for (int64_t i = 0; i < runs.runs; ++i) {
      const int64_t at = i / runs.lines * f.channel_stride + i % runs.lines * f.tap_stride[0];
      for (int64_t r = 0; r < rows; ++r) visit(first + r, i * runs.count, starts[r] + at);
    }
  });
}

}  // namespace

void gather_filters(const CorrelationSetup& s, char* to) {
  const Filters& f = s.job.filters;
  const FilterRuns runs(s);
  if (s.job.shape.dtype == DType::f32) {
    for_each_filter_block(s, [&](int64_t first, int64_t rows, const int64_t* starts) {
      FilterArgs args{};
      args.from = reinterpret_cast<const float*>(f.data);
      args.starts = starts;
      args.rows = rows;
      args.runs = runs.runs;
      args.lines = runs.lines;
      args.channel_stride = f.channel_stride;
      args.line_stride = f.tap_stride[0];
      args.count = runs.count;
      args.stride = runs.stride;
      args.to = reinterpret_cast<float*>(to) + first * s.terms;
      args.to_stride = s.terms;
      s.conv.filters(args);
    });
    return;
  }
  const auto load = s.gemm.load[static_cast<size_t>(s.job.shape.dtype)];
  for_each_filter_run(s, runs, [&](int64_t row, int64_t term, int64_t from) {
    load(f.data + from * s.in_bytes, runs.stride, runs.count,
         to + (row * s.terms + term) * s.bytes);
  });
}

void gather_raw_filters(const CorrelationSetup& s, int64_t row_terms, char* to) {
  const FilterRuns runs(s);
  for_each_filter_run(s, runs, [&](int64_t row, int64_t term, int64_t from) {
    char* const out = to + row * row_terms * s.in_bytes;
    gather(out + term * s.in_bytes, s.job.filters.data + from * s.in_bytes,
           runs.stride * s.in_bytes, runs.count, s.in_bytes);
    if (term + runs.count == s.terms) {
      std::memset(out + s.terms * s.in_bytes, 0,
                  static_cast<size_t>((row_terms - s.terms) * s.in_bytes));
    }
  });
}

namespace {

// For up to so many rows, packing panels costs more than it saves.
constexpr int64_t kDirectRows = 8;
// Pixels and slab elements of a direct task: both, and the sums, stay in L2.
constexpr int64_t kDirectPixels = 2048;
constexpr int64_t kDirectSlab = 32 * 1024;

/// What direct tasks share. A task computes a group's rows for a range of pixels.
struct DirectPlan {
  int64_t pixels, terms;  ///< of one step of a task
  Patches patches;
  int64_t plot_sums, row_sums;  ///< elements between the sums of plots, and between those of rows
  size_t slab_bytes, offset_bytes, sum_bytes;

  DirectPlan(const CorrelationSetup& s, int64_t most_pixels, int64_t most_terms)
      : pixels(most_pixels),
        terms(most_terms),
        patches(s.conv, s.job.shape, pixels, terms),
        plot_sums(static_cast<int64_t>(align64(patches.plot_rows() * patches.pitch() * s.bytes)) /
                  s.bytes),
        row_sums(patches.plots() * plot_sums),
        slab_bytes(patches.slab_bytes()),
        offset_bytes(align64(static_cast<size_t>(terms) * sizeof(int64_t))),
        sum_bytes(static_cast<size_t>(s.job.rows * row_sums * s.bytes)) {}

  /// A plan with as many pixels and channels as fit.
  static DirectPlan make(const CorrelationSetup& s) {
    const PatchShape& shape = s.job.shape;
    const int64_t nx = shape.out_size[1];
    const int64_t whole = nx < kDirectPixels ? kDirectPixels / nx * nx : kDirectPixels;
    const int64_t pixels = std::min(shape.pixels(), whole);
    const Patches one(s.conv, shape, pixels, 1);
    const int64_t plane = static_cast<int64_t>(one.slab_bytes()) / s.bytes;
    const int64_t channels = std::clamp<int64_t>(kDirectSlab / plane, 1, shape.channels);
    return DirectPlan(s, pixels, channels * shape.tap_count());
  }
};

/// Runs a task; `weights` are those of the group.
void run_direct(const CorrelationSetup& s, const DirectPlan& plan, const char* weights,
                int64_t group, int64_t pixel, char* scratch) {
  const Patches& patches = plan.patches;
  const int64_t count = std::min(plan.pixels, s.job.shape.pixels() - pixel);
  auto* const offsets = reinterpret_cast<int64_t*>(scratch + plan.slab_bytes);
  char* const sums = scratch + plan.slab_bytes + plan.offset_bytes;
  for (int64_t term = 0; term < s.terms; term += plan.terms) {
    DirectArgs args{};
    args.rows = s.job.rows;
    args.k = std::min(plan.terms, s.terms - term);
    args.w = weights + term * s.bytes;
    args.w_stride = s.terms;
    args.offsets = offsets;
    args.out_stride = plan.row_sums;
    args.resume = term > 0;
    args.pitch = patches.pitch();
    patches.fill(s.input(group), pixel, count, term, args.k, scratch);
    patches.term_offsets(term, args.k, offsets);
    patches.for_each_plot(pixel, count, [&](int64_t index, const PatchPlot& plot) {
      args.plot_rows = plot.rows;
      args.cols = plot.cols;
      args.slab = scratch + index * patches.plot_elems() * s.bytes;
      args.out = sums + index * plan.plot_sums * s.bytes;
      s.conv.direct[s.kind()](args);
    });
  }
  const PixelTarget& target = s.job.out;
  StoreArgs args{};
  args.pitch = patches.pitch();
  args.row_stride = target.stride[0];
  args.stride = target.stride[1];
  patches.for_each_plot(pixel, count, [&](int64_t index, const PatchPlot& plot) {
    const int64_t at =
        plot.batch * target.batch_stride + plot.y * target.stride[0] + plot.x * target.stride[1];
    args.rows = plot.rows;
    args.count = plot.cols;
    for (int64_t r = 0; r < s.job.rows; ++r) {
      args.from = sums + (r * plan.row_sums + index * plan.plot_sums) * s.bytes;
      args.to = s.output(group) + (at + r * target.row_stride) * s.in_bytes;
      s.conv.store[static_cast<size_t>(target.dtype)](args);
    }
  });
}

void correlate_directly(const CorrelationSetup& s) {
  const Correlation& job = s.job;
  const int64_t group_bytes = job.rows * s.terms * s.bytes;
  const Workspace filters(static_cast<size_t>(job.groups * group_bytes));
  gather_filters(s, filters.data());
  const DirectPlan plan = DirectPlan::make(s);
  const int64_t pieces = (job.shape.pixels() + plan.pixels - 1) / plan.pixels;
  share_tasks(job.groups * pieces, threads_for(s.products()),
              plan.slab_bytes + plan.offset_bytes + plan.sum_bytes,
              [&](int64_t task, char* scratch) {
                const int64_t group = task / pieces;
                run_direct(s, plan, filters.data() + group * group_bytes, group,
                           task % pieces * plan.pixels, scratch);
              });
}

}  // namespace

void correlate(Isa isa, const Correlation& job) {
  const CorrelationSetup setup(isa, job);
  if (job.rows <= kDirectRows) return correlate_directly(setup);
  correlate_as_gemm(isa, setup);
}

}  // namespace wick::cpu
