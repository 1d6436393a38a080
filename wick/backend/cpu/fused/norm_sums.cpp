// norm_sums and softmax_grad: in which order and on which thread kernels get the elements.

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/norm_grad_kernels.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"
#include "wick/math/combine.h"

namespace wick::cpu {
namespace {

// Below so many elements a second thread costs more than it saves.
constexpr int64_t kElemsPerThread = 16384;
/// Fewer neighbouring columns are summed one after another.
constexpr int64_t kFewColumns = 8;

const NormGradKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, norm_grad_kernels, no_dots);
}

template <class T>
T* advanced(T* data, int64_t bytes) {
  return data == nullptr ? nullptr : data + bytes;
}

/// The two sums of neighbouring columns: [2][kNormColumns].
template <class A>
using Pair = std::array<A, static_cast<size_t>(2 * kNormColumns)>;

/// Computes the sums of `count` tasks of `chunks` chunks each. piece(task, chunk, pair) computes
/// those of a chunk; finish(task, pair) receives the total.
template <class A, class Piece, class Finish>
void sum_chunks(int64_t count, int64_t chunks, int64_t elems, const Piece& piece,
                const Finish& finish) {
  const auto add = [](Pair<A>& a, const Pair<A>& b) {
    for (size_t j = 0; j < a.size(); ++j) a[j] = a[j] + b[j];
  };
  if (chunks > 1 && count < 4 * ThreadPool::global().threads()) {
    std::vector<Pair<A>> all(static_cast<size_t>(count * chunks));
    parallel_for(count * chunks, kElemsPerThread * chunks / std::max<int64_t>(elems, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     piece(i / chunks, i % chunks, all[static_cast<size_t>(i)]);
                   }
                 });
    for (int64_t task = 0; task < count; ++task) {
      Pair<A>* const of_task = &all[static_cast<size_t>(task * chunks)];
      math::combine_by_twos(chunks, [&](int64_t i, int64_t j) { add(of_task[i], of_task[j]); });
      finish(task, *of_task);
    }
    return;
  }
  parallel_for(count, kElemsPerThread / std::max<int64_t>(elems, 1),
               [&](int64_t begin, int64_t end) {
                 std::vector<Pair<A>> stack;
                 for (int64_t task = begin; task < end; ++task) {
                   size_t depth = 0;
                   const auto combine_top = [&] {
                     --depth;
                     add(stack[depth - 1], stack[depth]);
                   };
                   math::CombineStack order;
                   for (int64_t chunk = 0; chunk < chunks; ++chunk) {
                     if (stack.size() == depth) stack.emplace_back();
                     piece(task, chunk, stack[depth++]);
                     order.pushed(combine_top);
                   }
                   while (depth > 1) combine_top();
                   if (chunks == 0) stack.assign(1, Pair<A>{});
                   finish(task, stack[0]);
                 }
               });
}

/// norm_sums in the compute type A.
template <class A>
class NormSums {
 public:
  NormSums(Isa isa, const View& out, const ConstView& x, const ConstView& grad,
           const ConstView& mean, const ConstView& scale, uint32_t dims)
      : kernels_(kernels(isa)),
        dtype_(static_cast<size_t>(x.dtype)),
        elem_(bytes_of(x.dtype, 1)),
        x_(static_cast<const char*>(x.data)),
        grad_(static_cast<const char*>(grad.data)),
        mean_(static_cast<const A*>(mean.data)),
        scale_(static_cast<const A*>(scale.data)),
        out_(static_cast<A*>(out.data)),
        second_(out.layout.stride(0)) {
    const Layout &at = x.layout, &g = grad.layout;
    const Layout none(at.shape(), {}, 0);
    const Layout &m = mean_ == nullptr ? none : mean.layout,
                 &r = scale_ == nullptr ? none : scale.layout;
    const auto is_reduced = [&](int d) { return ((dims >> d) & 1u) != 0; };
    for (int d = 0; d < at.rank(); ++d) {
      if (at.shape()[d] == 1 || at.stride(d) != 1) continue;
      if (is_reduced(d)) {
        column_dim_ = -1;
        break;
      }
      if (at.shape()[d] >= kFewColumns && g.stride(d) == 1) column_dim_ = d;
    }
    kept_ =
        CollapsedDims<5>({at.offset(), g.offset(), m.offset(), r.offset(), out.layout.offset()});
    int to = 1;  // a dim of out
    for (int d = 0; d < at.rank(); ++d) {
      const std::array strides{at.stride(d), g.stride(d), m.stride(d), r.stride(d)};
      if (is_reduced(d)) {
        reduced_.add(at.shape()[d], strides);
        continue;
      }
      if (d == column_dim_) {
        columns_ = at.shape()[d];
        column_ = {1, 1, m.stride(d), r.stride(d), out.layout.stride(to)};
      } else {
        kept_.add(at.shape()[d],
                  {strides[0], strides[1], strides[2], strides[3], out.layout.stride(to)});
      }
      ++to;
    }
    chunks_ = (reduced_.elems + kSumChunk - 1) / kSumChunk;
  }

  void run() const {
    const int64_t strips = (columns_ + kNormColumns - 1) / kNormColumns;
    const auto task = [&](int64_t index) {
      Task t{kept_.at(index / strips), index % strips * kNormColumns, 0};
      t.width = std::min(kNormColumns, columns_ - t.first);
      return t;
    };
    sum_chunks<A>(
        kept_.elems * strips, chunks_, reduced_.elems * std::min(columns_, kNormColumns),
        [&](int64_t index, int64_t chunk, Pair<A>& pair) {
          column_dim_ < 0 ? row_chunk(task(index), chunk, pair)
                          : column_chunk(task(index), chunk, pair);
        },
        [&](int64_t index, const Pair<A>& pair) {
          const Task t = task(index);
          A* const to = out_ + t.at[4] + t.first * column_[4];
          for (int64_t j = 0; j < t.width; ++j) {
            to[j * column_[4]] = pair[static_cast<size_t>(j)];
            to[j * column_[4] + second_] = pair[static_cast<size_t>(kNormColumns + j)];
          }
        });
  }

 private:
  struct Task {
    std::array<int64_t, 5> at;
    int64_t first, width;  // columns
  };

  /// A chunk of one result.
  void row_chunk(const Task& t, int64_t chunk, Pair<A>& pair) const {
    const int64_t start = chunk * kSumChunk, n = std::min(kSumChunk, reduced_.elems - start);
    alignas(64) char x_memory[kSumChunk * sizeof(A)], grad_memory[kSumChunk * sizeof(A)];
    alignas(64) A mean[kSumChunk], scale[kSumChunk];
    const char *x = x_memory, *grad = grad_memory;
    int64_t done = 0;
    reduced_.runs(start, start + n, [&](const auto& at, const auto& stride, int64_t count) {
      const auto place = [&](size_t k, const char* data, char* memory, const char*& from) {
        const char* const there = data + (t.at[k] + at[k]) * elem_;
        if (count == n && (stride[k] == 1 || n == 1)) {
          from = there;
        } else {
          gather(memory + done * elem_, there, stride[k] * elem_, count, elem_);
        }
      };
      const auto spread = [&](size_t k, const A* data, A* memory) {
        if (data == nullptr) return;
        gather(reinterpret_cast<char*>(memory + done),
               reinterpret_cast<const char*>(data + t.at[k] + at[k]),
               stride[k] * static_cast<int64_t>(sizeof(A)), count, sizeof(A));
      };
      place(0, x_, x_memory, x);
      place(1, grad_, grad_memory, grad);
      spread(2, mean_, mean);
      spread(3, scale_, scale);
      done += count;
    });
    A sums[2];
    kernels_.products[dtype_](x, grad, mean_ == nullptr ? nullptr : mean,
                              scale_ == nullptr ? nullptr : scale, n, sums);
    pair[0] = sums[0];
    pair[static_cast<size_t>(kNormColumns)] = sums[1];
  }

  /// A chunk of neighbouring columns.
  void column_chunk(const Task& t, int64_t chunk, Pair<A>& pair) const {
    const int64_t start = chunk * kSumChunk, n = std::min(kSumChunk, reduced_.elems - start);
    std::array<std::array<int64_t, kSumChunk>, 4> rows;
    size_t row = 0;
    reduced_.runs(start, start + n, [&](const auto& at, const auto& stride, int64_t count) {
      for (int64_t i = 0; i < count; ++i, ++row) {
        for (size_t k = 0; k < 4; ++k) rows[k][row] = at[k] + i * stride[k];
      }
    });
    const auto first = [&](size_t k) { return t.at[k] + t.first * column_[k]; };
    kernels_.columns[dtype_]({.x = x_ + first(0) * elem_,
                              .grad = grad_ + first(1) * elem_,
                              .mean = advanced(mean_, first(2)),
                              .scale = advanced(scale_, first(3)),
                              .x_rows = rows[0].data(),
                              .grad_rows = rows[1].data(),
                              .mean_rows = rows[2].data(),
                              .scale_rows = rows[3].data(),
                              .mean_step = column_[2],
                              .scale_step = column_[3],
                              .rows = n,
                              .width = t.width,
                              .sums = pair.data()});
  }

  const NormGradKernels& kernels_;
  size_t dtype_;
  int64_t elem_;
  const char *x_, *grad_;
  const A *mean_, *scale_;
  A* out_;
  int64_t second_;            // from a sum of products to the sum of gradients
  CollapsedDims<4> reduced_;  // of x, grad, mean and scale
  CollapsedDims<5> kept_;     // of those and out, without the columns
  int column_dim_ = -1;
  int64_t columns_ = 1, chunks_ = 0;
  std::array<int64_t, 5> column_{};  // from column to column
};

/// softmax_grad in the compute type A: the sums of all rows, then the result. Rows are those along
/// `dim`.
template <class A>
class SoftmaxGrad {
 public:
  SoftmaxGrad(Isa isa, const View& out, const ConstView& y, const ConstView& grad, int dim,
              bool log)
      : isa_(isa),
        kernel_(kernels(isa).softmax[static_cast<size_t>(y.dtype)]),
        out_(out),
        y_(y),
        grad_(grad),
        dim_(dim),
        log_(log),
        n_(y.layout.shape()[dim]),
        elem_(bytes_of(y.dtype, 1)) {}

  /// The rows are taken in groups whose sums fit a small array.
  void run() const {
    const Layout& x = y_.layout;
    // The outermost dim other than `dim`: groups of its indices.
    int outer = -1;
    for (int d = 0; d < x.rank(); ++d) {
      if (d == dim_ || x.shape()[d] == 1) continue;
      if (outer < 0 || std::abs(x.stride(d)) > std::abs(x.stride(outer))) outer = d;
    }
    const int64_t rows = x.elems() / n_;
    const int64_t size = outer < 0 ? 1 : x.shape()[outer], inner = rows / size;
    const int64_t elems = kGroupElems * ThreadPool::global().threads();
    const int64_t each =
        std::clamp<int64_t>(std::min(kRows / inner, elems / (inner * n_)), 1, size);
    std::vector<A> sums(static_cast<size_t>(2 * each * inner));
    for (int64_t first = 0; first < size; first += each) {
      const int64_t count = std::min(each, size - first);
      group(outer, first, count, sums.data());
    }
  }

 private:
  // A group is read twice, the second time from a cache if its rows aren't too long.
  static constexpr int64_t kRows = 8192, kGroupElems = 1 << 17;

  void group(int outer, int64_t first, int64_t count, A* sums) const {
    const auto narrowed = [&](const auto& view) {
      auto result = view;
      if (outer >= 0) result.layout = view.layout.narrow(outer, first, count);
      return result;
    };
    const View out = narrowed(out_);
    const ConstView y = narrowed(y_), grad = narrowed(grad_);
    const Shape& shape = y.layout.shape();
    std::vector<int64_t> sizes{2};
    Layout::Strides strides{};
    for (int d = 0; d < shape.rank(); ++d) {
      if (d != dim_) sizes.push_back(shape[d]);
    }
    const Layout pair = Layout::contiguous(Shape(sizes));
    for (int d = 0, to = 1; d < shape.rank(); ++d) {
      if (d != dim_) strides[static_cast<size_t>(d)] = pair.stride(to++);
    }
    constexpr DType kCompute = math::kSame<A, double> ? DType::f64 : DType::f32;
    NormSums<A>(isa_, {sums, kCompute, pair}, y, grad, {}, {}, 1u << dim_).run();
    const A* const s = sums + (log_ ? pair.stride(0) : 0);
    const Layout of_sums(shape, strides, 0);
    CollapsedDims<4> dims({&out.layout, &y.layout, &grad.layout, &of_sums});
    dims.arrange();
    parallel_for(dims.elems, kElemsPerThread, [&](int64_t begin, int64_t end) {
      dims.runs(begin, end,
                [&](const auto& at, const auto& stride, int64_t n) { store(at, stride, n, s); });
    });
  }

  void store(const std::array<int64_t, 4>& at, const std::array<int64_t, 4>& stride, int64_t n,
             const A* sums) const {
    const auto from = [&](const ConstView& v, int64_t offset) {
      return const_cast<char*>(static_cast<const char*>(v.data)) + offset * elem_;  // isn't written
    };
    constexpr auto kBytes = static_cast<int64_t>(sizeof(A));
    char* const data[] = {static_cast<char*>(out_.data) + at[0] * elem_, from(y_, at[1]),
                          from(grad_, at[2]),
                          reinterpret_cast<char*>(const_cast<A*>(sums + at[3]))};
    const int64_t sizes[] = {elem_, elem_, elem_, kBytes};
    const int64_t strides[] = {stride[0] * elem_, stride[1] * elem_, stride[2] * elem_,
                               stride[3] * kBytes};
    if (stride[3] == 0) {
      run_dense<3>(n, data, strides, sizes, false, [&](int64_t count, char* const* p, bool) {
        kernel_(p[1], p[2], p[0], count, data[3], false, log_);
      });
    } else {
      run_dense<4>(n, data, strides, sizes, false, [&](int64_t count, char* const* p, bool) {
        kernel_(p[1], p[2], p[0], count, p[3], true, log_);
      });
    }
  }

  Isa isa_;
  NormGradKernels::Softmax kernel_;
  const View& out_;
  const ConstView &y_, &grad_;
  int dim_;
  bool log_;
  int64_t n_, elem_;
};

}  // namespace

void CpuBackend::norm_sums(const View& out, const ConstView& x, const ConstView& grad,
                           const ConstView& mean, const ConstView& scale, uint32_t dims) {
  if (out.layout.elems() == 0) return;
  if (x.dtype == DType::f64) {
    NormSums<double>(isa_, out, x, grad, mean, scale, dims).run();
  } else {
    NormSums<float>(isa_, out, x, grad, mean, scale, dims).run();
  }
}

void CpuBackend::softmax_grad(const View& out, const ConstView& y, const ConstView& grad, int dim,
                              bool log) {
  if (y.layout.elems() == 0) return;
  if (y.dtype == DType::f64) {
    SoftmaxGrad<double>(isa_, out, y, grad, dim, log).run();
  } else {
    SoftmaxGrad<float>(isa_, out, y, grad, dim, log).run();
  }
}

}  // namespace wick::cpu
