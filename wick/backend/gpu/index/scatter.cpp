// Scatters elements, or adds them, at places that ids name: kernels/index/scatter_*.gpu.

#include "wick/backend/gpu/index/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/index/index_select.h"
#include "wick/backend/gpu/reduce/sum_element.h"
#include "wick/base/error.h"

namespace wick::gpu {

namespace {

const KernelFamily<ScatterFewArgs, OneOf<1, 2, 4, 8>> kFew("scatter_few", "scatter_few_{}");
const KernelFamily<ScatterFewArgs, SumElement> kAddFew("scatter_few", "scatter_add_few_{}");
const KernelFamily<ScatterLinesArgs, OneOf<1, 2, 4, 8>> kLines("scatter_lines", "scatter_lines_{}");
const KernelFamily<ScatterLinesArgs, SumElement> kAddRows("scatter_add_lines",
                                                          "scatter_add_rows_{}");
const KernelFamily<ScatterLinesArgs, SumElement> kAddColumns("scatter_add_lines",
                                                             "scatter_add_columns_{}");

/// The fewest columns for which ids are sorted even if lines fit shared memory. A sorted id then
/// takes no more time than its columns.
constexpr int64_t kLeastColumns = 8;
/// The most source elements of a line that one warp adds in less time than several kernels sort
/// ids, even if there are few lines.
constexpr int64_t kShortLine = 16384;
/// The most places for each source element in kernels that keep lines in shared memory: these
/// kernels read all places of a line.
constexpr int64_t kPlacesPerElement = 8;

/// A tile of lines that a thread block takes.
struct LinePlan {
  bool by_columns;     ///< neighbouring threads take neighbouring lines
  uint32_t lines_log;  ///< 2^lines_log lines
  uint32_t pitch;      ///< words, or sums, from one line to the next
  int64_t shared;      ///< bytes of shared memory; above the limit if not even one line fits
};

class Launcher {
 public:
  /// The ids have the source's shape. `named`: the ids as the op's operand, for errors.
  Launcher(Gpu& gpu, Op op, const View& out, const ConstView& source, const ConstView& ids, int dim,
           const ConstView& named)
      : gpu_(gpu) {
    const Layout &x = out.layout, &y = source.layout;
    s_.add = op == Op::scatter_add || op == Op::index_add;
    s_.dtype = out.dtype;
    s_.out = Operand(out), s_.source = Operand(source);
    s_.n = y.shape()[dim], s_.places = x.shape()[dim];
    if (s_.n >= int64_t{1} << 31) {
      throw Error(name(op), "too many ids along the dim", fmt::format("{}", s_.n), "need < 2^31");
    }
    s_.ids = make_ids(gpu, name(op), out, named, s_.places);
    s_.ids.step = x.stride(dim);
    s_.source_step = y.stride(dim), s_.id_step = ids.layout.stride(dim);
    s_.lines.start = {y.offset(), x.offset(), ids.layout.offset()};
    for (int d = 0; d < y.rank(); ++d) {
      if (d == dim) continue;
      s_.lines.add(y.shape()[d], {y.stride(d), x.stride(d), ids.layout.stride(d)});
    }
    s_.lines.arrange();
    for (const auto& line : s_.lines.dims) {
      if (line.stride[2] == 0) s_.columns.add(line.size, {line.stride[1], line.stride[0]});
    }
    s_.columns.sort();
  }

  void run() {
    if (s_.n <= kScatterFew) return few();
    const bool has_columns = s_.columns.elems >= kLeastColumns;
    if (has_columns && std::abs(s_.columns.inner(0).stride[1]) <= std::abs(s_.source_step)) {
      return segments(true);
    }
    // A sum, or the index of a source element, takes at least 4 bytes.
    const bool fits = s_.places > 0 && s_.places <= gpu_.info.shared_bytes / 4;
    if (fits && s_.places / kPlacesPerElement <= s_.n &&
        (s_.n <= kShortLine || s_.lines.elems >= gpu_.info.multiprocessors)) {
      const LinePlan plan = s_.add ? plan_add() : plan_set();
      if (plan.shared <= gpu_.info.shared_bytes) return lines(plan);
    }
    segments(has_columns);
  }

 private:
  /// Whether neighbours along the dim are nearer to each other than neighbouring lines.
  bool is_along() const {
    if (s_.lines.dims.empty()) return true;
    const auto& inner = s_.lines.inner(0);
    return std::abs(s_.source_step) + std::abs(s_.id_step) <=
           std::abs(inner.stride[0]) + std::abs(inner.stride[2]);
  }

  /// apart: the dims on which ids don't depend are columns. Otherwise all are dims of lines.
  void segments(bool apart) {
    if (apart) {
      CollapsedDims<3> lines;
      lines.start = s_.lines.start;  // columns start at 0 behind it
      for (const auto& line : s_.lines.dims) {
        if (line.stride[2] != 0) lines.add(line.size, line.stride);
      }
      s_.lines = lines;
    } else {
      s_.columns = {};
    }
    launch_segments(gpu_, s_);
  }

  void few() const {
    const bool along = is_along();
    s_.lines.for_each_piece(2 * s_.n, [&](const StridedIndex<3>& lines, const auto& start) {
      ScatterFewArgs c{};
      c.out = s_.out.at(start[1]), c.source = s_.source.at(start[0]);
      c.lines = lines;
      c.n = static_cast<uint32_t>(s_.n);
      c.elems = lines.elems * c.n;
      c.along = along ? 1 : 0;
      c.inner = Divider(along ? c.n : lines.elems);
      c.source_step = s_.source_step, c.id_step = s_.id_step;
      c.ids = s_.ids;
      c.ids.data = id_at(s_.ids, start[2]);
      const Grid grid = spread(gpu_, c.elems, 1);
      if (s_.add) {
        kAddFew(sum_element(s_.dtype)).launch(gpu_, grid, c);
      } else {
        kFew(s_.out.bytes).launch(gpu_, grid, c);
      }
    });
  }

  LinePlan plan_set() const {
    LinePlan plan{!is_along(), 0, static_cast<uint32_t>(s_.places | 1), 0};
    const int64_t line = int64_t{plan.pitch} * 4;
    if (plan.by_columns) {
      // Two thread blocks of a multiprocessor run at once.
      while (plan.lines_log < 4 && (line << (plan.lines_log + 1)) <= gpu_.info.shared_bytes / 2) {
        ++plan.lines_log;
      }
    }
    plan.shared = line << plan.lines_log;
    return plan;
  }

  LinePlan plan_add() const {
    const int64_t sum = std::max<int64_t>(s_.out.bytes, 4);
    LinePlan plan{!is_along(), 0, static_cast<uint32_t>(s_.places | 1), 0};
    // Rows begin at multiples of 16 bytes. With odd distances, columns lie in different banks.
    if (!plan.by_columns) plan.pitch = static_cast<uint32_t>(divide_up(s_.places, 4) * 4);
    const int64_t staged = plan.by_columns ? kScatterAhead * kScatterStage * (sum + 4) : 0;
    const int64_t line = plan.pitch * sum + staged, all = gpu_.info.shared_bytes;
    const auto fits = [&](uint32_t log, int64_t bytes) { return line << log <= bytes; };
    if (plan.by_columns) {
      // Neighbouring columns of 32 bytes fill a sector. If shared memory holds no two thread
      // blocks of at least 4 columns, one block has as many columns as fit.
      const uint32_t wanted = s_.out.bytes < 4 ? 4 : 3;
      plan.lines_log = wanted;
      while (plan.lines_log > 2 && !fits(plan.lines_log, all / 2)) --plan.lines_log;
      if (!fits(plan.lines_log, all / 2)) {
        plan.lines_log = wanted;
        while (plan.lines_log > 0 && !fits(plan.lines_log, all)) --plan.lines_log;
      }
    } else {
      plan.lines_log = 3;
      while (plan.lines_log > 0 && !fits(plan.lines_log, all / 4)) --plan.lines_log;
    }
    plan.shared = line << plan.lines_log;
    return plan;
  }

  /// Whether places are dense and all lines of the output begin at multiples of 16 bytes.
  bool has_vectors() const {
    Access access(s_.out.data, s_.out.bytes, s_.lines.start[1]);
    for (const auto& line : s_.lines.dims) access.dim(line.size, line.stride[1]);
    return access.run(s_.places, s_.ids.step).vectors_of(16 / s_.out.bytes);
  }

  void lines(const LinePlan& plan) const {
    const int64_t of_block = int64_t{1} << plan.lines_log;
    unsigned threads = kWarp << plan.lines_log;
    if (!s_.add) {
      // A thread takes four source elements or places at a time.
      const int64_t steps = (std::max(s_.n, s_.places) << plan.lines_log) / 4;
      threads = steps <= 64 ? 64 : steps <= 128 ? 128 : kScatterLineThreads;
    }
    const bool packed = has_vectors();
    s_.lines.for_each_piece(threads, [&](const StridedIndex<3>& lines, const auto& start) {
      ScatterLinesArgs c{};
      c.out = s_.out.at(start[1]), c.source = s_.source.at(start[0]);
      c.lines = lines;
      c.n = static_cast<uint32_t>(s_.n), c.places = static_cast<uint32_t>(s_.places);
      c.pitch = plan.pitch;
      c.bits = ceil_log(c.places);
      c.tile_log = plan.lines_log;
      c.packed = packed ? 1 : 0;
      c.source_step = s_.source_step, c.id_step = s_.id_step;
      c.ids = s_.ids;
      c.ids.data = id_at(s_.ids, start[2]);
      const Grid grid{.blocks = {static_cast<unsigned>(divide_up(lines.elems, of_block)), 1, 1},
                      .threads = threads,
                      .shared_bytes = static_cast<unsigned>(plan.shared),
                      .pdl = true};
      if (!s_.add) {
        kLines(s_.out.bytes).launch(gpu_, grid, c);
      } else {
        (plan.by_columns ? kAddColumns : kAddRows)(sum_element(s_.dtype)).launch(gpu_, grid, c);
      }
    });
  }

  Gpu& gpu_;
  Scatter s_{};
};

}  // namespace

void GpuBackend::scatter(Op op, const View& out, const ConstView& source, const ConstView& ids,
                         int dim) {
  if (source.layout.elems() == 0) return;
  Launcher(gpu_, op, out, source, ids, dim, ids).run();
}

void GpuBackend::index_add(const View& out, const ConstView& source, const ConstView& ids,
                           int dim) {
  if (source.layout.elems() == 0) {
    return check_ids(gpu_, "index_add", out, ids, out.layout.shape()[dim]);
  }
  Layout::Strides strides{};
  strides[static_cast<size_t>(dim)] = ids.layout.stride(0);
  const ConstView repeated{ids.data, ids.dtype,
                           Layout(source.layout.shape(), strides, ids.layout.offset())};
  Launcher(gpu_, Op::index_add, out, source, repeated, dim, ids).run();
}

}  // namespace wick::gpu
