// norm_grad: in which order and on which thread kernels get the elements.

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/channel_norm_kernels.h"
#include "wick/backend/cpu/fused/norm_grad_kernels.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"
#include "wick/math/combine.h"
#include "wick/math/scalar.h"

namespace wick::cpu {
namespace {

// Below so many elements a second thread costs more than it saves.
constexpr int64_t kElemsPerThread = 16384;

/// norm_grad in the compute type A. Threads take rows, or chunks if there are fewer rows than
/// threads.
template <class A>
class NormGrad {
 public:
  NormGrad(CpuBackend& cpu, const View& out, const View& statistics, const ConstView& x,
           const ConstView& grad, const ConstView& weight, const NormKind& kind)
      : kernels_(WICK_SELECT_KERNELS(cpu.isa(), norm_grad_kernels, no_dots)),
        sums_(WICK_SELECT_KERNELS(cpu.isa(), channel_norm_kernels, no_dots)),
        dtype_(static_cast<size_t>(x.dtype)),
        elem_(bytes_of(x.dtype, 1)),
        data_{static_cast<char*>(out.data), static_cast<const char*>(x.data),
              static_cast<const char*>(grad.data)},
        kind_(kind),
        statistics_(static_cast<A*>(statistics.data) + statistics.layout.offset()),
        count_(statistics.layout.elems() / 2) {
    const Layout &y = out.layout, &in = x.layout, &g = grad.layout;
    const Shape& shape = in.shape();
    const int last = shape.rank() - 1;
    rows_ = CollapsedDims<3>({y.offset(), in.offset(), g.offset()});
    const auto strides = [&](int d, int64_t by) {
      return std::array<int64_t, 3>{by * y.stride(d), by * in.stride(d), by * g.stride(d)};
    };
    if (kind.groups == 0) {
      for (int d = 0; d < last; ++d) rows_.add(shape[d], strides(d, 1));
      inner_.add(shape[last], strides(last, 1));
    } else {
      copies_ = shape[1] / kind.groups;
      rows_.add(shape[0], strides(0, 1));
      rows_.add(kind.groups, strides(1, copies_));
      inner_.add(copies_, strides(1, 1));
      for (int d = 2; d <= last; ++d) inner_.add(shape[d], strides(d, 1));
    }
    n_ = inner_.elems;
    each_ = kind.groups == 0 ? 1 : n_ / copies_;
    chunks_ = (n_ + kSumChunk - 1) / kSumChunk;
    for (size_t k = 0; k < 3; ++k) {
      dense_[k] = inner_.rank() == 0 || (inner_.rank() == 1 && inner_.inner(0).stride[k] == 1);
    }
    if (weight.data == nullptr) return;
    weight_.resize(static_cast<size_t>(weight.layout.elems()));
    const View to{weight_.data(), math::kSame<A, double> ? DType::f64 : DType::f32,
                  Layout::contiguous(weight.layout.shape())};
    weight.dtype == to.dtype ? cpu.copy(to, weight) : cpu.cast(to, weight);
  }

  void run() const {
    if (chunks_ > 1 && rows_.elems < ThreadPool::global().threads()) return by_chunks();
    parallel_for(rows_.elems, kElemsPerThread / n_, [&](int64_t begin, int64_t end) {
      std::vector<Dots> dots(static_cast<size_t>(chunks_));
      std::vector<A> sums(static_cast<size_t>(chunks_));
      for (int64_t row = begin; row < end; ++row) whole_row(row, dots, sums);
    });
  }

 private:
  struct Dots {
    A gradients, products;
  };
  struct Numbers {
    A mean = 0, scale = 0, of_gradients = 0, of_products = 0;
  };
  /// A chunk of a row, and memory for what isn't dense.
  struct Piece {
    const char *x, *grad;
    char* y;
    const A* weight;
    int64_t first, n;
  };
  struct Memory {
    alignas(64) char x[kSumChunk * sizeof(A)], grad[kSumChunk * sizeof(A)],
        y[kSumChunk * sizeof(A)];
    alignas(64) A weight[kSumChunk];
  };

  const char* place(size_t k, int64_t row, int64_t first, int64_t n, char* gathered) const {
    const int64_t at = rows_.at(row)[k];
    const char* const data = k == 1 ? data_.x : data_.grad;
    if (dense_[k]) return data + (at + first) * elem_;
    inner_.runs(first, first + n, [&](const auto& from, const auto& stride, int64_t count) {
      gather(gathered, data + (at + from[k]) * elem_, stride[k] * elem_, count, elem_);
      gathered += count * elem_;
    });
    return gathered - n * elem_;
  }
  Piece piece(int64_t row, int64_t chunk, Memory& memory) const {
    Piece p{};
    p.first = chunk * kSumChunk;
    p.n = std::min(kSumChunk, n_ - p.first);
    p.x = place(1, row, p.first, p.n, memory.x);
    p.grad = place(2, row, p.first, p.n, memory.grad);
    p.y = dense_[0] ? data_.y + (rows_.at(row)[0] + p.first) * elem_ : memory.y;
    if (weight_.empty()) return p;
    if (kind_.groups == 0) {
      p.weight = weight_.data() + p.first;
      return p;
    }
    const A* const of_row = weight_.data() + row % kind_.groups * copies_;
    for (int64_t i = 0; i < p.n;) {
      const int64_t channel = (p.first + i) / each_;
      const int64_t count = std::min(p.n - i, (channel + 1) * each_ - p.first - i);
      std::fill_n(memory.weight + i, count, of_row[channel]);
      i += count;
    }
    p.weight = memory.weight;
    return p;
  }

  NormGradRun run_of(const Piece& p, const Numbers& numbers) const {
    return {p.x, p.grad, p.y, p.n, p.weight, &numbers, kind_.centred};
  }
  A sum_of(const Piece& p) const {
    A sum;
    sums_.sums[dtype_](p.x, p.n, &sum);
    return sum;
  }
  A squares_of(const Piece& p, A mean) const {
    A sum;
    sums_.squares[dtype_](p.x, p.n, &mean, &sum);
    return sum;
  }
  Dots dots_of(const Piece& p, const Numbers& numbers) const {
    Dots dots;
    kernels_.dots[dtype_](run_of(p, numbers), &dots);
    return dots;
  }
  void store(int64_t row, const Piece& p, const Numbers& numbers) const {
    kernels_.store[dtype_](run_of(p, numbers));
    if (dense_[0]) return;
    const int64_t at = rows_.at(row)[0];
    const char* from = p.y;
    inner_.runs(p.first, p.first + p.n, [&](const auto& to, const auto& stride, int64_t count) {
      scatter(data_.y + (at + to[0]) * elem_, stride[0] * elem_, from, count, elem_);
      from += count * elem_;
    });
  }

  /// Sums of a row from those of its chunks, which are overwritten.
  static A total(std::span<A> sums) {
    math::combine_by_twos(static_cast<int64_t>(sums.size()), [&](int64_t i, int64_t j) {
      sums[static_cast<size_t>(i)] += sums[static_cast<size_t>(j)];
    });
    return sums[0];
  }
  static Dots total(std::span<Dots> sums) {
    math::combine_by_twos(static_cast<int64_t>(sums.size()), [&](int64_t i, int64_t j) {
      Dots &a = sums[static_cast<size_t>(i)], &b = sums[static_cast<size_t>(j)];
      a = {a.gradients + b.gradients, a.products + b.products};
    });
    return sums[0];
  }
  A mean_of(A sum) const { return sum / static_cast<A>(n_); }
  A scale_of(A squares) const {
    return A{1} / math::sqrt(mean_of(squares) + static_cast<A>(kind_.eps));
  }
  void keep(int64_t row, Numbers& numbers, const Dots& dots) const {
    numbers.of_gradients = mean_of(dots.gradients);
    numbers.of_products = mean_of(dots.products);
    std::fill_n(statistics_ + row * copies_, copies_, numbers.mean);
    std::fill_n(statistics_ + count_ + row * copies_, copies_, numbers.scale);
  }

  void whole_row(int64_t row, std::span<Dots> dots, std::span<A> sums) const {
    Memory memory;
    Piece only;
    if (chunks_ == 1) only = piece(row, 0, memory);
    const auto pass = [&](const auto& body) {
      for (int64_t c = 0; c < chunks_; ++c) {
        body(static_cast<size_t>(c), chunks_ == 1 ? only : piece(row, c, memory));
      }
    };
    Numbers numbers;
    if (kind_.centred) {
      pass([&](size_t c, const Piece& p) { sums[c] = sum_of(p); });
      numbers.mean = mean_of(total(sums));
    }
    pass([&](size_t c, const Piece& p) { sums[c] = squares_of(p, numbers.mean); });
    numbers.scale = scale_of(total(sums));
    pass([&](size_t c, const Piece& p) { dots[c] = dots_of(p, numbers); });
    keep(row, numbers, total(dots));
    pass([&](size_t, const Piece& p) { store(row, p, numbers); });
  }

  /// Few rows of many chunks: threads share the chunks of each pass.
  void by_chunks() const {
    const auto rows = static_cast<size_t>(rows_.elems), each = static_cast<size_t>(chunks_);
    std::vector<A> sums(rows * each);
    std::vector<Dots> dots(rows * each);
    std::vector<Numbers> all(rows);
    const auto pass = [&](const auto& body) {
      parallel_for(
          rows_.elems * chunks_, kElemsPerThread / kSumChunk, [&](int64_t begin, int64_t end) {
            Memory memory;
            for (int64_t i = begin; i < end; ++i) {
              body(static_cast<size_t>(i), i / chunks_, piece(i / chunks_, i % chunks_, memory));
            }
          });
    };
    const auto numbers = [&](int64_t row) -> Numbers& { return all[static_cast<size_t>(row)]; };
    const auto of_row = [&](size_t row) { return std::span<A>(sums).subspan(row * each, each); };
    if (kind_.centred) {
      pass([&](size_t i, int64_t, const Piece& p) { sums[i] = sum_of(p); });
      for (size_t r = 0; r < rows; ++r) all[r].mean = mean_of(total(of_row(r)));
    }
    pass(
        [&](size_t i, int64_t row, const Piece& p) { sums[i] = squares_of(p, numbers(row).mean); });
    for (size_t r = 0; r < rows; ++r) all[r].scale = scale_of(total(of_row(r)));
    pass([&](size_t i, int64_t row, const Piece& p) { dots[i] = dots_of(p, numbers(row)); });
    for (size_t r = 0; r < rows; ++r) {
      keep(static_cast<int64_t>(r), all[r], total(std::span<Dots>(dots).subspan(r * each, each)));
    }
    pass([&](size_t, int64_t row, const Piece& p) { store(row, p, numbers(row)); });
  }

  struct Data {
    char* y;
    const char *x, *grad;
  };

  const NormGradKernels& kernels_;
  const ChannelNormKernels& sums_;
  size_t dtype_;
  int64_t elem_;
  Data data_;
  NormKind kind_;
  A* statistics_;
  int64_t count_;                  // of the rows' means
  int64_t n_ = 0, chunks_ = 0;     // of a row
  int64_t copies_ = 1, each_ = 1;  // channels of a row, and elements of a channel
  CollapsedDims<3> rows_, inner_;  // of y, x and grad: of each row, and of elements within a row
  bool dense_[3] = {};
  std::vector<A> weight_;
};

}  // namespace

void CpuBackend::norm_grad(const View& out, const View& statistics, const ConstView& x,
                           const ConstView& grad, const ConstView& weight, const NormKind& kind) {
  if (x.layout.elems() == 0) {
    fill(statistics, std::numeric_limits<double>::quiet_NaN());
  } else if (x.dtype == DType::f64) {
    NormGrad<double>(*this, out, statistics, x, grad, weight, kind).run();
  } else {
    NormGrad<float>(*this, out, statistics, x, grad, weight, kind).run();
  }
}

}  // namespace wick::cpu
