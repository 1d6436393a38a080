// Cumulative sums. y[i] = offset + local: elements form groups of 16, which are scanned with
// doubling distances; the sums of 16 groups are scanned in the same way, and so are the sums of 16
// of those; chunks of 4096 follow one after another (docs/design/numerics/reduce.md). Integers wrap
// and are added one after another.
//
// Rows: a vector holds neighbours of a row. Columns: a vector holds neighbouring columns, 16 rows
// of it in registers. Reads and writes an element once.

#include "wick/backend/cpu/scan/scan_kernels.h"

#include <type_traits>
#include <utility>

#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/storage_type.h"
#include "wick/math/arithmetic.h"

namespace wick::cpu::WICK_ISA {
namespace {

constexpr int kGroup = math::kScanGroup;

// ---- Sixteen neighbours in the lanes of vectors ----

template <class A>
inline constexpr int kVectors = kGroup / kLanes<A>;

/// The vector that starts kDistance lanes before v; `before` precedes v.
template <int kDistance, class V, size_t... kI>
WICK_FN V earlier(V before, V v, std::index_sequence<kI...>) {
  constexpr size_t kWidth = sizeof...(kI);
  return __builtin_shufflevector(before, v, (kWidth - kDistance + kI)...);
}

template <int kDistance, class A, class V>
WICK_FN void step(V* v) {
  constexpr int kWidth = kLanes<A>;
#pragma GCC unroll 16
  for (int i = kVectors<A> - 1; i >= 0; --i) {
    if constexpr (kDistance < kWidth) {
      const V before = i > 0 ? v[i - 1] : V{};
      v[i] = v[i] + earlier<kDistance>(before, v[i], std::make_index_sequence<kWidth>());
    } else {
      constexpr int kBack = kDistance / kWidth;
      v[i] = v[i] + (i >= kBack ? v[i - kBack] : V{});
    }
  }
}

/// Inclusive sums of 16 elements: for d = 1, 2, 4, 8, x[i] becomes x[i] + x[i - d], where elements
/// before the first are +0.
template <class A, class V>
WICK_FN void scan_group(V* v) {
  step<1, A>(v);
  step<2, A>(v);
  step<4, A>(v);
  step<8, A>(v);
}

/// scan_group of 16 numbers in memory.
template <class A>
WICK_FN void scan_numbers(A* x) {
  using V = Vec<A>;
  V v[kVectors<A>];
  for (int i = 0; i < kVectors<A>; ++i) v[i] = load(x + i * kLanes<A>);
  scan_group<A>(v);
  for (int i = 0; i < kVectors<A>; ++i) store(x + i * kLanes<A>, v[i]);
}

/// Loads a group of up to 16 elements, `step` apart; missing ones are +0.
template <class T>
WICK_FN void load_group(const T* x, int64_t step, int64_t n, Vec<Compute<T>>* v) {
  using A = Compute<T>;
  if (step == 1 && n >= kGroup) {
    for (int i = 0; i < kVectors<A>; ++i) v[i] = load(x + i * kLanes<A>);
    return;
  }
  T dense[kGroup] = {};
  for (int64_t i = 0; i < (n < kGroup ? n : kGroup); ++i) dense[i] = x[i * step];
  for (int i = 0; i < kVectors<A>; ++i) v[i] = load(dense + i * kLanes<A>);
}
template <class T>
WICK_FN void store_group(T* y, int64_t step, int64_t n, const Vec<Compute<T>>* v) {
  using A = Compute<T>;
  if (step == 1 && n >= kGroup) {
    for (int i = 0; i < kVectors<A>; ++i) store(y + i * kLanes<A>, v[i]);
    return;
  }
  T dense[kGroup];
  for (int i = 0; i < kVectors<A>; ++i) store(dense + i * kLanes<A>, v[i]);
  for (int64_t i = 0; i < (n < kGroup ? n : kGroup); ++i) y[i * step] = dense[i];
}

template <class A>
WICK_FN A read(const ScanTotal& sum) {
  A value;
  __builtin_memcpy(&value, sum.bytes, sizeof value);
  return value;
}
template <class A>
WICK_FN void write(ScanTotal* sum, A value) {
  __builtin_memcpy(sum->bytes, &value, sizeof value);
}

/// The inclusive sums of sixteen numbers that arrive one at a time.
template <class V>
struct Doubling {
  V waiting[15] = {};  // the last 1, 2, 4 and 8 numbers of each distance

  WICK_FN V add(V x, int64_t index) {
    V* ring = waiting;
    for (int distance = 1; distance < kGroup; distance *= 2) {
      V& slot = ring[index & (distance - 1)];
      const V sum = x + slot;
      slot = x;
      x = sum;
      ring += distance;
    }
    return x;
  }
};

/// Stores one group's sums with non-temporal stores; y is aligned to a cache line.
template <class T>
WICK_FN void stream_group(T* y, const Vec<Compute<T>>* v) {
  using A = Compute<T>;
  for (int i = 0; i < kVectors<A>; ++i) store_register<true>(y + i * kLanes<A>, v[i]);
}

template <class T>
void row(const void* x_data, int64_t x_step, int64_t n, const ScanTotal& carry_bytes, void* y_data,
         int64_t y_step, bool stream, ScanTotal* sum) {
  using A = Compute<T>;
  using V = Vec<Compute<T>>;
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const A carry = read<A>(carry_bytes);
  // A group of narrow floats is smaller than a cache line.
  const bool around = math::kSame<T, A> && stream && reinterpret_cast<uintptr_t>(y) % 64 == 0;
  alignas(64) A local[kGroup * kGroup], ends[kGroup];
  Doubling<A> supers;
  A of_supers = 0;
  for (int64_t start = 0, s = 0; start < n; start += kGroup * kGroup, ++s) {
    // Sixteen groups, whose sums are scanned afterwards.
    const int64_t rest = n - start;
    const int64_t groups = rest < kGroup * kGroup ? (rest + kGroup - 1) / kGroup : kGroup;
    for (int64_t g = 0; g < groups; ++g) {
      V v[kVectors<A>];
      load_group(x + (start + g * kGroup) * x_step, x_step, rest - g * kGroup, v);
      scan_group<A>(v);
      A* const to = local + g * kGroup;
      for (int i = 0; i < kVectors<A>; ++i) store(to + i * kLanes<A>, v[i]);
      ends[g] = to[kGroup - 1];
    }
    for (int64_t g = groups; g < kGroup; ++g) ends[g] = 0;
    scan_numbers(ends);
    const A before = carry + of_supers;
    of_supers = supers.add(ends[kGroup - 1], s);
    if (y == nullptr) continue;
    for (int64_t g = 0; g < groups; ++g) {
      const V offset = splat(before + (g > 0 ? ends[g - 1] : A{0}));
      V v[kVectors<A>];
      const A* const from = local + g * kGroup;
      for (int i = 0; i < kVectors<A>; ++i) v[i] = offset + load(from + i * kLanes<A>);
      T* const to = y + (start + g * kGroup) * y_step;
      if constexpr (math::kSame<T, A>) {
        if (around && rest - g * kGroup >= kGroup) {
          stream_group(to, v);
          continue;
        }
      }
      store_group(to, y_step, rest - g * kGroup, v);
    }
  }
  write(sum, of_supers);
}

// ---- Sixteen neighbours in sixteen vectors, or one after another ----

template <class V>
WICK_FN void scan_vectors(V* v) {
#pragma GCC unroll 4
  for (int distance = 1; distance < kGroup; distance *= 2) {
#pragma GCC unroll 16
    for (int i = kGroup - 1; i >= 0; --i) v[i] = v[i] + (i >= distance ? v[i - distance] : V{});
  }
}

/// The sums of the rows above, for one vector of columns.
template <class V>
struct ColumnState {
  Doubling<V> groups, supers;
  V carry = {}, of_supers = {}, of_groups = {};

  WICK_FN V offset() const { return (carry + of_supers) + of_groups; }
  /// After group number g.
  WICK_FN void add(V group_sum, int64_t g) {
    of_groups = groups.add(group_sum, g % kGroup);
    if (g % kGroup != kGroup - 1) return;
    of_supers = supers.add(of_groups, g / kGroup % kGroup);
    groups = {};
    of_groups = V{};
    if (g / kGroup % kGroup != kGroup - 1) return;
    carry = carry + of_supers;
    supers = {};
    of_supers = V{};
  }
};

/// Up to 16 rows of one vector of columns.
template <class T>
WICK_FN void column_group(const T* x, int64_t x_row, int64_t rows, int count, T* y, int64_t y_row,
                          int64_t y_step, int64_t g, ColumnState<Vec<Compute<T>>>& state) {
  using V = Vec<Compute<T>>;
  constexpr int kWidth = kStep<T>;
  V v[kGroup];
  if (rows >= kGroup && count == kWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kGroup; ++i) v[i] = load(x + i * x_row);
  } else {
    for (int i = 0; i < kGroup; ++i) v[i] = i < rows ? load_partial(x + i * x_row, count) : V{};
  }
  scan_vectors(v);
  const V offset = state.offset();
  state.add(v[kGroup - 1], g);
  if (rows >= kGroup && count == kWidth && y_step == 1) {
#pragma GCC unroll 16
    for (int i = 0; i < kGroup; ++i) store(y + i * y_row, offset + v[i]);
    return;
  }
  for (int i = 0; i < (rows < kGroup ? rows : kGroup); ++i) {
    T line[kWidth];
    store(line, offset + v[i]);
    for (int c = 0; c < count; ++c) y[i * y_row + c * y_step] = line[c];
  }
}

template <class T>
void columns(const void* x_data, int64_t x_row, int64_t n, int64_t width, void* y_data,
             int64_t y_row, int64_t y_step) {
  constexpr int kWidth = kStep<T>;
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  ColumnState<Vec<Compute<T>>> states[kScanColumns / kWidth];
  for (int64_t i = 0; i < n; i += kGroup) {
    for (int64_t c = 0; c < width; c += kWidth) {
      const int count = static_cast<int>(width - c < kWidth ? width - c : kWidth);
      column_group(x + i * x_row + c, x_row, n - i, count, y + i * y_row + c * y_step, y_row,
                   y_step, i / kGroup, states[c / kWidth]);
    }
  }
}

// ---- Integers ----

/// Inclusive sums along the lanes.
template <int kDistance = 1, class V>
WICK_FN V scan_lanes(V v) {
  constexpr int kWidth = static_cast<int>(sizeof(V) / sizeof(v[0]));
  if constexpr (kDistance < kWidth) {
    v = v + earlier<kDistance>(V{}, v, std::make_index_sequence<kWidth>());
    return scan_lanes<2 * kDistance>(v);
  }
  return v;
}

/// Scans whole vectors of dense elements, starting from *total. Returns how many elements those
/// were.
template <bool kStream, class U>
WICK_FN int64_t scan_dense(const U* x, int64_t n, U* y, U* total) {
  constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(U));
  typedef U V __attribute__((vector_size(kVectorBytes)));
  V before = V{} + *total;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    V v;
    __builtin_memcpy(&v, x + i, sizeof v);
    v = scan_lanes(v);
    store_register<kStream>(y + i, before + v);
    before = before + (V{} + v[kWidth - 1]);  // the only dependency from vector to vector
  }
  *total = before[0];
  return i;
}

template <class T>
void row_of_integers(const void* x_data, int64_t x_step, int64_t n, const ScanTotal& carry,
                     void* y_data, int64_t y_step, [[maybe_unused]] bool stream, ScanTotal* sum) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const T first = read<T>(carry);
  T total = 0;
  if (y == nullptr) {
    for (int64_t i = 0; i < n; ++i) total = math::add(total, x[i * x_step]);
    return write(sum, total);
  }
  int64_t done = 0;
  total = first;
  if constexpr (sizeof(T) >= 4) {  // no instruction moves narrower lanes across a vector
    if (x_step == 1 && y_step == 1) {
      using U = std::make_unsigned_t<T>;
      const auto* from = reinterpret_cast<const U*>(x);
      auto* to = reinterpret_cast<U*>(y);
      U sums = static_cast<U>(total);
      const bool around = stream && reinterpret_cast<uintptr_t>(y) % kVectorBytes == 0;
      done = around ? scan_dense<true>(from, n, to, &sums) : scan_dense<false>(from, n, to, &sums);
      total = static_cast<T>(sums);
    }
  }
  for (int64_t i = done; i < n; ++i) {
    total = math::add(total, x[i * x_step]);
    y[i * y_step] = total;
  }
  write(sum, math::sub(total, first));
}

template <class T>
void columns_of_integers(const void* x_data, int64_t x_row, int64_t n, int64_t width, void* y_data,
                         int64_t y_row, int64_t y_step) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  T total[kScanColumns] = {};
  for (int64_t i = 0; i < n; ++i) {
    const T* from = x + i * x_row;
    for (int64_t c = 0; c < width; ++c) total[c] = math::add(total[c], from[c]);
    for (int64_t c = 0; c < width; ++c) y[i * y_row + c * y_step] = total[c];
  }
}

template <class A>
void combine(ScanTotal* into, const ScanTotal& x) {
  if constexpr (math::Real<A>) {
    write(into, read<A>(*into) + read<A>(x));
  } else {
    write(into, math::add(read<A>(*into), read<A>(x)));
  }
}

template <DType kDType>
constexpr void add_dtype(ScanKernels& table) {
  constexpr int kAt = static_cast<int>(kDType);
  if constexpr (is_float(kDType)) {
    using T = Storage<kDType>;
    table.row[kAt] = row<T>;
    table.columns[kAt] = columns<T>;
    table.combine[kAt] = combine<Compute<T>>;
  } else if constexpr (!is_block(kDType)) {
    using T = Storage<kDType>;
    table.row[kAt] = row_of_integers<T>;
    table.columns[kAt] = columns_of_integers<T>;
    table.combine[kAt] = combine<T>;
  }
}
constexpr ScanKernels make_table() {
  ScanKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr ScanKernels scan_kernels = make_table();
static_assert(complete(scan_kernels));

}  // namespace wick::cpu::WICK_ISA
