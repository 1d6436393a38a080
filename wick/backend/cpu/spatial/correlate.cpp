// The sums of a convolution and of a transposed one: as a product of packed panels (gemm.h), whose
// columns are pixels of the whole batch, or for few rows directly from the slab. Either way an
// output is one chain over its terms.

#include <cstring>

#include "wick/backend/cpu/spatial/conv.h"

namespace wick::cpu {
namespace {

// Up to so many rows panels cost more than they save.
constexpr int64_t kDirectRows = 8;
// Pixels, and elements of a slab, of a direct task: both, and the sums, stay in L2.
constexpr int64_t kDirectPixels = 2048;
constexpr int64_t kDirectSlab = 32 * 1024;

/// Everything that tasks share.
struct Setup {
  const Correlation& job;
  const GemmKernels& gemm;
  const ConvKernels& conv;
  Compute compute;
  int64_t bytes;     // of an element of the compute type
  int64_t in_bytes;  // of the dtype
  int64_t terms;

  Setup(Isa isa, const Correlation& j)
      : job(j),
        gemm(gemm_kernels(isa)),
        conv(conv_kernels(isa)),
        compute(compute_of(j.shape.dtype)),
        bytes(elem_bytes(compute)),
        in_bytes(info(j.shape.dtype).block_bytes),
        terms(j.shape.terms()) {}

  size_t kind() const { return static_cast<size_t>(compute); }
  DType compute_dtype() const { return compute == Compute::f64 ? DType::f64 : DType::f32; }
  double products() const {
    return static_cast<double>(job.groups * job.rows) * static_cast<double>(terms) *
           static_cast<double>(job.shape.pixels());
  }
  const char* input(int64_t group) const { return job.in + group * job.in_group_stride * in_bytes; }
  char* output(int64_t group) const {
    return job.out.data + group * job.out.group_stride * in_bytes;
  }
};

/// The one stride of a group's terms, or 0 where they have none.
int64_t term_stride(const Correlation& job) {
  const Filters& f = job.filters;
  const auto ny = static_cast<int64_t>(job.shape.taps[0].size());
  const auto nx = static_cast<int64_t>(job.shape.taps[1].size());
  int64_t stride = 0, size = 1;
  const auto join = [&](int64_t count, int64_t next) {
    if (count == 1) return true;
    if (size > 1 && next != stride * size) return false;
    if (size == 1) stride = next;
    size *= count;
    return true;
  };
  const bool one = join(nx, f.tap_stride[1]) && join(ny, f.tap_stride[0]) &&
                   join(job.shape.channels, f.channel_stride);
  if (!one) return 0;
  return size == 1 ? 1 : stride;
}

/// to[group · row][term] = the weights in the compute type.
void gather_filters(const Setup& s, char* to) {
  const Filters& f = s.job.filters;
  const PatchShape& shape = s.job.shape;
  const auto load = s.gemm.load[static_cast<size_t>(shape.dtype)];
  const auto ny = static_cast<int64_t>(shape.taps[0].size());
  const auto nx = static_cast<int64_t>(shape.taps[1].size());
  const bool joined = ny == 1 || nx == 1 || f.tap_stride[0] == f.tap_stride[1] * nx;
  const int64_t lines = joined ? 1 : ny, run = joined ? ny * nx : nx;
  const int64_t run_stride = nx == 1 ? f.tap_stride[0] : f.tap_stride[1];
  parallel_for(s.job.groups * s.job.rows, 16384 / std::max<int64_t>(s.terms, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const int64_t at =
                       row / s.job.rows * f.group_stride + row % s.job.rows * f.row_stride;
                   char* out = to + row * s.terms * s.bytes;
                   for (int64_t c = 0; c < shape.channels; ++c) {
                     for (int64_t y = 0; y < lines; ++y, out += run * s.bytes) {
                       const int64_t from = at + c * f.channel_stride + y * f.tap_stride[0];
                       load(f.data + from * s.in_bytes, run_stride, run, out);
                     }
                   }
                 }
               });
}

/// Where runs of pixels lie in the output.
class PixelPlaces {
 public:
  explicit PixelPlaces(const Setup& s)
      : target_(s.job.out),
        nx_(s.job.shape.out_size[1]),
        image_(s.job.shape.out_size[0] * nx_),
        bytes_(s.in_bytes),
        store_(s.gemm.store[static_cast<size_t>(s.job.out.dtype)]),
        stride_(nx_ == 1 ? target_.stride[0] : target_.stride[1]),
        joined_(nx_ == image_ || nx_ == 1 || target_.stride[0] == stride_ * nx_) {}

  /// Calls visit(first, count, offset) for runs of [pixel, pixel + pixels) that lie one stride
  /// apart.
  template <class F>
  void for_each_run(int64_t pixel, int64_t pixels, F&& visit) const {
    int64_t batch = pixel / image_, y = pixel % image_ / nx_, x = pixel % nx_;
    for (int64_t done = 0; done < pixels;) {
      const int64_t rest = (joined_ ? image_ - y * nx_ : nx_) - x;
      const int64_t count = std::min(rest, pixels - done);
      visit(done, count,
            batch * target_.batch_stride + y * target_.stride[0] + x * target_.stride[1]);
      done += count;
      x = 0;
      if (joined_ || ++y * nx_ == image_) {
        y = 0;
        ++batch;
      }
    }
  }
  void store(char* out, int64_t row, int64_t offset, int64_t count, const char* from) const {
    store_(from, out + (row * target_.row_stride + offset) * bytes_, stride_, count);
  }

 private:
  const PixelTarget& target_;
  int64_t nx_, image_, bytes_;
  GemmKernels::Store store_;
  int64_t stride_;
  bool joined_;
};

// ---- As a product ----

/// Pixels as columns: a block's panels by way of a slab.
class PixelColumns final : public GemmColumns {
 public:
  struct Scratch {
    size_t panels, slab, offsets, pieces, first;
    size_t bytes() const { return panels + slab + offsets + pieces + first; }
  };
  static Scratch scratch_of(const GemmPlan& plan, const Patches& patches, int64_t panel) {
    const int64_t panels = (plan.task_cols + panel - 1) / panel + 1;
    return {plan.b_bytes, patches.slab_bytes(),
            align64(static_cast<size_t>(plan.k_block) * sizeof(int64_t)),
            align64(static_cast<size_t>(plan.task_cols + panels) * sizeof(PanelPiece)),
            align64(static_cast<size_t>(panels + 1) * sizeof(int64_t))};
  }

  PixelColumns(const Setup& setup, const Patches& patches, const Scratch& scratch, const char* in)
      : s_(setup), patches_(patches), scratch_(scratch), in_(in) {}

  Block block(int64_t col, int64_t cols, int64_t k0, int64_t k, void* scratch) const override {
    char* at = static_cast<char*>(scratch);
    const auto take = [&](size_t bytes) {
      char* const here = at;
      at += bytes;
      return here;
    };
    PanelArgs args{};
    args.panels = take(scratch_.panels);
    void* const slab = take(scratch_.slab);
    auto* const offsets = reinterpret_cast<int64_t*>(take(scratch_.offsets));
    auto* const pieces = reinterpret_cast<PanelPiece*>(take(scratch_.pieces));
    auto* const first = reinterpret_cast<int64_t*>(take(scratch_.first));
    patches_.fill(in_, col, cols, k0, k, slab);
    patches_.term_offsets(k0, k, offsets);
    const int64_t panel = s_.gemm.type(s_.compute).col_panel;
    args.slab = slab;
    args.offsets = offsets;
    args.k = k;
    args.pieces = pieces;
    args.first = first;
    args.panels_count = cut_panels(col, cols, panel, pieces, first);
    args.panel_stride = (k + 1) * panel;
    s_.conv.panels[s_.kind()](args);
    return {args.panels, args.panel_stride};
  }

 private:
  /// Which pieces of rows each panel consists of. Gives the number of panels.
  int64_t cut_panels(int64_t col, int64_t cols, int64_t panel, PanelPiece* pieces,
                     int64_t* first) const {
    int64_t count = 0, panels = 0;
    patches_.for_each_row(col, cols, [&](int64_t at, int64_t length, int64_t base, int64_t) {
      for (int64_t done = 0; done < length;) {
        const int64_t lane = (at + done) % panel;
        if (lane == 0) first[panels++] = count;
        pieces[count++] = {base + done, lane};
        done += std::min(panel - lane, length - done);
      }
    });
    first[panels] = count;
    return panels;
  }

  const Setup& s_;
  const Patches& patches_;
  const Scratch& scratch_;
  const char* in_;
};

class PixelSink final : public GemmSink {
 public:
  PixelSink(const Setup& setup, char* out) : bytes_(setup.bytes), places_(setup), out_(out) {}
  void store(int64_t row, int64_t rows, int64_t col, int64_t cols, const void* c,
             int64_t c_stride) const override {
    places_.for_each_run(col, cols, [&](int64_t first, int64_t count, int64_t offset) {
      for (int64_t r = 0; r < rows; ++r) {
        places_.store(out_, row + r, offset, count,
                      static_cast<const char*>(c) + (r * c_stride + first) * bytes_);
      }
    });
  }

 private:
  int64_t bytes_;
  PixelPlaces places_;
  char* out_;
};

void correlate_as_product(const Setup& s) {
  const Correlation& job = s.job;
  const int64_t stride = term_stride(job);
  const bool gathered = stride == 0;
  const Workspace filters(gathered ? static_cast<size_t>(job.groups * job.rows * s.terms * s.bytes)
                                   : 0);
  if (gathered) gather_filters(s, filters.data());

  const PixelSink any(s, nullptr);
  GemmResult result{nullptr, job.out.dtype, 0, 0, nullptr, &any};
  const bool many = job.groups >= 2 * ThreadPool::global().threads();
  const int threads = many ? 1 : ThreadPool::global().threads();
  GemmPlan plan =
      plan_gemm(s.gemm, s.compute, job.rows, job.shape.pixels(), s.terms, result, threads);
  const Patches patches(s.conv, job.shape, plan.task_cols, plan.k_block);
  const auto scratch = PixelColumns::scratch_of(plan, patches, s.gemm.type(s.compute).col_panel);
  plan.b_bytes = scratch.bytes();

  const auto run_group = [&](int64_t group, void* workspace) {
    GemmRows rows{};
    if (gathered) {
      rows.data = filters.data() + group * job.rows * s.terms * s.bytes;
      rows.dtype = s.compute_dtype();
      rows.row_stride = s.terms;
      rows.k_stride = 1;
    } else {
      rows.data = job.filters.data + group * job.filters.group_stride * s.in_bytes;
      rows.dtype = job.shape.dtype;
      rows.row_stride = job.filters.row_stride;
      rows.k_stride = stride;
    }
    const PixelColumns columns(s, patches, scratch, s.input(group));
    const PixelSink sink(s, s.output(group));
    GemmResult out = result;
    out.sink = &sink;
    run_gemm(s.gemm, plan, rows, columns, out, workspace);
  };
  share_tasks(job.groups, many ? threads_for(s.products()) : 1, plan.workspace_bytes(), run_group);
}

// ---- Directly ----

/// What direct tasks share: a group's rows over a range of pixels, rows of the image or pieces of
/// one.
struct DirectPlan {
  int64_t pixels, terms;  ///< of a step
  Patches patches;
  int64_t plot_sums, row_sums;  ///< elements from one plot's sums, or row's, to the next
  size_t slab_bytes, offset_bytes, sum_bytes;

  DirectPlan(const Setup& s, int64_t most_pixels, int64_t most_terms)
      : pixels(most_pixels),
        terms(most_terms),
        patches(s.conv, s.job.shape, pixels, terms),
        plot_sums(static_cast<int64_t>(align64(patches.plot_rows() * patches.pitch() * s.bytes)) /
                  s.bytes),
        row_sums(patches.plots() * plot_sums),
        slab_bytes(patches.slab_bytes()),
        offset_bytes(align64(static_cast<size_t>(terms) * sizeof(int64_t))),
        sum_bytes(static_cast<size_t>(s.job.rows * row_sums * s.bytes)) {}

  /// As many pixels and channels as fit.
  static DirectPlan make(const Setup& s) {
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

/// Computes a task; `weights` are the group's.
void run_direct(const Setup& s, const DirectPlan& plan, const char* weights, int64_t group,
                int64_t pixel, char* scratch) {
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

void correlate_directly(const Setup& s) {
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
  const Setup setup(isa, job);
  if (job.rows <= kDirectRows) return correlate_directly(setup);
  correlate_as_product(setup);
}

}  // namespace wick::cpu
