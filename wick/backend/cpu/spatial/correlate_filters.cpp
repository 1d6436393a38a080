// The gradient of a convolution's weights: as gemm whose k are the pixels of the batch, or for few
// rows as dot products over the slab.

#include <array>
#include <cstring>
#include <vector>

#include "wick/backend/cpu/spatial/correlate.h"

namespace wick::cpu {
namespace {

constexpr int64_t kDotRows = 8;
// With up to so many terms, and a slab of all pixels that isn't too large, terms are the rows of
// the gemm.
constexpr int64_t kTransposedTerms = 256;
constexpr size_t kWholeSlabBytes = size_t{4} << 20;
// Pixels and slab elements of one step of dot products.
constexpr int64_t kDotPixels = 1024;
constexpr int64_t kDotSlab = 32 * 1024;

struct Setup : SetupOf<FilterGradient> {
  using SetupOf::SetupOf;
  const char* grad(int64_t group) const {
    return job.grad + group * job.grad_at.group_stride * in_bytes;
  }
};

/// Stores terms [term, term + count) of a row of filters.
void store_terms(const Setup& s, int64_t group, int64_t row, int64_t term, int64_t count,
                 const char* from) {
  const Filters& f = s.job.out;
  const auto ny = static_cast<int64_t>(s.job.shape.taps[0].size());
  const auto nx = static_cast<int64_t>(s.job.shape.taps[1].size());
  const auto store = s.gemm.store[s.dtype()];
  const bool merged = nx == 1 || ny == 1 || f.tap_stride[0] == f.tap_stride[1] * nx;
  const int64_t stride = nx == 1 ? f.tap_stride[0] : f.tap_stride[1];
  const bool whole = merged && f.channel_stride == stride * ny * nx;
  const int64_t run = whole ? s.terms : merged ? ny * nx : nx;
  const int64_t start = group * f.group_stride + row * f.row_stride;
  for (int64_t done = 0; done < count;) {
    const int64_t at = term + done, n = std::min(run - at % run, count - done);
    const int64_t tap = at % (ny * nx);
    const int64_t to = start + at / (ny * nx) * f.channel_stride + tap / nx * f.tap_stride[0] +
                       tap % nx * f.tap_stride[1];
    store(from + done * s.bytes, s.job.out_data + to * s.in_bytes, stride, n);
    done += n;
  }
}

// ---- As gemm ----

/// Packs the output's gradient into panels; k are the pixels.
class GradPixels {
 public:
  GradPixels(const Setup& setup, const char* grad) : s_(setup), grad_(grad) {
    const std::array<int64_t, 2>& size = setup.job.shape.out_size;
    const PixelTarget& g = setup.job.grad_at;
    const bool merged = size[0] == 1 || size[1] == 1 || g.stride[0] == g.stride[1] * size[1];
    whole_ = merged ? size[0] * size[1] : size[1];
    stride_ = size[1] == 1 ? g.stride[0] : g.stride[1];
  }

  /// Packs rows [row, row + rows); a panel has `width` elements per k.
  void pack(GemmKernels::Pack kernel, int64_t width, int64_t row, int64_t rows, int64_t k0,
            int64_t k, void* panels, int64_t panel_stride) const {
    const std::array<int64_t, 2>& size = s_.job.shape.out_size;
    const PixelTarget& g = s_.job.grad_at;
    const int64_t image = size[0] * size[1];
    PackArgs args{};
    args.row_stride = g.row_stride;
    args.k_stride = stride_;
    args.rows = rows;
    args.panel_stride = panel_stride;
    for (int64_t done = 0; done < k;) {
      const int64_t at = k0 + done;
      const int64_t from = row * g.row_stride + at / image * g.batch_stride +
                           at % image / size[1] * g.stride[0] + at % size[1] * g.stride[1];
      args.data = grad_ + from * s_.in_bytes;
      args.k = std::min(whole_ - at % whole_, k - done);
      args.panels = static_cast<char*>(panels) + done * width * s_.bytes;
      kernel(args);
      done += args.k;
    }
  }

 private:
  const Setup& s_;
  const char* grad_;
  int64_t whole_, stride_;
};

class GradRows final : public GemmRowSource {
 public:
  GradRows(const Setup& setup, const char* grad) : s_(setup), pixels_(setup, grad) {}
  void pack(int64_t row, int64_t rows, int64_t k0, int64_t k, void* panels,
            int64_t panel_stride) const override {
    pixels_.pack(s_.gemm.pack_rows[s_.dtype()], s_.gemm.type(s_.compute).row_panel, row, rows, k0,
                 k, panels, panel_stride);
  }

 private:
  const Setup& s_;
  GradPixels pixels_;
};

class GradColumns final : public GemmColumns {
 public:
  GradColumns(const Setup& setup, const char* grad) : s_(setup), pixels_(setup, grad) {}
  Block block(int64_t col, int64_t cols, int64_t k0, int64_t k, void* scratch) const override {
    const int64_t panel = s_.gemm.type(s_.compute).col_panel, panel_stride = (k + 1) * panel;
    pixels_.pack(s_.gemm.pack_cols[s_.dtype()], panel, col, cols, k0, k, scratch, panel_stride);
    return {scratch, panel_stride};
  }

 private:
  const Setup& s_;
  GradPixels pixels_;
};

/// Terms as columns, pixels as k: packs rows of the slab into panels.
class TermColumns final : public GemmColumns {
 public:
  TermColumns(const Setup& setup, const Patches& patches, size_t panel_bytes, const char* in)
      : s_(setup), patches_(patches), panel_bytes_(panel_bytes), in_(in) {}

  Block block(int64_t col, int64_t cols, int64_t k0, int64_t k, void* scratch) const override {
    char* const panels = static_cast<char*>(scratch);
    char* const slab = panels + panel_bytes_;
    auto* const offsets = reinterpret_cast<int64_t*>(slab + patches_.slab_bytes());
    patches_.fill(in_, k0, k, col, cols, slab);
    patches_.term_offsets(col, cols, offsets);
    const int64_t panel = s_.gemm.type(s_.compute).col_panel;
    PackArgs args{};
    args.row_offsets = offsets;
    args.k_stride = 1;
    args.rows = cols;
    args.panel_stride = (k + 1) * panel;
    const auto pack = s_.gemm.pack_cols[static_cast<size_t>(s_.compute_dtype())];
    patches_.for_each_row(k0, k, [&](int64_t at, int64_t count, int64_t base, int64_t) {
      args.data = slab + base * s_.bytes;
      args.k = count;
      args.panels = panels + at * panel * s_.bytes;
      pack(args);
    });
    return {panels, args.panel_stride};
  }

 private:
  const Setup& s_;
  const Patches& patches_;
  size_t panel_bytes_;
  const char* in_;
};

class TermSink final : public GemmSink {
 public:
  TermSink(const Setup& setup, int64_t group) : s_(setup), group_(group) {}
  void store(int64_t row, int64_t rows, int64_t col, int64_t cols, const void* c,
             int64_t c_stride) const override {
    for (int64_t r = 0; r < rows; ++r) {
      store_terms(s_, group_, row + r, col, cols,
                  static_cast<const char*>(c) + r * c_stride * s_.bytes);
    }
  }

 private:
  const Setup& s_;
  int64_t group_;
};

/// Terms as rows, pixels as k, from a slab of all pixels.
class TermRows final : public GemmRowSource {
 public:
  /// What groups share: where the output's rows start in the slab, and the offsets of terms from
  /// there.
  struct Places {
    std::vector<int64_t> rows, terms;
    Places(const Setup& s, const Patches& patches) : terms(static_cast<size_t>(s.terms)) {
      patches.for_each_row(0, s.job.shape.pixels(),
                           [&](int64_t, int64_t, int64_t base, int64_t) { rows.push_back(base); });
      patches.term_offsets(0, s.terms, terms.data());
    }
  };

  TermRows(const Setup& setup, const Places& places, const char* slab)
      : s_(setup), places_(places), slab_(slab) {}
  void pack(int64_t row, int64_t rows, int64_t k0, int64_t k, void* panels,
            int64_t panel_stride) const override {
    const int64_t nx = s_.job.shape.out_size[1];
    PackArgs args{};
    args.row_offsets = places_.terms.data() + row;
    args.k_stride = 1;
    args.rows = rows;
    args.panel_stride = panel_stride;
    const auto kernel = s_.gemm.pack_rows[static_cast<size_t>(s_.compute_dtype())];
    for (int64_t done = 0; done < k; done += args.k) {
      const int64_t y = (k0 + done) / nx, x = (k0 + done) % nx;
      args.data = slab_ + (places_.rows[static_cast<size_t>(y)] + x) * s_.bytes;
      args.k = std::min(nx - x, k - done);
      args.panels =
          static_cast<char*>(panels) + done * s_.gemm.type(s_.compute).row_panel * s_.bytes;
      kernel(args);
    }
  }

 private:
  const Setup& s_;
  const Places& places_;
  const char* slab_;
};

class TransposedTermSink final : public GemmSink {
 public:
  TransposedTermSink(const Setup& setup, int64_t group) : s_(setup), group_(group) {}
  void store(int64_t term, int64_t terms, int64_t row, int64_t rows, const void* c,
             int64_t c_stride) const override {
    std::array<char, kTransposedTerms * sizeof(double)> line;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t t = 0; t < terms; ++t) {
        std::memcpy(line.data() + t * s_.bytes,
                    static_cast<const char*>(c) + (t * c_stride + r) * s_.bytes,
                    static_cast<size_t>(s_.bytes));
      }
      store_terms(s_, group_, row + r, term, terms, line.data());
    }
  }

 private:
  const Setup& s_;
  int64_t group_;
};

/// gemm with few terms, as in a first layer: terms are its rows. The slab is filled once, whereas
/// tasks with few columns would each fill their own, and rows divide evenly among threads.
void gradient_as_transposed_gemm(const Setup& s, const Patches& patches, int threads) {
  const FilterGradient& job = s.job;
  const int64_t pixels = job.shape.pixels(), taps = job.shape.tap_count();
  const TransposedTermSink any(s, 0);
  const GemmResult result{nullptr, job.shape.dtype, 0, 0, nullptr, &any};
  const GemmPlan plan = plan_gemm(s.gemm, s.compute, s.terms, job.rows, pixels, result, threads);
  const TermRows::Places places(s, patches);
  const size_t slab_bytes = align64(patches.slab_bytes());
  const int parts = threads > 1 ? 1 : threads_for(s.products());
  share_tasks(job.groups, parts, slab_bytes + plan.workspace_bytes(),
              [&](int64_t group, char* scratch) {
                parallel_for(job.shape.channels, 1, [&](int64_t begin, int64_t end) {
                  patches.fill(s.input(group), 0, pixels, begin * taps, (end - begin) * taps,
                               scratch + begin * patches.plane_elems() * patches.bytes());
                });
                const TermRows source(s, places, scratch);
                GemmRows rows{};
                rows.dtype = s.compute_dtype();
                rows.source = &source;
                const GradColumns columns(s, s.grad(group));
                const TransposedTermSink sink(s, group);
                GemmResult out = result;
                out.sink = &sink;
                run_gemm(s.gemm, plan, rows, columns, out, scratch + slab_bytes);
              });
}

void gradient_as_gemm(const Setup& s) {
  const FilterGradient& job = s.job;
  const bool many = job.groups >= 2 * ThreadPool::global().threads();
  const int threads = many ? 1 : ThreadPool::global().threads();
  if (s.terms <= kTransposedTerms) {
    const Patches patches(s.conv, job.shape, job.shape.pixels(), s.terms);
    if (patches.slab_bytes() <= kWholeSlabBytes) {
      return gradient_as_transposed_gemm(s, patches, threads);
    }
  }
  const TermSink any(s, 0);
  const GemmResult result{nullptr, job.shape.dtype, 0, 0, nullptr, &any};
  GemmPlan plan =
      plan_gemm(s.gemm, s.compute, job.rows, s.terms, job.shape.pixels(), result, threads);
  const Patches patches(s.conv, job.shape, plan.k_block, plan.task_cols);
  const size_t panel_bytes = plan.b_bytes;
  plan.b_bytes +=
      patches.slab_bytes() + align64(static_cast<size_t>(plan.task_cols) * sizeof(int64_t));
  const auto run_group = [&](int64_t group, void* workspace) {
    const GradRows source(s, s.grad(group));
    GemmRows rows{};
    rows.dtype = job.shape.dtype;
    rows.source = &source;
    const TermColumns columns(s, patches, panel_bytes, s.input(group));
    const TermSink sink(s, group);
    GemmResult out = result;
    out.sink = &sink;
    run_gemm(s.gemm, plan, rows, columns, out, workspace);
  };
  share_tasks(job.groups, many ? threads_for(s.products()) : 1, plan.workspace_bytes(), run_group);
}

// ---- As dot products ----

/// Combines sixteen lanes by a tree: lanes l and l + 8, then l + 4, l + 2 and l + 1.
template <class T>
void combine_lanes(const char* sums, int64_t count, char* to) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  for (int64_t i = 0; i < count; ++i) {
    Four v[kDotLanes / 4];
    std::memcpy(v, sums + i * static_cast<int64_t>(sizeof v), sizeof v);
    const Four sum = (v[0] + v[2]) + (v[1] + v[3]);
    const T merged = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &merged, sizeof(T));
  }
}

/// Adds the products of some pixels of one row of the output's gradient.
void add_dots(const Setup& s, const Patches& patches, int64_t group, int64_t row, int64_t pixel,
              int64_t pixels, const char* slab, char* line, DotArgs args) {
  const PixelTarget& at = s.job.grad_at;
  const int64_t ny = s.job.shape.out_size[0], nx = s.job.shape.out_size[1];
  const bool in_place = s.compute_dtype() == s.job.shape.dtype && at.stride[1] == 1;
  int64_t batch = pixel / (ny * nx), y = pixel / nx % ny, x = pixel % nx;
  args.rows = 0;
  args.g_stride = at.stride[0];
  args.pitch = patches.pitch();
  int64_t last_plot = -1;
  const auto run = [&] {
    if (args.rows > 0) s.conv.dots[s.kind()](args);
    args.rows = 0;
  };
  patches.for_each_row(pixel, pixels, [&](int64_t, int64_t n, int64_t base, int64_t plot) {
    // Consecutive whole rows of a plot are added by one call.
    if (args.rows == 0 || !in_place || plot != last_plot || n != args.n || n != nx) {
      run();
      const char* grad = s.grad(group) + (row * at.row_stride + batch * at.batch_stride +
                                          y * at.stride[0] + x * at.stride[1]) *
                                             s.in_bytes;
      if (!in_place) {
        s.gemm.load[s.dtype()](grad, at.stride[1], n, line);
        grad = line;
      }
      args.n = n;
      args.g = grad;
      args.slab = slab + base * s.bytes;
      last_plot = plot;
    }
    ++args.rows;
    x = 0;
    if (++y == ny) {
      y = 0;
      ++batch;
    }
  });
  run();
}

void gradient_as_dots(const Setup& s) {
  const FilterGradient& job = s.job;
  const PatchShape& shape = job.shape;
  const int64_t pixels = shape.pixels(), taps = shape.tap_count();
  const int64_t step = std::min(pixels, kDotPixels);
  const Patches one(s.conv, shape, step, 1);
  const int64_t plane = static_cast<int64_t>(one.slab_bytes()) / s.bytes;
  const int64_t channels = std::clamp<int64_t>(kDotSlab / plane, 1, shape.channels);
  const Patches patches(s.conv, shape, step, channels * taps);
  const int64_t terms = channels * taps;
  const int64_t pieces = (shape.channels + channels - 1) / channels;

  const size_t slab_bytes = patches.slab_bytes();
  const size_t offset_bytes = align64(static_cast<size_t>(terms) * sizeof(int64_t));
  const size_t line_bytes = align64(static_cast<size_t>(step * s.bytes));
  const size_t sum_bytes = static_cast<size_t>(job.rows * terms * kDotLanes * s.bytes);
  const size_t sum_out_bytes = align64(static_cast<size_t>(terms * s.bytes));
  const auto run = [&](int64_t task, char* scratch) {
    const int64_t group = task / pieces, term = task % pieces * terms;
    char* at = scratch + slab_bytes;
    auto* const offsets = reinterpret_cast<int64_t*>(at);
    char* const line = at += offset_bytes;
    char* const sums = at += line_bytes;
    char* const merged = at + sum_bytes;
    const int64_t count = std::min(terms, s.terms - term);
    std::memset(sums, 0, sum_bytes);
    patches.term_offsets(term, count, offsets);
    for (int64_t pixel = 0; pixel < pixels; pixel += step) {
      const int64_t now = std::min(step, pixels - pixel);
      patches.fill(s.input(group), pixel, now, term, count, scratch);
      for (int64_t r = 0; r < job.rows; ++r) {
        DotArgs args{};
        args.k = count;
        args.offsets = offsets;
        args.sums = sums + r * terms * kDotLanes * s.bytes;
        add_dots(s, patches, group, r, pixel, now, scratch, line, args);
      }
    }
    for (int64_t r = 0; r < job.rows; ++r) {
      const char* const row = sums + r * terms * kDotLanes * s.bytes;
      if (s.compute == Compute::f64) {
        combine_lanes<double>(row, count, merged);
      } else {
        combine_lanes<float>(row, count, merged);
      }
      store_terms(s, group, r, term, count, merged);
    }
  };
  share_tasks(job.groups * pieces, threads_for(s.products()),
              slab_bytes + offset_bytes + line_bytes + sum_bytes + sum_out_bytes, run);
}

}  // namespace

void correlate_filters(Isa isa, const FilterGradient& job) {
  const Setup setup(isa, job);
  if (job.rows <= kDotRows) return gradient_as_dots(setup);
  gradient_as_gemm(setup);
}

}  // namespace wick::cpu
