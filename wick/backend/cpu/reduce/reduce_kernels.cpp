#include "wick/backend/cpu/reduce/reduce_kernels.h"

#include <type_traits>

#include "wick/backend/cpu/reduce/row_sum.h"
#include "wick/backend/cpu/storage_type.h"
#include "wick/math/reducers.h"

// Partial results of reductions, of rows (a chunk of one output) and of columns (a chunk of many
// neighbouring outputs). Both have the order of docs/design/numerics/reduce.md, so that the bits
// don't depend on the layout of a tensor. Bytes moved: each element once.

namespace wick::cpu::WICK_ISA {
namespace {

template <class T>
inline constexpr bool kIsFloat =
    math::kSame<T, float> || math::kSame<T, double> || math::kSame<T, math::f16> ||
    math::kSame<T, math::bf16> || math::kSame<T, math::f8e4m3>;

/// Integers are summed in an unsigned type of at least their width, modulo 2^bits.
template <class T, bool = kIsFloat<T>>
struct PartialSum {
  using Type = Compute<T>;
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
struct PartialMinMax {
  using Type = Compute<T>;
};
template <class T>
struct PartialMinMax<T, false> {
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

// ---- The operations on partial results. ----

/// A reducer of wick/math, whose order of operations matters.
template <class R>
struct Ordered : R {
  template <class T>
  using Partial = typename PartialSum<T>::Type;
  /// The contribution of an element.
  template <class P, class T>
  static WICK_FN P part(T x) {
    return R::map(to_partial<P>(x));
  }
};

/// Max and min: any order of operations gives the same result.
struct AnyOrder {
  template <class P>
  static WICK_FN P finish(P a) {
    return a;
  }
};

struct Max : AnyOrder {
  static constexpr bool kLargest = true;
  template <class T>
  using Partial = typename PartialMinMax<T>::Type;
  template <class P>
  static WICK_FN P combine(P a, P b) {
    if constexpr (kIsFloat<P>) {
      return math::maximum(a, b);
    } else {
      return b > a ? b : a;
    }
  }
};

struct Min : AnyOrder {
  static constexpr bool kLargest = false;
  template <class T>
  using Partial = typename PartialMinMax<T>::Type;
  template <class P>
  static WICK_FN P combine(P a, P b) {
    if constexpr (kIsFloat<P>) {
      return math::minimum(a, b);
    } else {
      return b < a ? b : a;
    }
  }
};

// ---- Ordered integers in place of floats: one instruction then compares. ----

template <class T, bool = kIsFloat<T>>
struct RankOf {
  using Type = T;
};
template <class T>
struct RankOf<T, true> {
  using Type =
      std::conditional_t<sizeof(T) == 1, int8_t,
                         std::conditional_t<sizeof(T) == 2, int16_t,
                                            std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>>;
};
template <class T>
using Rank = typename RankOf<T>::Type;

/// Integers rank as themselves. Floats rank by their bits, with the magnitude bits of negative
/// numbers inverted: -0 ranks below +0, NaN beyond the infinity of its sign.
template <class T>
WICK_FN Rank<T> rank_of(T x) {
  if constexpr (kIsFloat<T>) {
    using R = Rank<T>;
    constexpr int kSign = 8 * static_cast<int>(sizeof(R)) - 1;
    constexpr auto kMagnitude = static_cast<R>(__INT64_MAX__ >> (63 - kSign));
    R bits;
    if constexpr (sizeof(T) < 4) {
      bits = static_cast<R>(x.bits);  // read as a member: GCC doesn't vectorise a bit cast of a
                                      // structure
    } else {
      bits = __builtin_bit_cast(R, x);
    }
    return static_cast<R>(bits ^ ((bits >> kSign) & kMagnitude));
  } else {
    return x;
  }
}

/// Ranks beyond this one, or below its complement, are NaN.
template <class T>
inline constexpr Rank<T> kLastRank = 0;
template <>
inline constexpr int8_t kLastRank<math::f8e4m3> = 0x7e;
template <>
inline constexpr int16_t kLastRank<math::bf16> = 0x7f80;
template <>
inline constexpr int16_t kLastRank<math::f16> = 0x7c00;
template <>
inline constexpr int32_t kLastRank<float> = 0x7f800000;
template <>
inline constexpr int64_t kLastRank<double> = 0x7ff0000000000000;

template <class T>
WICK_FN bool is_nan_rank(Rank<T> rank) {
  if constexpr (kIsFloat<T>) {
    return rank > kLastRank<T> || rank < static_cast<Rank<T>>(~kLastRank<T>);
  } else {
    return false;
  }
}

/// The largest or smallest of some elements as a partial result, from their highest and lowest
/// ranks.
template <class Op, class T>
WICK_FN typename Op::template Partial<T> min_max_of(Rank<T> high, Rank<T> low) {
  if constexpr (kIsFloat<T>) {
    using P = typename Op::template Partial<T>;
    const Rank<T> best = Op::kLargest ? high : low;
    const auto bits = rank_of<T>(__builtin_bit_cast(T, best));  // its own inverse
    const P value = widen(__builtin_bit_cast(T, bits));
    const bool nan = is_nan_rank<T>(high) || is_nan_rank<T>(low);
    return nan ? static_cast<P>(__builtin_nan("")) : value;
  } else {
    return Op::kLargest ? high : low;
  }
}

// ---- Rows. ----

template <class T>
WICK_FN const T* contiguous(const T* x, int64_t step, int64_t n, T* scratch) {
  if (step == 1) return x;
  for (int64_t i = 0; i < n; ++i) scratch[i] = x[i * step];
  return scratch;
}

/// A chunk in the order of the row sum, with the reducer's identity in place of 0. Integers give
/// the same result in any order.
template <class Op, class T>
void ordered_chunk(const void* data, int64_t step, int64_t n, void* result) {
  using P = typename Op::template Partial<T>;
  T scratch[kSumChunk];
  const T* x = contiguous(static_cast<const T*>(data), step, n, scratch);
  if constexpr (std::is_same_v<Op, Ordered<math::Sum>>) {
    P sum;
    if constexpr (kIsFloat<T>) {
      sum = chunk_sum(x, n, [](auto v) { return v; });
    } else {
      sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<P>(x[i]);
    }
    *static_cast<P*>(result) = sum;
  } else {
    P acc[kSumAccumulators];
    for (P& a : acc) a = Op::template identity<P>();
    int64_t i = 0;
    for (; i + kSumAccumulators <= n; i += kSumAccumulators) {
      for (int64_t a = 0; a < kSumAccumulators; ++a) {
        acc[a] = Op::combine(acc[a], Op::template part<P>(x[i + a]));
      }
    }
    for (int64_t a = 0; i + a < n; ++a)
      acc[a] = Op::combine(acc[a], Op::template part<P>(x[i + a]));
    P lane[32];
    for (int l = 0; l < 32; ++l) {
      lane[l] = Op::combine(Op::combine(acc[4 * l], acc[4 * l + 1]),
                            Op::combine(acc[4 * l + 2], acc[4 * l + 3]));
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      for (int l = 0; l < distance; ++l) lane[l] = Op::combine(lane[l], lane[l + distance]);
    }
    *static_cast<P*>(result) = lane[0];
  }
}

/// The largest or smallest element of a chunk, in any order. For floats both are computed, because
/// NaN ranks at either end.
template <class Op, class T>
void min_max_chunk(const void* data, int64_t step, int64_t n, void* result) {
  using R = Rank<T>;
  constexpr int kAcross = 4 * kVectorBytes / static_cast<int>(sizeof(R));
  T scratch[kSumChunk];
  const T* x = contiguous(static_cast<const T*>(data), step, n, scratch);
  R high[kAcross], low[kAcross];
  const R first = rank_of(*static_cast<const T*>(data));
  for (int j = 0; j < kAcross; ++j) high[j] = low[j] = first;
  int64_t i = 0;
  for (; i + kAcross <= n; i += kAcross) {
    for (int j = 0; j < kAcross; ++j) {
      const R r = rank_of(x[i + j]);
      high[j] = r > high[j] ? r : high[j];
      low[j] = r < low[j] ? r : low[j];
    }
  }
  R most = first, least = first;
  for (int j = 0; j < kAcross; ++j) {
    most = high[j] > most ? high[j] : most;
    least = low[j] < least ? low[j] : least;
  }
  for (; i < n; ++i) {
    const R r = rank_of(x[i]);
    most = r > most ? r : most;
    least = r < least ? r : least;
  }
  *static_cast<typename Op::template Partial<T>*>(result) = min_max_of<Op, T>(most, least);
}

// ---- Columns: a buffer element is a column's partial result. ----

/// Prefetches a row: hardware prefetchers don't follow pieces of rows that are a few kilobytes
/// apart.
template <class T>
WICK_FN void prefetch_row(const T* row, int64_t width) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t i = 0; i < width; i += kLine) __builtin_prefetch(row + i, 0, 2);
}
constexpr int64_t kAhead = 4;  // rows combined at once, and prefetched ahead

/// into[i] = into[i] + row0[i] + row1[i] ..., left to right, for R rows at once, or the operation
/// of another reducer. R rows keep several loads from memory in flight.
template <class Op, int R, class T, class P>
WICK_FN void add_rows(P* __restrict into, const T* x, const int64_t* rows, int64_t width) {
  const T* row[R];
  for (int r = 0; r < R; ++r) row[r] = x + rows[r];
  for (int64_t i = 0; i < width; ++i) {
    P v = into[i];
    for (int r = 0; r < R; ++r) v = Op::combine(v, Op::template part<P>(row[r][i]));
    into[i] = v;
  }
}

/// Calls each(several, rows) for the next `count` of `left` rows, four or one at a time, and
/// prefetches the rows behind them.
template <class T, class Each>
WICK_FN void by_rows(const T* x, const int64_t* rows, int64_t count, int64_t left, int64_t width,
                     const Each& each) {
  for (int64_t c = 0; c < count;) {
    for (int64_t r = c + kAhead; r < min(left, c + 2 * kAhead); ++r) {
      prefetch_row(x + rows[r], width);
    }
    const bool several = c + kAhead <= count;
    each(several, rows + c);
    c += several ? kAhead : 1;
  }
}

/// Adds the next `count` of `left` rows to `into`, in their order.
template <class Op, class T, class P>
WICK_FN void add_all_rows(P* __restrict into, const T* x, const int64_t* rows, int64_t count,
                          int64_t left, int64_t width) {
  by_rows(x, rows, count, left, width, [&](bool several, const int64_t* next) {
    if (several) {
      add_rows<Op, kAhead>(into, x, next, width);
    } else {
      add_rows<Op, 1>(into, x, next, width);
    }
  });
}

template <class Op, class T>
struct ColumnSum {
  using P = typename Op::template Partial<T>;
  const T* x;
  int64_t n, width;
  P buffer[7][kReduceColumns];
  /// Rows in the order in which the tree uses them, and how many it has used.
  int64_t order[kSumChunk];
  int64_t done = 0;

  ColumnSum(const T* first, const int64_t* rows, int64_t count, int64_t columns)
      : x(first), n(count), width(columns) {
    int64_t filled = 0;
    for (int i = 0; i < 32; ++i) {
      const int l = (i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | (i & 16) >> 4;
      for (int64_t a = 4 * l; a < 4 * l + 4; ++a) {
        for (int64_t c = a; c < n; c += kSumAccumulators) order[filled++] = rows[c];
      }
    }
  }

  /// Accumulator `a` of every column: the identity, then rows a, a + 128, ... False if there are
  /// none.
  WICK_FN bool accumulator(int64_t a, P* into) {
    if (a >= n) return false;
    const int64_t count = (n - a + kSumAccumulators - 1) / kSumAccumulators;
    for (int64_t i = 0; i < width; ++i) into[i] = Op::template identity<P>();
    add_all_rows<Op>(into, x, order + done, count, n - done, width);
    done += count;
    return true;
  }

  WICK_FN void add(P* __restrict into, const P* __restrict from) const {
    for (int64_t i = 0; i < width; ++i) into[i] = Op::combine(into[i], from[i]);
  }

  /// Lane l: (a0 + a1) + (a2 + a3) of its accumulators. Absent accumulators are the identity and
  /// change nothing.
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

template <class Op, class T>
void ordered_columns(const void* data, const int64_t* rows, int64_t n, int64_t width,
                     void* results) {
  using P = typename Op::template Partial<T>;
  auto* sums = static_cast<P*>(results);
  if constexpr (kIsFloat<T>) {
    ColumnSum<Op, T> columns(static_cast<const T*>(data), rows, n, width);
    columns.node(0, 1, 0, sums);
  } else {
    for (int64_t i = 0; i < width; ++i) sums[i] = Op::template identity<P>();
    add_all_rows<Op>(sums, static_cast<const T*>(data), rows, n, n, width);
  }
}

/// Updates high[i] and low[i] with the ranks of R rows.
template <int R, class T>
WICK_FN void rank_rows(Rank<T>* __restrict high, Rank<T>* __restrict low, const T* x,
                       const int64_t* rows, int64_t width) {
  const T* row[R];
  for (int r = 0; r < R; ++r) row[r] = x + rows[r];
  for (int64_t i = 0; i < width; ++i) {
    Rank<T> most = high[i], least = low[i];
    for (int r = 0; r < R; ++r) {
      const Rank<T> rank = rank_of(row[r][i]);
      most = rank > most ? rank : most;
      least = rank < least ? rank : least;
    }
    high[i] = most;
    low[i] = least;
  }
}

/// The highest and lowest ranks of the columns of the next `count` of `left` rows.
template <class T>
WICK_FN void rank_columns(Rank<T>* __restrict high, Rank<T>* __restrict low, const T* x,
                          const int64_t* rows, int64_t count, int64_t left, int64_t width) {
  for (int64_t i = 0; i < width; ++i) high[i] = low[i] = rank_of(x[rows[0] + i]);
  by_rows(x, rows + 1, count - 1, left - 1, width, [&](bool several, const int64_t* next) {
    if (several) {
      rank_rows<kAhead>(high, low, x, next, width);
    } else {
      rank_rows<1>(high, low, x, next, width);
    }
  });
}

template <class Op, class T>
void min_max_columns(const void* data, const int64_t* rows, int64_t n, int64_t width,
                     void* results) {
  auto* best = static_cast<typename Op::template Partial<T>*>(results);
  Rank<T> high[kMinMaxColumns], low[kMinMaxColumns];
  rank_columns(high, low, static_cast<const T*>(data), rows, n, n, width);
  for (int64_t i = 0; i < width; ++i) best[i] = min_max_of<Op, T>(high[i], low[i]);
}

template <class Op, class T>
void combine(void* into, const void* from, int64_t count) {
  using P = typename Op::template Partial<T>;
  for (int64_t i = 0; i < count; ++i) {
    P* a = static_cast<P*>(into) + i;
    *a = Op::combine(*a, static_cast<const P*>(from)[i]);
  }
}

template <class Op, class T>
void finish(const void* results, int64_t count, double divisor, void* y, int64_t step) {
  using P = typename Op::template Partial<T>;
  for (int64_t i = 0; i < count; ++i) {
    const P r = Op::finish(static_cast<const P*>(results)[i]);
    T* to = static_cast<T*>(y) + i * step;
    if constexpr (kIsFloat<T>) {
      *to = narrow<T>(divisor == 1.0 ? r : r / static_cast<P>(divisor));
    } else {
      *to = static_cast<T>(r);
    }
  }
}

/// The partial result of no elements.
template <class Op, class T>
void identity(void* result) {
  using P = typename Op::template Partial<T>;
  *static_cast<P*>(result) = Op::template identity<P>();
}

// ---- arg_reduce. The highest and lowest ranks of each block of elements are computed, and only
// the
// ---- first block with the wanted one is searched for its index.

/// What an arg_reduce compares: a rank, where NaN of either sign is above all others and equal to
/// itself.
template <class T>
struct ArgKey {
  Rank<T> rank;
  bool nan;
  WICK_FN bool operator>(const ArgKey& other) const {
    return !other.nan && (nan || rank > other.rank);
  }
  WICK_FN bool operator==(const ArgKey& other) const {
    return nan == other.nan && (nan || rank == other.rank);
  }
};

/// The key of a block. The lowest rank is inverted if the smallest element is wanted.
template <bool kLargest, class T>
WICK_FN ArgKey<T> arg_key(Rank<T> high, Rank<T> low) {
  return {kLargest ? high : static_cast<Rank<T>>(~low),
          is_nan_rank<T>(high) || is_nan_rank<T>(low)};
}
template <bool kLargest, class T>
WICK_FN ArgKey<T> arg_key(T x) {
  return arg_key<kLargest, T>(rank_of(x), rank_of(x));
}

template <bool kLargest, class T>
WICK_FN int64_t arg_row(const T* x, int64_t step, int64_t n) {
  constexpr int64_t kBlock = 256;
  T scratch[kBlock];
  ArgKey<T> best{};
  int64_t found = -1;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t length = min(n - start, kBlock);
    const T* run = contiguous(x + start * step, step, length, scratch);
    Rank<T> high = rank_of(x[start * step]), low = high;
    const auto meet = [&](int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const Rank<T> r = rank_of(run[i]);
        high = r > high ? r : high;
        low = r < low ? r : low;
      }
    };
    if (length == kBlock) {
      meet(kBlock);  // a constant size, which the compiler unrolls
    } else {
      meet(length);
    }
    const ArgKey<T> here = arg_key<kLargest, T>(high, low);
    if (found < 0 || here > best) best = here, found = start;
  }
  while (!(arg_key<kLargest>(x[found * step]) == best)) ++found;
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
  constexpr int64_t kBlock = 32;
  Rank<T> high[kMinMaxColumns], low[kMinMaxColumns];
  ArgKey<T> best[kMinMaxColumns];
  uint32_t found[kMinMaxColumns];
  for (int64_t start = 0; start < n; start += kBlock) {
    int64_t rows[kBlock + kAhead];
    const int64_t left = min(n - start, kBlock + kAhead);
    for (int64_t r = 0; r < left; ++r) rows[r] = (start + r) * row_step;
    rank_columns(high, low, x, rows, min(left, kBlock), left, width);
    for (int64_t i = 0; i < width; ++i) {
      const ArgKey<T> here = arg_key<kLargest, T>(high[i], low[i]);
      if (start == 0 || here > best[i]) best[i] = here, found[i] = static_cast<uint32_t>(start);
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    while (!(arg_key<kLargest>(x[found[i] * row_step + i]) == best[i])) ++found[i];
    y[i * y_step] = found[i];
  }
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

template <DType kDType>
constexpr void add_dtype(ReduceKernels& table) {
  if constexpr (!is_block(kDType)) {
    using T = Storage<kDType>;
    constexpr auto d = static_cast<int>(kDType);
#define WICK_REDUCER(op, reducer)                          \
  {                                                        \
    using R = Ordered<math::reducer>;                      \
    constexpr auto kind = static_cast<int>(Reduction::op); \
    table.chunk[kind][d] = ordered_chunk<R, T>;            \
    table.columns[kind][d] = ordered_columns<R, T>;        \
    table.combine[kind][d] = combine<R, T>;                \
    table.finish[kind][d] = finish<R, T>;                  \
    table.identity[kind][d] = identity<R, T>;              \
  }
    WICK_REDUCERS(WICK_REDUCER)
#undef WICK_REDUCER
    const auto add_min_max = [&]<class Op>(Op, Reduction of) {
      const auto kind = static_cast<int>(of);
      table.chunk[kind][d] = min_max_chunk<Op, T>;
      table.columns[kind][d] = min_max_columns<Op, T>;
      table.combine[kind][d] = combine<Op, T>;
      table.finish[kind][d] = finish<Op, T>;
    };
    add_min_max(Max{}, Reduction::max);
    add_min_max(Min{}, Reduction::min);
    table.arg[d] = arg<T>;
    table.arg_columns[d] = arg_columns<T>;
  }
}

constexpr ReduceKernels make_table() {
  ReduceKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr ReduceKernels reduce_kernels = make_table();
static_assert(complete(reduce_kernels));

}  // namespace wick::cpu::WICK_ISA
