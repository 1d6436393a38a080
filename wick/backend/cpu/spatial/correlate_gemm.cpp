// A correlation as gemm. Columns are pixels, which are packed block by block through a slab, and
// rows are those of the weights. With fewer pixels than rows of weights, rows are pixels: the
// weights, the larger operand, are then packed block by block and read once. bf16 is multiplied in
// pairs of terms if the processor has vdpbf16ps.

#include <optional>

#include "wick/backend/cpu/linear/packed_columns.h"
#include "wick/backend/cpu/spatial/correlate.h"

namespace wick::cpu {
namespace {

// The largest slab of all pixels and channels that is filled before the gemm.
constexpr size_t kWholeSlabBytes = size_t{4} << 20;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A correlation as gemm: `k` counts terms, or pairs of terms.
struct GemmJob {
  const CorrelationSetup& s;
  Compute compute;
  int64_t pair;  ///< terms of an element of k
  int64_t k;

  GemmJob(Isa isa, const CorrelationSetup& setup) : s(setup), compute(setup.compute), pair(1) {
    const bool dots = isa >= Isa::v4 && has_avx512_bf16() && s.conv.pair_panels != nullptr &&
                      s.gemm.type(Compute::bf16_dot).multiply != nullptr;
    if (dots && s.job.shape.dtype == DType::bf16) {
      compute = Compute::bf16_dot;
      pair = 2;
    }
    k = ceil_div(s.terms, pair);
  }
  bool pairs() const { return pair == 2; }
  const GemmType& type() const { return s.gemm.type(compute); }
};

/// Lists the pieces of panels of `width` pixels for a range of pixels. Returns the number of
/// panels.
int64_t cut_panels(const Patches& patches, int64_t pixel, int64_t pixels, int64_t width,
                   PanelPiece* pieces, int64_t* first) {
  int64_t count = 0, panels = 0;
  patches.for_each_row(pixel, pixels, [&](int64_t at, int64_t length, int64_t base, int64_t) {
    for (int64_t done = 0; done < length;) {
      const int64_t lane = (at + done) % width;
      if (lane == 0) first[panels++] = count;
      pieces[count++] = {base + done, lane};
      done += std::min(width - lane, length - done);
    }
  });
  first[panels] = count;
  return panels;
}

void pack(const GemmJob& p, const PanelArgs& args) {
  if (p.pairs()) return p.s.conv.pair_panels(args);
  p.s.conv.panels[p.s.kind()](args);
}

// ---- The weights ----

/// The weights of all groups as a matrix [group · row][k], in place or as a copy.
class FilterMatrix {
 public:
  explicit FilterMatrix(const GemmJob& p) : FilterMatrix(p, in_place(p)) {}

  const char* data(int64_t group) const { return data_ + group * group_bytes_; }
  DType dtype() const { return dtype_; }
  int64_t row_stride() const { return row_stride_; }
  int64_t k_stride() const { return k_stride_; }

 private:
  FilterMatrix(const GemmJob& p, bool in_place)
      : copy_(in_place ? 0
                       : static_cast<size_t>(p.s.job.groups * p.s.job.rows * p.k *
                                             elem_bytes(p.compute))) {
    const Filters& f = p.s.job.filters;
    if (in_place) {
      data_ = f.data;
      dtype_ = p.pairs() ? DType::u32 : p.s.job.shape.dtype;
      row_stride_ = f.row_stride / p.pair;
      k_stride_ = p.pairs() ? 1 : term_stride(p.s.job);
      group_bytes_ = f.group_stride * p.s.in_bytes;
      return;
    }
    if (p.pairs()) {
      gather_raw_filters(p.s, p.k * p.pair, copy_.data());
    } else {
      gather_filters(p.s, copy_.data());
    }
    data_ = copy_.data();
    dtype_ = p.pairs() ? DType::u32 : p.s.compute_dtype();
    row_stride_ = p.k;
    k_stride_ = 1;
    group_bytes_ = p.s.job.rows * p.k * elem_bytes(p.compute);
  }

  static bool in_place(const GemmJob& p) {
    const Filters& f = p.s.job.filters;
    const int64_t stride = term_stride(p.s.job);
    if (!p.pairs()) return stride != 0;
    return stride == 1 && p.s.terms % 2 == 0 && f.row_stride % 2 == 0 && f.group_stride % 2 == 0 &&
           reinterpret_cast<uintptr_t>(f.data) % 4 == 0;
  }

  Workspace copy_;
  const char* data_;
  DType dtype_;
  int64_t row_stride_, k_stride_, group_bytes_;
};

// ---- Pixels as columns ----

class PixelColumns final : public GemmColumns {
 public:
  struct Scratch {
    size_t panels, slab, offsets, pieces, first;
    size_t bytes() const { return panels + slab + offsets + pieces + first; }
  };
  static Scratch scratch_of(const GemmJob& p, const GemmPlan& plan, const Patches& patches) {
    const int64_t panels = plan.task_cols / p.type().col_panel + 2;
    return {plan.b_bytes, patches.slab_bytes(),
            align64(static_cast<size_t>(plan.k_block * p.pair) * sizeof(int64_t)),
            align64(static_cast<size_t>(plan.task_cols + panels) * sizeof(PanelPiece)),
            align64(static_cast<size_t>(panels + 1) * sizeof(int64_t))};
  }

  PixelColumns(const GemmJob& p, const Patches& patches, const Scratch& scratch, const char* in)
      : p_(p), patches_(patches), scratch_(scratch), in_(in) {}

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
    const int64_t term = k0 * p_.pair, terms = std::min(k * p_.pair, p_.s.terms - term);
    patches_.fill(in_, col, cols, term, terms, slab);
    patches_.term_offsets(term, terms, offsets);
    args.line = p_.type().col_panel;
    args.slab = slab;
    args.offsets = offsets;
    args.k = k;
    args.half = terms < k * p_.pair;
    args.pieces = pieces;
    args.first = first;
    args.panels_count = cut_panels(patches_, col, cols, args.line, pieces, first);
    args.panel_stride = (k + 1) * args.line;
    pack(p_, args);
    return {args.panels, args.panel_stride};
  }

 private:
  const GemmJob& p_;
  const Patches& patches_;
  const Scratch& scratch_;
  const char* in_;
};

class PixelSink final : public GemmSink {
 public:
  PixelSink(const CorrelationSetup& setup, char* out)
      : bytes_(setup.bytes), places_(setup), out_(out) {}
  bool is_one_run(int64_t pixels) const { return places_.is_one_run(pixels); }
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

void multiply_by_columns(const GemmJob& p, int threads) {
  const CorrelationSetup& s = p.s;
  const FilterMatrix filters(p);
  const PixelSink any(s, nullptr);
  const PixelTarget& target = s.job.out;
  // One image with contiguous pixels is a matrix.
  const bool matrix = any.is_one_run(s.job.shape.pixels());
  const GemmResult result{nullptr, target.dtype, target.row_stride,
                          1,       nullptr,      matrix ? nullptr : &any};
  GemmPlan plan =
      plan_gemm(s.gemm, p.compute, s.job.rows, s.job.shape.pixels(), p.k, result, threads);
  const Patches patches(s.conv, s.job.shape, plan.task_cols, plan.k_block * p.pair, p.pairs());
  const PixelColumns::Scratch scratch = PixelColumns::scratch_of(p, plan, patches);
  plan.b_bytes = scratch.bytes();
  const int parts = threads > 1 ? 1 : threads_for(s.products());
  share_tasks(s.job.groups, parts, plan.workspace_bytes(), [&](int64_t group, void* workspace) {
    const GemmRows rows{filters.data(group), filters.dtype(), filters.row_stride(),
                        filters.k_stride()};
    const PixelColumns columns(p, patches, scratch, s.input(group));
    const PixelSink sink(s, s.output(group));
    const GemmResult out{s.output(group),         target.dtype, target.row_stride, 1, nullptr,
                         matrix ? nullptr : &sink};
    run_gemm(s.gemm, plan, rows, columns, out, workspace);
  });
}

// ---- Pixels as rows ----

/// All pixels as rows, from a slab of all pixels.
class PixelRows final : public GemmRowSource {
 public:
  /// What groups share.
  struct Panels {
    std::vector<PanelPiece> pieces;
    std::vector<int64_t> first, offsets;

    Panels(const GemmJob& p, const Patches& patches)
        : pieces(static_cast<size_t>(2 * p.s.job.shape.pixels())),
          first(static_cast<size_t>(p.s.job.shape.pixels() / p.type().tile_rows + 2)),
          offsets(static_cast<size_t>(p.s.terms)) {
      cut_panels(patches, 0, p.s.job.shape.pixels(), p.type().tile_rows, pieces.data(),
                 first.data());
      patches.term_offsets(0, p.s.terms, offsets.data());
    }
  };

  PixelRows(const GemmJob& p, const Panels& panels, const char* slab)
      : p_(p), panels_(panels), slab_(slab) {}
  void pack(int64_t row, int64_t rows, int64_t k0, int64_t k, void* panels,
            int64_t panel_stride) const override {
    const int64_t panel = row / p_.type().tile_rows;
    PanelArgs args{};
    args.line = p_.type().row_panel;
    args.slab = slab_;
    args.offsets = panels_.offsets.data() + k0 * p_.pair;
    args.k = k;
    args.half = (k0 + k) * p_.pair > p_.s.terms;
    args.pieces = panels_.pieces.data();
    args.first = panels_.first.data() + panel;
    args.panels_count = ceil_div(rows, p_.type().tile_rows);
    args.panels = panels;
    args.panel_stride = panel_stride;
    cpu::pack(p_, args);
  }

 private:
  const GemmJob& p_;
  const Panels& panels_;
  const char* slab_;
};

/// Stores results whose rows are pixels and whose columns are rows of the weights.
class TransposedSink final : public GemmSink {
 public:
  TransposedSink(const CorrelationSetup& setup, char* out)
      : bytes_(setup.bytes), places_(setup), out_(out) {}
  void store(int64_t row, int64_t rows, int64_t col, int64_t cols, const void* c,
             int64_t c_stride) const override {
    places_.for_each_run(row, rows, [&](int64_t first, int64_t count, int64_t offset) {
      for (int64_t i = 0; i < count; ++i) {
        places_.store_rows(out_, col, cols, offset, i,
                           static_cast<const char*>(c) + (first + i) * c_stride * bytes_);
      }
    });
  }

 private:
  int64_t bytes_;
  PixelPlaces places_;
  char* out_;
};

void multiply_by_rows(const GemmJob& p, const Patches& patches, int threads) {
  const CorrelationSetup& s = p.s;
  const FilterMatrix filters(p);
  const TransposedSink any(s, nullptr);
  const GemmResult result{nullptr, s.job.out.dtype, 0, 0, nullptr, &any};
  const GemmPlan plan =
      plan_gemm(s.gemm, p.compute, s.job.shape.pixels(), s.job.rows, p.k, result, threads);
  const PixelRows::Panels panels(p, patches);
  const int64_t taps = s.job.shape.tap_count(), pixels = s.job.shape.pixels();
  const int parts = threads > 1 ? 1 : threads_for(s.products());
  const size_t slab_bytes = align64(patches.slab_bytes());
  share_tasks(
      s.job.groups, parts, slab_bytes + plan.workspace_bytes(), [&](int64_t group, char* scratch) {
        parallel_for(s.job.shape.channels, 1 + 8192 / pixels, [&](int64_t begin, int64_t end) {
          patches.fill(s.input(group), 0, pixels, begin * taps, (end - begin) * taps,
                       scratch + begin * patches.plane_elems() * patches.bytes());
        });
        const PixelRows source(p, panels, scratch);
        GemmRows rows{};
        rows.dtype = p.pairs() ? DType::u32 : s.compute_dtype();
        rows.source = &source;
        const PackedColumns columns(s.gemm, p.compute, filters.data(group), filters.dtype(),
                                    filters.row_stride(), filters.k_stride());
        const TransposedSink sink(s, s.output(group));
        const GemmResult out{nullptr, s.job.out.dtype, 0, 0, nullptr, &sink};
        run_gemm(s.gemm, plan, rows, columns, out, scratch + slab_bytes);
      });
}

}  // namespace

void correlate_as_gemm(Isa isa, const CorrelationSetup& s) {
  const GemmJob job(isa, s);
  const bool many = s.job.groups >= 2 * ThreadPool::global().threads();
  const int threads = many ? 1 : ThreadPool::global().threads();
  const int64_t pixels = s.job.shape.pixels();
  if (pixels < s.job.rows) {
    const Patches patches(s.conv, s.job.shape, pixels, s.terms, job.pairs());
    if (patches.slab_bytes() <= kWholeSlabBytes) {
      return multiply_by_rows(job, patches, threads);
    }
  }
  multiply_by_columns(job, threads);
}

}  // namespace wick::cpu
