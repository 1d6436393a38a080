#include "wick/backend/cpu/reduce/reduce_kernels.h"

#include "wick/backend/cpu/lanes.h"

// Partial results of reductions: rows (a chunk of one output) and columns (a chunk of many
// neighbouring outputs). Both follow the row sum of docs/design/numerics/reduce.md, so that the bits
// don't depend on how a tensor lies in memory. Bytes moved: each element once.

namespace wick::cpu::WICK_ISA {
namespace {

template <class T>
inline constexpr bool kIsFloat = math::kSame<T, float> || math::kSame<T, double> ||
                                 math::kSame<T, math::f16> || math::kSame<T, math::bf16> ||
                                 math::kSame<T, math::f8e4m3>;

/// Integers sum in an unsigned type of at least their width: wrapping then commutes with the sum.
template <class T, bool = kIsFloat<T>>
struct PartialSum {
  using Type = AccOf<T>;
};
template <class T>
struct PartialSum<T, false> {
  using Type = uint32_t;
};
template <>
struct PartialSum<int64_t, false> {
  using Type = uint64_t;
};
template <class T, bool = kIsFloat<T>>
struct PartialBest {
  using Type = AccOf<T>;
};
template <class T>
struct PartialBest<T, false> {
  using Type = T;
};

template <class P, class T>
WICK_FN P to_partial(T x) {
  if constexpr (kIsFloat<T>) {
    return widen(x);
  } else {
    return static_cast<P>(x);
  }
}

// ---- The three operations on partial results. ----

struct Sum {
  template <class T>
  using Partial = typename PartialSum<T>::Type;
  template <class P>
  static WICK_FN P join(P a, P b) {
    return a + b;
  }
};

struct Max {
  template <class T>
  using Partial = typename PartialBest<T>::Type;
  template <class P>
  static WICK_FN P join(P a, P b) {
    if constexpr (kIsFloat<P>) {
      return math::maximum(a, b);
    } else {
      return b > a ? b : a;
    }
  }
};

struct Min {
  template <class T>
  using Partial = typename PartialBest<T>::Type;
  template <class P>
  static WICK_FN P join(P a, P b) {
    if constexpr (kIsFloat<P>) {
      return math::minimum(a, b);
    } else {
      return b < a ? b : a;
    }
  }
};

// ---- Rows. ----

template <class T>
WICK_FN const T* contiguous(const T* x, int64_t step, int64_t n, T* scratch) {
  if (step == 1) return x;
  for (int64_t i = 0; i < n; ++i) scratch[i] = x[i * step];
  return scratch;
}

/// A chunk's sum: the row sum's order for floats; integers have only one sum.
template <class T>
void sum_chunk(const void* data, int64_t step, int64_t n, void* result) {
  using P = Sum::Partial<T>;
  T scratch[kReduceChunk];
  const T* x = contiguous(static_cast<const T*>(data), step, n, scratch);
  P sum;
  if constexpr (kIsFloat<T>) {
    sum = chunk_sum(x, n, [](auto v) { return v; });
  } else {
    sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<P>(x[i]);
  }
  *static_cast<P*>(result) = sum;
}

/// A chunk's largest or smallest element: exact, so in any order.
template <class Op, class T>
void best_chunk(const void* data, int64_t step, int64_t n, void* result) {
  using P = typename Op::template Partial<T>;
  constexpr int kAcross = 4 * kVectorBytes / static_cast<int>(sizeof(P));
  T scratch[kReduceChunk];
  const T* x = contiguous(static_cast<const T*>(data), step, n, scratch);
  P best[kAcross];
  const P first = to_partial<P>(*static_cast<const T*>(data));
  for (int j = 0; j < kAcross; ++j) best[j] = first;
  int64_t i = 0;
  for (; i + kAcross <= n; i += kAcross) {
    for (int j = 0; j < kAcross; ++j) best[j] = Op::join(best[j], to_partial<P>(x[i + j]));
  }
  P b = first;
  for (int j = 0; j < kAcross; ++j) b = Op::join(b, best[j]);
  for (; i < n; ++i) b = Op::join(b, to_partial<P>(x[i]));
  *static_cast<P*>(result) = b;
}

// ---- Columns: a buffer element is a column's partial result. ----

/// into[i] = into[i] (op) row0[i] (op) row1[i] ..., left to right, for R rows at once: that keeps
/// several streams from memory under way.
template <class Op, int R, class T, class P>
WICK_FN void join_rows(P* __restrict into, const T* const* row, int64_t width) {
  for (int64_t i = 0; i < width; ++i) {
    P v = into[i];
    for (int r = 0; r < R; ++r) v = Op::join(v, to_partial<P>(row[r][i]));
    into[i] = v;
  }
}

/// Joins rows first, first + stride, ... below n of a chunk to `into`, in that order.
template <class Op, class T, class P>
WICK_FN void join_all_rows(P* __restrict into, const T* x, const int64_t* rows, int64_t first,
                           int64_t stride, int64_t n, int64_t width) {
  int64_t c = first;
  for (; c + 3 * stride < n; c += 4 * stride) {
    const T* row[4];
    for (int r = 0; r < 4; ++r) row[r] = x + rows[c + r * stride];
    join_rows<Op, 4>(into, row, width);
  }
  for (; c < n; c += stride) {
    const T* row = x + rows[c];
    join_rows<Op, 1>(into, &row, width);
  }
}

template <class T>
struct ColumnSum {
  using P = Sum::Partial<T>;
  const T* x;
  const int64_t* rows;
  int64_t n, width;
  P buffer[7][kReduceColumns];

  /// Accumulator `a` of every column: rows a, a + 128, ... from +0 on. False if it has none.
  WICK_FN bool accumulator(int64_t a, P* into) const {
    if (a >= n) return false;
    for (int64_t i = 0; i < width; ++i) into[i] = P{0};
    join_all_rows<Sum>(into, x, rows, a, kSumAccumulators, n, width);
    return true;
  }

  WICK_FN void add(P* __restrict into, const P* __restrict from) const {
    for (int64_t i = 0; i < width; ++i) into[i] = into[i] + from[i];
  }

  /// Lane l: (a0 + a1) + (a2 + a3) of its accumulators. Absent ones are +0 and change nothing.
  __attribute__((noinline)) bool lane(int64_t l, P* into) {
    P *a = buffer[5], *b = buffer[6];
    if (!accumulator(4 * l, into)) return false;
    if (accumulator(4 * l + 1, a)) add(into, a);
    if (!accumulator(4 * l + 2, a)) return true;
    if (accumulator(4 * l + 3, b)) add(a, b);
    add(into, a);
    return true;
  }

  /// The xor tree, depth first: the node of the lanes l, l + distance, l + 2 distance, ...
  __attribute__((noinline)) bool node(int64_t l, int64_t distance, int level, P* into) {
    if (distance == 32) return lane(l, into);
    if (!node(l, 2 * distance, level + 1, into)) return false;
    if (node(l + distance, 2 * distance, level + 1, buffer[level])) add(into, buffer[level]);
    return true;
  }
};

template <class T>
void sum_columns(const void* data, const int64_t* rows, int64_t n, int64_t width, void* results) {
  using P = Sum::Partial<T>;
  auto* sums = static_cast<P*>(results);
  if constexpr (kIsFloat<T>) {
    ColumnSum<T> columns;
    columns.x = static_cast<const T*>(data);
    columns.rows = rows;
    columns.n = n;
    columns.width = width;
    columns.node(0, 1, 0, sums);
  } else {
    for (int64_t i = 0; i < width; ++i) sums[i] = 0;
    join_all_rows<Sum>(sums, static_cast<const T*>(data), rows, 0, 1, n, width);
  }
}

template <class Op, class T>
void best_columns(const void* data, const int64_t* rows, int64_t n, int64_t width, void* results) {
  using P = typename Op::template Partial<T>;
  const auto* x = static_cast<const T*>(data);
  auto* best = static_cast<P*>(results);
  for (int64_t i = 0; i < width; ++i) best[i] = to_partial<P>(x[rows[0] + i]);
  join_all_rows<Op>(best, x, rows, 1, 1, n, width);
}

template <class Op, class T>
void join(void* into, const void* from, int64_t count) {
  using P = typename Op::template Partial<T>;
  for (int64_t i = 0; i < count; ++i) {
    P* a = static_cast<P*>(into) + i;
    *a = Op::join(*a, static_cast<const P*>(from)[i]);
  }
}

template <class Op, class T>
void finish(const void* results, int64_t count, double divisor, void* y, int64_t step) {
  using P = typename Op::template Partial<T>;
  for (int64_t i = 0; i < count; ++i) {
    const P r = static_cast<const P*>(results)[i];
    T* to = static_cast<T*>(y) + i * step;
    if constexpr (kIsFloat<T>) {
      *to = narrow<T>(divisor == 1.0 ? r : r / static_cast<P>(divisor));
    } else {
      *to = static_cast<T>(r);
    }
  }
}

// ---- Index of the largest or smallest. ----

template <class T, int = sizeof(T) == 8>
struct KeyOf {
  using Type = uint32_t;
};
template <class T>
struct KeyOf<T, 1> {
  using Type = uint64_t;
};

/// An unsigned number that is larger where x is better: NaN best of all, -0 below +0.
template <bool kLargest, class T>
WICK_FN typename KeyOf<T>::Type key(T x) {
  using K = typename KeyOf<T>::Type;
  constexpr K kTop = static_cast<K>(K{1} << (8 * sizeof(K) - 1));
  if constexpr (kIsFloat<T>) {
    const auto value = widen(x);
    const K bits = __builtin_bit_cast(K, value);
    const K ordered = (bits & kTop) != 0 ? static_cast<K>(~bits) : static_cast<K>(bits | kTop);
    return value != value ? static_cast<K>(~K{0}) : kLargest ? ordered : static_cast<K>(~ordered);
  } else {
    const K bits = static_cast<K>(x);
    const K ordered = static_cast<T>(-1) < T{0} ? static_cast<K>(bits ^ kTop) : bits;
    return kLargest ? ordered : static_cast<K>(~ordered);
  }
}

/// Blocks of 128 give their best key; only the first block with the best of all is searched.
template <bool kLargest, class T>
WICK_FN int64_t arg_row(const T* x, int64_t step, int64_t n) {
  using K = typename KeyOf<T>::Type;
  constexpr int64_t kBlock = 128;
  T scratch[kBlock];
  K best = 0;
  int64_t found = -1;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t length = n - start < kBlock ? n - start : kBlock;
    const T* run = contiguous(x + start * step, step, length, scratch);
    K top = 0;
    if (length == kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) {
        const K k = key<kLargest>(run[i]);
        top = k > top ? k : top;
      }
    } else {
      for (int64_t i = 0; i < length; ++i) {
        const K k = key<kLargest>(run[i]);
        top = k > top ? k : top;
      }
    }
    if (top > best || found < 0) best = top, found = start;
  }
  while (key<kLargest>(x[found * step]) != best) ++found;
  return found;
}

template <class T>
int64_t arg(const void* x, int64_t step, int64_t n, bool largest) {
  return largest ? arg_row<true>(static_cast<const T*>(x), step, n)
                 : arg_row<false>(static_cast<const T*>(x), step, n);
}

template <bool kLargest, class T>
WICK_FN void arg_tile(const T* x, int64_t row_step, int64_t n, int64_t width, uint32_t* y,
                      int64_t y_step) {
  using K = typename KeyOf<T>::Type;
  K best[kReduceColumns], index[kReduceColumns];
  for (int64_t i = 0; i < width; ++i) best[i] = key<kLargest>(x[i]), index[i] = 0;
  for (int64_t c = 1; c < n; ++c) {
    x += row_step;
    for (int64_t i = 0; i < width; ++i) {
      const K k = key<kLargest>(x[i]);
      const bool better = k > best[i];
      best[i] = better ? k : best[i];
      index[i] = better ? static_cast<K>(c) : index[i];
    }
  }
  for (int64_t i = 0; i < width; ++i) y[i * y_step] = static_cast<uint32_t>(index[i]);
}

template <class T>
void arg_columns(const void* x, int64_t row_step, int64_t n, int64_t width, bool largest,
                 uint32_t* y, int64_t y_step) {
  if (largest) {
    arg_tile<true>(static_cast<const T*>(x), row_step, n, width, y, y_step);
  } else {
    arg_tile<false>(static_cast<const T*>(x), row_step, n, width, y, y_step);
  }
}

}  // namespace

// In the order of dtypes.def.
#define WICK_EACH_DTYPE(f)                                                                \
  {                                                                                       \
    f(uint8_t), f(uint32_t), f(int16_t), f(int32_t), f(int64_t), f(math::bf16),           \
        f(math::f16), f(float), f(double), f(math::f8e4m3)                                \
  }
#define WICK_SUM(T) sum_chunk<T>
#define WICK_COLUMNS_SUM(T) sum_columns<T>
#define WICK_ARG_ROW(T) arg<T>
#define WICK_ARG_COLUMNS(T) arg_columns<T>
#define WICK_BEST_MAX(T) best_chunk<Max, T>
#define WICK_BEST_MIN(T) best_chunk<Min, T>
#define WICK_COLUMNS_MAX(T) best_columns<Max, T>
#define WICK_COLUMNS_MIN(T) best_columns<Min, T>
#define WICK_JOIN_SUM(T) join<Sum, T>
#define WICK_JOIN_MAX(T) join<Max, T>
#define WICK_JOIN_MIN(T) join<Min, T>
#define WICK_FINISH_SUM(T) finish<Sum, T>
#define WICK_FINISH_BEST(T) finish<Max, T>

extern const ReduceKernels reduce_kernels;
const ReduceKernels reduce_kernels = {
    .chunk = {WICK_EACH_DTYPE(WICK_SUM), WICK_EACH_DTYPE(WICK_BEST_MAX),
              WICK_EACH_DTYPE(WICK_BEST_MIN)},
    .columns = {WICK_EACH_DTYPE(WICK_COLUMNS_SUM), WICK_EACH_DTYPE(WICK_COLUMNS_MAX),
                WICK_EACH_DTYPE(WICK_COLUMNS_MIN)},
    .join = {WICK_EACH_DTYPE(WICK_JOIN_SUM), WICK_EACH_DTYPE(WICK_JOIN_MAX),
             WICK_EACH_DTYPE(WICK_JOIN_MIN)},
    .finish = {WICK_EACH_DTYPE(WICK_FINISH_SUM), WICK_EACH_DTYPE(WICK_FINISH_BEST)},
    .arg = WICK_EACH_DTYPE(WICK_ARG_ROW),
    .arg_columns = WICK_EACH_DTYPE(WICK_ARG_COLUMNS),
};

}  // namespace wick::cpu::WICK_ISA
