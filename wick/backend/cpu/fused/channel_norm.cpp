// group_norm and batch_norm: in which order and on which thread kernels get the elements.

#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/channel_norm_kernels.h"
#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/math/combine.h"
#include "wick/math/scalar.h"

namespace wick::cpu {
namespace {

// Below so many elements a second thread costs more than it saves.
constexpr int64_t kElemsPerThread = 32768;

// Rows that aren't dense are copied once, up to this size; longer rows are gathered a chunk at a
// time, in each of the three passes.
constexpr int64_t kDenseRowBytes = 1 << 20;

// Fewer elements are gathered in less time than a copy takes to start.
constexpr int64_t kCopied = 512;

const ChannelNormKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, channel_norm_kernels, no_dots);
}

/// The elements of a vector in the compute type; `absent` if there is no vector.
template <class A>
std::vector<A> numbers(CpuBackend& cpu, const ConstView& vector, int64_t n, A absent) {
  std::vector<A> wide(static_cast<size_t>(n), absent);
  if (vector.data == nullptr || n == 0) return wide;
  const DType compute = math::kSame<A, double> ? DType::f64 : DType::f32;
  const View to{wide.data(), compute, Layout::contiguous(Shape{n})};
  vector.dtype == compute ? cpu.copy(to, vector) : cpu.cast(to, vector);
  return wide;
}

/// Returns the sum of a row from the sums of its chunks. Overwrites `sums`.
template <class A>
A row_total(std::span<A> sums) {
  math::combine_by_twos(static_cast<int64_t>(sums.size()), [&](int64_t i, int64_t j) {
    sums[static_cast<size_t>(i)] += sums[static_cast<size_t>(j)];
  });
  return sums[0];
}

/// Where the elements of a row of group_norm lie in one operand: a group's channels, each with its
/// pixels.
class RowPlaces {
 public:
  RowPlaces(void* data, DType dtype, const Layout& layout, int64_t channels)
      : data_(static_cast<char*>(data)), elem_(bytes_of(dtype, 1)), dtype_(dtype) {
    first_ = layout.narrow(0, 0, 1).narrow(1, 0, channels);
    for (int d = 1; d < layout.rank(); ++d) dims_.add(first_.shape()[d], {layout.stride(d)});
  }
  bool dense() const {
    return dims_.rank() == 0 || (dims_.rank() == 1 && dims_.inner(0).stride[0] == 1);
  }
  /// Element `first` of the row at offset `row`; of dense rows.
  char* at(int64_t row, int64_t first) const { return data_ + (row + first) * elem_; }
  void gather_to(char* to, int64_t row, int64_t first, int64_t count) const {
    dims_.runs(first, first + count, [&](const auto& at, const auto& stride, int64_t n) {
      gather(to, data_ + (row + at[0]) * elem_, stride[0] * elem_, n, elem_);
      to += n * elem_;
    });
  }
  /// Copies a whole row, with the transpositions that that takes.
  void copy_to(CpuBackend& cpu, char* to, int64_t row) const {
    const Layout from(first_.shape(), first_.strides(), row);
    cpu.copy({to, dtype_, Layout::contiguous(first_.shape())}, {data_, dtype_, from});
  }
  void scatter_from(const char* from, int64_t row, int64_t first, int64_t count) const {
    dims_.runs(first, first + count, [&](const auto& at, const auto& stride, int64_t n) {
      scatter(data_ + (row + at[0]) * elem_, stride[0] * elem_, from, n, elem_);
      from += n * elem_;
    });
  }

 private:
  char* data_;
  int64_t elem_;
  DType dtype_;
  Layout first_;  // of the first row
  CollapsedDims<1> dims_;
};

/// group_norm in the compute type A. Threads take rows, or chunks if there are fewer rows than
/// threads.
template <class A>
class GroupNorm {
 public:
  GroupNorm(CpuBackend& cpu, const View& out, const ConstView& in, int64_t groups,
            const ConstView& weight, const ConstView& bias, float eps)
      : cpu_(cpu),
        table_(kernels(cpu.isa())),
        dtype_(static_cast<size_t>(in.dtype)),
        elem_(bytes_of(in.dtype, 1)),
        channels_(in.layout.shape()[1] / groups),
        groups_(groups),
        n_(in.layout.elems() / (in.layout.shape()[0] * groups)),
        pixels_(n_ / channels_),
        chunks_((n_ + kSumChunk - 1) / kSumChunk),
        x_(const_cast<void*>(in.data), in.dtype, in.layout, channels_),  // x isn't written
        y_(out.data, out.dtype, out.layout, channels_),
        weight_(numbers<A>(cpu, weight, channels_ * groups, A{1})),
        bias_(numbers<A>(cpu, bias, channels_ * groups, -A{0})),
        eps_(static_cast<A>(eps)) {
    const Layout &x = in.layout, &y = out.layout;
    rows_ = CollapsedDims<2>({y.offset(), x.offset()});
    rows_.add(x.shape()[0], {y.stride(0), x.stride(0)});
    rows_.add(groups, {channels_ * y.stride(1), channels_ * x.stride(1)});
    stream_ = y_.dense() && bytes_of(out.dtype, y.elems()) >= stream_threshold_bytes();
  }

  void run() const {
    const int threads = ThreadPool::global().threads();
    if (chunks_ > 1 && rows_.elems < threads) return by_chunks();
    const int64_t rows = rows_.elems;
    const int parts = static_cast<int>(
        std::clamp<int64_t>(rows * n_ / kElemsPerThread, 1, std::min<int64_t>(rows, threads)));
    const int64_t a_part = align64(x_.dense() ? 0 : (holds_rows() ? n_ : kSumChunk) * elem_);
    const Workspace gathered(static_cast<size_t>(a_part * parts));
    const int64_t at_once = std::max<int64_t>(rows / (parts * 4), 1);
    std::atomic<int64_t> next{0};
    ThreadPool::global().run(parts, [&](int part) {
      std::vector<A> sums(static_cast<size_t>(chunks_));
      for (;;) {
        const int64_t begin = next.fetch_add(at_once, std::memory_order_relaxed);
        for (int64_t row = begin; row < std::min(rows, begin + at_once); ++row) {
          whole_row(row, gathered.data() + part * a_part, sums);
        }
        if (begin >= rows) break;
      }
      if (stream_) stream_fence();
    });
  }

 private:
  struct Statistics {
    A mean, scale;
  };
  /// The index of a row, and its offsets in y and in x.
  struct Row {
    int64_t index, y, x;
  };
  /// Contiguous elements of a row from `first` on, the start of a chunk.
  struct Piece {
    const char* x;
    int64_t first, count;
  };

  Row row(int64_t index) const {
    const auto at = rows_.at(index);
    return {index, at[0], at[1]};
  }
  bool holds_rows() const { return n_ * elem_ <= kDenseRowBytes; }
  A scale_of(std::span<A> squares) const {
    return A{1} / math::sqrt(row_total(squares) / static_cast<A>(n_) + eps_);
  }
  void add_sums(const Piece& p, A* sums) const {
    table_.sums[dtype_](p.x, p.count, sums + p.first / kSumChunk);
  }
  void add_squares(const Piece& p, A mean, A* sums) const {
    table_.squares[dtype_](p.x, p.count, &mean, sums + p.first / kSumChunk);
  }

  void store(const Row& row, const Piece& p, const Statistics& s) const {
    const size_t channel = static_cast<size_t>(row.index % groups_ * channels_);
    GroupRun run{.x = p.x,
                 .y = nullptr,
                 .n = p.count,
                 .first = p.first,
                 .pixels = pixels_,
                 .mean = &s.mean,
                 .scale = &s.scale,
                 .weight = weight_.data() + channel,
                 .bias = bias_.data() + channel,
                 .stream = stream_};
    if (y_.dense()) {
      run.y = y_.at(row.y, p.first);
      return table_.group[dtype_](run);
    }
    alignas(64) char made[kSumChunk * sizeof(A)];
    run.y = made;
    for (int64_t i = 0; i < p.count; i += kSumChunk) {
      run.x = p.x + i * elem_, run.first = p.first + i, run.n = std::min(kSumChunk, p.count - i);
      table_.group[dtype_](run);
      y_.scatter_from(made, row.y, run.first, run.n);
    }
  }

  /// Elements of a row from `first` on, in place or gathered.
  Piece piece(const Row& row, int64_t first, int64_t count, char* gathered) const {
    if (x_.dense()) return {x_.at(row.x, first), first, count};
    x_.gather_to(gathered, row.x, first, count);
    return {gathered, first, count};
  }

  /// Three passes over a row: the whole row if it is dense or was copied, else chunk by chunk.
  void whole_row(int64_t index, char* gathered, std::vector<A>& sums) const {
    const Row at = row(index);
    const bool at_once = x_.dense() || holds_rows();
    Piece all{gathered, 0, n_};
    if (x_.dense() || (at_once && n_ < kCopied)) {
      all = piece(at, 0, n_, gathered);
    } else if (at_once) {
      x_.copy_to(cpu_, gathered, at.x);
    }
    const auto pass = [&](const auto& body) {
      if (at_once) return body(all);
      for (int64_t first = 0; first < n_; first += kSumChunk) {
        body(piece(at, first, std::min(kSumChunk, n_ - first), gathered));
      }
    };
    pass([&](const Piece& p) { add_sums(p, sums.data()); });
    Statistics s{row_total(std::span(sums)) / static_cast<A>(n_), 0};
    pass([&](const Piece& p) { add_squares(p, s.mean, sums.data()); });
    s.scale = scale_of(sums);
    pass([&](const Piece& p) { store(at, p, s); });
  }

  /// Calls body(row, piece) for every chunk, on all threads.
  template <class Body>
  void for_each_chunk(const Body& body) const {
    const int64_t grain = kElemsPerThread / kSumChunk;
    parallel_for(rows_.elems * chunks_, grain, [&](int64_t begin, int64_t end) {
      alignas(64) char gathered[kSumChunk * sizeof(A)];
      for (int64_t i = begin; i < end; ++i) {
        const Row at = row(i / chunks_);
        const int64_t first = i % chunks_ * kSumChunk;
        body(at, piece(at, first, std::min(kSumChunk, n_ - first), gathered));
      }
      if (stream_) stream_fence();
    });
  }

  void by_chunks() const {
    const auto rows = static_cast<size_t>(rows_.elems), each = static_cast<size_t>(chunks_);
    std::vector<A> sums(rows * each);
    std::vector<Statistics> all(rows);
    const auto of = [&](size_t row) { return std::span<A>(sums).subspan(row * each, each); };
    const auto at = [](const Row& row) { return static_cast<size_t>(row.index); };
    for_each_chunk([&](const Row& row, const Piece& p) { add_sums(p, of(at(row)).data()); });
    for (size_t r = 0; r < rows; ++r) all[r].mean = row_total(of(r)) / static_cast<A>(n_);
    for_each_chunk([&](const Row& row, const Piece& p) {
      add_squares(p, all[at(row)].mean, of(at(row)).data());
    });
    for (size_t r = 0; r < rows; ++r) all[r].scale = scale_of(of(r));
    for_each_chunk([&](const Row& row, const Piece& p) { store(row, p, all[at(row)]); });
  }

  CpuBackend& cpu_;
  const ChannelNormKernels& table_;
  size_t dtype_;
  int64_t elem_, channels_, groups_, n_, pixels_, chunks_;
  RowPlaces x_, y_;
  std::vector<A> weight_, bias_;
  A eps_;
  CollapsedDims<2> rows_;  // offsets of each row in y and in x
  bool stream_ = false;
};

/// batch_norm in the compute type A.
template <class A>
void batch_norm_in(CpuBackend& cpu, const View& out, const ConstView& in, const ConstView& mean,
                   const ConstView& variance, const ConstView& weight, const ConstView& bias,
                   float eps) {
  const int64_t channels = in.layout.shape()[1];
  std::vector<A> all = numbers<A>(cpu, mean, channels, 0);
  const std::vector<A> v = numbers<A>(cpu, variance, channels, 0),
                       w = numbers<A>(cpu, weight, channels, 1),
                       b = numbers<A>(cpu, bias, channels, -A{0});
  for (size_t c = 0; c < v.size(); ++c) {
    all.push_back(w[c] / math::sqrt(v[c] + static_cast<A>(eps)));
  }
  all.insert(all.end(), b.begin(), b.end());

  Layout::Strides strides{};
  strides[1] = 1;
  const ConstView by_channel{all.data(), math::kSame<A, double> ? DType::f64 : DType::f32,
                             Layout(in.layout.shape(), strides, 0)};
  const ConstView* const inputs[] = {&in, &by_channel};
  StridedOperands<3> operands = collapse<3>(out, inputs);
  const auto kernel = kernels(cpu.isa()).batch[static_cast<size_t>(in.dtype)];
  const TransposeKernels& transpose =
      WICK_SELECT_KERNELS(cpu.isa(), move_kernels, no_dots).transpose;
  const bool stream = should_stream(operands);
  for_each_run(operands, transpose, kElemsPerThread, stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 kernel({.x = at[1],
                         .y = at[0],
                         .n = n,
                         .x_step = stride[1] / operands.elem_bytes[1],
                         .y_step = stride[0] / operands.elem_bytes[0],
                         .numbers = at[2],
                         .apart = channels,
                         .channel_step = stride[2] / static_cast<int64_t>(sizeof(A)),
                         .stream = stream});
               });
}

}  // namespace

void CpuBackend::group_norm(const View& out, const ConstView& in, int64_t groups,
                            const ConstView& weight, const ConstView& bias, float eps) {
  if (in.layout.elems() == 0) return;
  if (in.dtype == DType::f64) {
    GroupNorm<double>(*this, out, in, groups, weight, bias, eps).run();
  } else {
    GroupNorm<float>(*this, out, in, groups, weight, bias, eps).run();
  }
}

void CpuBackend::batch_norm(const View& out, const ConstView& in, const ConstView& mean,
                            const ConstView& variance, const ConstView& weight,
                            const ConstView& bias, float eps) {
  if (in.layout.elems() == 0) return;
  if (in.dtype == DType::f64) {
    batch_norm_in<double>(*this, out, in, mean, variance, weight, bias, eps);
  } else {
    batch_norm_in<float>(*this, out, in, mean, variance, weight, bias, eps);
  }
}

}  // namespace wick::cpu
