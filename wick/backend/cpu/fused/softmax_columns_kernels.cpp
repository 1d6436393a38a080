#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/reduce/row_sum.h"
#include "wick/backend/cpu/storage_type.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Vectors of the compute type in a row of a strip of columns.
constexpr int kVectors = kSoftmaxColumnBytes / kVectorBytes;

template <class T>
using Strip = Vec<Compute<T>>[kVectors];

/// Elements [0, cols) of a row in the compute type; lanes beyond are +0.
template <class T>
WICK_FN void load_strip(const T* x, int64_t cols, Strip<T>& to) {
  constexpr int kWidth = kStep<T>;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t left = cols - v * kWidth;
    to[v] = left >= kWidth ? load(x + v * kWidth)
            : left > 0     ? load_partial(x + v * kWidth, static_cast<int>(left))
                           : Vec<Compute<T>>{};
  }
}

template <class T>
WICK_FN void store_strip(const Strip<T>& from, int64_t cols, T* y) {
  constexpr int kWidth = kStep<T>;
  for (int v = 0; v < kVectors; v += 2) {
    const int64_t left = cols - v * kWidth;
    if (left >= 2 * kWidth) {
      store_pair<false>(y + v * kWidth, from[v], from[v + 1]);
      continue;
    }
    alignas(kVectorBytes) T lanes[2 * kWidth];
    store_pair<false>(lanes, from[v], from[v + 1]);
    for (int64_t i = 0; i < left; ++i) y[v * kWidth + i] = lanes[i];
  }
}

/// One vector of columns of a chunk of rows: replaces elements by their difference from the
/// maximum, or with `keeps` by its exponential, and returns the sum of the exponentials in the
/// order of chunk_sum.
template <class A, class V>
WICK_FN V exp_chunk_of_columns(A* e, int64_t step, int64_t n, V m, bool keeps) {
  V acc[kSumAccumulators];
  for (int64_t i = 0; i < kSumAccumulators; ++i) acc[i] = V{};
  for (int64_t i = 0; i < n; ++i, e += step) {
    const V d = load(e) - m;
    const V y = exp_lanes<A>(d);
    store(e, keeps ? y : d);
    acc[i % kSumAccumulators] = acc[i % kSumAccumulators] + y;
  }
  return sum_tree(static_cast<const V*>(acc));
}

// y = exp(x - max) / sum, or its logarithm, of neighbouring columns. Index map: lanes are columns;
// a strip of them is copied in the compute type to `kept`, which stays in a cache. Order: that of
// softmax (norm_kernels.cpp). Bytes moved: x read and y written once.
template <class T>
void softmax_columns(const RowsIn& xs, const RowsOut& ys, int64_t cols, int64_t n, bool log,
                     void* scratch) {
  using A = Compute<T>;
  using V = Vec<Compute<T>>;
  constexpr int kWidth = kStep<T>;
  constexpr int64_t kCols = kVectors * kWidth;
  const auto* x = static_cast<const T*>(xs.data);
  auto* y = static_cast<T*>(ys.data);
  auto* kept = static_cast<A*>(scratch);
  Strip<T> m;
  for (V& v : m) v = splat(-static_cast<A>(__builtin_huge_val()));
  for (int64_t i = 0; i < n; ++i, x += xs.step) {
    Strip<T> line;
    load_strip(x, cols, line);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      m[v] = max(line[v], m[v]);
      store(kept + i * kCols + v * kWidth, line[v]);
    }
  }
  Strip<T> last;
  for (int v = 0; v < kVectors; ++v) {
    ChunkSums<V> sums;
    for (int64_t i = 0; i < n; i += kSumChunk) {
      sums.add(exp_chunk_of_columns(kept + i * kCols + v * kWidth, kCols, min(n - i, kSumChunk),
                                    m[v], !log));
    }
    last[v] = log ? log_lanes<A>(sums.total()) : splat(A{1}) / sums.total();
  }
  for (int64_t i = 0; i < n; ++i, y += ys.step) {
    Strip<T> line;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V e = load(kept + i * kCols + v * kWidth);
      line[v] = log ? e - last[v] : e * last[v];
    }
    store_strip(line, cols, y);
  }
}

template <DType kDType>
constexpr void add_dtype(SoftmaxColumnsKernels& table) {
  if constexpr (!is_block(kDType)) {
    if constexpr (info(Op::softmax).dtypes.contains(kDType)) {
      table.run[static_cast<int>(kDType)] = softmax_columns<Storage<kDType>>;
    }
  }
}

constexpr SoftmaxColumnsKernels make_table() {
  SoftmaxColumnsKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr SoftmaxColumnsKernels softmax_columns_kernels = make_table();
static_assert(complete(softmax_columns_kernels.run, Op::softmax));
static_assert(complete(softmax_columns_kernels.run, Op::log_softmax));

}  // namespace wick::cpu::WICK_ISA
