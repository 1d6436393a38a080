// Cumulative products, in the order of cumulative sums (scan_kernels.cpp and
// docs/design/numerics/reduce.md). Floats are multiplied as pairs of an f64 mantissa and an i64
// exponent (wick/math/scaled.h), so no product overflows or underflows on the way. Integers wrap
// and are multiplied one after another.
//
// Rows: a vector holds neighbours of a row. Columns: a vector holds neighbouring columns.

#include <type_traits>
#include <utility>

#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/scan/scan_kernels.h"
#include "wick/backend/cpu/storage_type.h"
#include "wick/math/arithmetic.h"
#include "wick/math/scaled.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::Scaled;

constexpr int kGroup = 16;
static_assert(kScanChunk == kGroup * kGroup * kGroup);
constexpr int kWidth = kLanes<double>;
constexpr int kVectors = kGroup / kWidth;

using F64 = Vec<double>;
using I64 = Vec<int64_t>;
using U64 = Vec<uint64_t>;

WICK_FN I64 splat(int64_t x) { return x - I64{}; }

// ---- A Scaled in each lane ----

struct ScaledLanes {
  F64 mantissa;
  I64 exponent;
};

WICK_FN ScaledLanes in_all_lanes(Scaled x) { return {splat(x.mantissa), splat(x.exponent)}; }
WICK_FN ScaledLanes ones() { return in_all_lanes(Scaled{}); }
WICK_FN ScaledLanes product(const ScaledLanes& a, const ScaledLanes& b) {
  return {a.mantissa * b.mantissa, a.exponent + b.exponent};
}
/// math::normalized of each lane.
WICK_FN ScaledLanes normalized(const ScaledLanes& x) {
  const U64 magnitude = reinterpret_cast<U64>(x.mantissa) & 0x7fffffffffffffffu;
  const I64 tiny = magnitude < (uint64_t{1} << 52);
  const F64 moved = tiny ? x.mantissa * 0x1p54 : x.mantissa;
  const U64 bits = reinterpret_cast<U64>(moved);
  const I64 biased = reinterpret_cast<I64>(bits >> 52 & 0x7ff);
  const I64 special = (biased == 0) | (biased == 0x7ff);
  const U64 mantissa = (bits & 0x800fffffffffffffu) | 0x3ff0000000000000u;
  const I64 exponent = biased - 1023 - (tiny & 54);
  return {special ? x.mantissa : reinterpret_cast<F64>(mantissa),
          x.exponent + (exponent & ~special)};
}
WICK_FN ScaledLanes scaled(F64 x) { return normalized(ScaledLanes{x, {}}); }

WICK_FN F64 power_of_two(I64 exponent) { return reinterpret_cast<F64>((exponent + 1023) << 52); }
WICK_FN I64 clamped(I64 x, int64_t limit) {
  const I64 high = splat(limit), low = splat(-limit);
  const I64 below = x > high ? high : x;
  return below < low ? low : below;
}
/// The nearest f64, rounded once; mantissas are below 2^60 and not denormal.
WICK_FN F64 value(const ScaledLanes& x) {
  // The first factor leaves a normal number, so only the second rounds.
  const I64 first = clamped(x.exponent, 960);
  return x.mantissa * power_of_two(first) * power_of_two(clamped(x.exponent - first, 1000));
}

// ---- Sixteen neighbours in the lanes of vectors ----

/// The lanes kDistance before those of v, where `before` precedes v.
template <int kDistance, class V, size_t... kI>
WICK_FN V earlier(V before, V v, std::index_sequence<kI...>) {
  return __builtin_shufflevector(before, v, (kWidth - kDistance + kI)...);
}
template <int kDistance>
WICK_FN ScaledLanes earlier(const ScaledLanes& before, const ScaledLanes& v) {
  constexpr auto kAll = std::make_index_sequence<kWidth>();
  return {earlier<kDistance>(before.mantissa, v.mantissa, kAll),
          earlier<kDistance>(before.exponent, v.exponent, kAll)};
}
template <int kDistance>
WICK_FN void step(ScaledLanes* v) {
#pragma GCC unroll 16
  for (int i = kVectors - 1; i >= 0; --i) {
    if constexpr (kDistance < kWidth) {
      v[i] = product(v[i], earlier<kDistance>(i > 0 ? v[i - 1] : ones(), v[i]));
    } else {
      constexpr int kBack = kDistance / kWidth;
      if (i >= kBack) v[i] = product(v[i], v[i - kBack]);
    }
  }
}
/// Inclusive products of 16 numbers: for d = 1, 2, 4, 8, x[i] becomes x[i] * x[i - d], where
/// elements before the first are 1.
WICK_FN void scan_group(ScaledLanes* v) {
  step<1>(v);
  step<2>(v);
  step<4>(v);
  step<8>(v);
}

/// 16 Scaled numbers in memory.
struct Sixteen {
  alignas(64) double mantissa[kGroup];
  alignas(64) int64_t exponent[kGroup];

  WICK_FN Scaled operator[](int64_t i) const { return {mantissa[i], exponent[i]}; }
  WICK_FN void set(int64_t i, Scaled x) {
    mantissa[i] = x.mantissa;
    exponent[i] = x.exponent;
  }
  WICK_FN void scan() {
    ScaledLanes v[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      v[i].mantissa = load(mantissa + i * kWidth);
      __builtin_memcpy(&v[i].exponent, exponent + i * kWidth, sizeof v[i].exponent);
    }
    scan_group(v);
    for (int i = 0; i < kVectors; ++i) {
      store(mantissa + i * kWidth, v[i].mantissa);
      __builtin_memcpy(exponent + i * kWidth, &v[i].exponent, sizeof v[i].exponent);
    }
  }
};

/// Inclusive products of 16 numbers that are added one at a time.
template <class N>
struct Doubling {
  N waiting[15];  // the last 1, 2, 4 and 8 numbers of each distance

  WICK_FN explicit Doubling(const N& one) { reset(one); }
  WICK_FN void reset(const N& one) {
    for (N& number : waiting) number = one;
  }
  WICK_FN N add(N x, int64_t index) {
    N* ring = waiting;
    for (int distance = 1; distance < kGroup; distance *= 2) {
      N& slot = ring[index & (distance - 1)];
      const N all = product(x, slot);
      slot = x;
      x = all;
      ring += distance;
    }
    return x;
  }
};

// ---- Elements ----

/// Dense elements as f64; kCount is a multiple of a vector's elements of T.
template <int kCount, class T>
WICK_FN void widen_all(const T* x, double* to) {
  if constexpr (math::kSame<T, double>) {
    __builtin_memcpy(to, x, kCount * sizeof(double));
  } else {
    alignas(64) float wide[kCount];
    for (int i = 0; i < kCount; i += kLanes<float>) store(wide + i, load(x + i));
    for (int i = 0; i < kCount; ++i) to[i] = static_cast<double>(wide[i]);
  }
}
/// Rounded once to T.
template <int kCount, class T>
WICK_FN void narrow_all(const double* x, T* to) {
  if constexpr (math::kSame<T, double>) {
    __builtin_memcpy(to, x, kCount * sizeof(double));
  } else if constexpr (math::kSame<T, float>) {
    for (int i = 0; i < kCount; ++i) to[i] = static_cast<float>(x[i]);
  } else {
    alignas(64) float odd[kCount];
    for (int i = 0; i < kCount; ++i) odd[i] = math::detail::f64_to_f32_odd(x[i]);
    for (int i = 0; i < kCount; i += kLanes<float>) store(to + i, load(odd + i));
  }
}

/// A group of up to 16 elements, `step` apart; the missing ones are 1.
template <class T>
WICK_FN void load_group(const T* x, int64_t step, int64_t n, ScaledLanes* v) {
  alignas(64) double wide[kGroup];
  if (step == 1 && n >= kGroup) {
    widen_all<kGroup>(x, wide);
  } else {
    for (int64_t i = 0; i < kGroup; ++i) {
      wide[i] = i < n ? static_cast<double>(widen(x[i * step])) : 1.0;
    }
  }
  for (int i = 0; i < kVectors; ++i) v[i] = scaled(load(wide + i * kWidth));
}
template <class T>
WICK_FN void store_group(T* y, int64_t step, int64_t n, const ScaledLanes* v) {
  alignas(64) double wide[kGroup];
  for (int i = 0; i < kVectors; ++i) store(wide + i * kWidth, value(v[i]));
  if (step == 1 && n >= kGroup) return narrow_all<kGroup>(wide, y);
  T dense[kGroup];
  narrow_all<kGroup>(wide, dense);
  for (int64_t i = 0; i < (n < kGroup ? n : kGroup); ++i) y[i * step] = dense[i];
}

template <class N>
WICK_FN N read(const ScanTotal& total) {
  N number;
  static_assert(sizeof number <= sizeof total);
  __builtin_memcpy(&number, total.bytes, sizeof number);
  return number;
}
template <class N>
constexpr ScanTotal total_of(N number) {
  struct Bytes {
    char bytes[sizeof(N)];
  };
  const Bytes from = __builtin_bit_cast(Bytes, number);
  ScanTotal total{};
  for (size_t i = 0; i < sizeof(N); ++i) total.bytes[i] = from.bytes[i];
  return total;
}

// ---- Rows ----

template <class T>
void row(const void* x_data, int64_t x_step, int64_t n, const ScanTotal& carry_bytes, void* y_data,
         int64_t y_step, bool, ScanTotal* total) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const Scaled carry = read<Scaled>(carry_bytes);
  ScaledLanes local[kGroup][kVectors];
  Sixteen ends;
  Doubling<Scaled> supers(Scaled{});
  Scaled of_supers;
  for (int64_t start = 0, s = 0; start < n; start += kGroup * kGroup, ++s) {
    // Scans 16 groups, then the products of the groups.
    const int64_t rest = n - start;
    const int64_t groups = rest < kGroup * kGroup ? (rest + kGroup - 1) / kGroup : kGroup;
    for (int64_t g = 0; g < groups; ++g) {
      ScaledLanes* const v = local[g];
      load_group(x + (start + g * kGroup) * x_step, x_step, rest - g * kGroup, v);
      scan_group(v);
      const ScaledLanes& last = v[kVectors - 1];
      ends.set(g, math::normalized({last.mantissa[kWidth - 1], last.exponent[kWidth - 1]}));
    }
    for (int64_t g = groups; g < kGroup; ++g) ends.set(g, {});
    ends.scan();
    const Scaled before = math::product(carry, of_supers);
    of_supers = supers.add(math::normalized(ends[kGroup - 1]), s);
    if (y == nullptr) continue;
    for (int64_t g = 0; g < groups; ++g) {
      const ScaledLanes offset = in_all_lanes(math::product(before, g > 0 ? ends[g - 1] : Scaled{}));
      ScaledLanes v[kVectors];
      for (int i = 0; i < kVectors; ++i) v[i] = product(offset, local[g][i]);
      store_group(y + (start + g * kGroup) * y_step, y_step, rest - g * kGroup, v);
    }
  }
  *total = total_of(math::normalized(of_supers));
}

// ---- Columns ----

/// Products of the rows above, for one vector of columns.
struct ColumnState {
  Doubling<ScaledLanes> groups, supers;
  ScaledLanes carry, of_supers, of_groups;

  WICK_FN ColumnState()
      : groups(ones()), supers(ones()), carry(ones()), of_supers(ones()), of_groups(ones()) {}

  WICK_FN ScaledLanes offset() const { return product(product(carry, of_supers), of_groups); }
  /// Adds the product of group g, the next one.
  WICK_FN void add(const ScaledLanes& group, int64_t g) {
    of_groups = groups.add(normalized(group), g % kGroup);
    if (g % kGroup != kGroup - 1) return;
    of_supers = supers.add(normalized(of_groups), g / kGroup % kGroup);
    groups.reset(ones());
    of_groups = ones();
    if (g / kGroup % kGroup != kGroup - 1) return;
    carry = normalized(product(carry, normalized(of_supers)));
    supers.reset(ones());
    of_supers = ones();
  }
};

/// Scans one vector of columns, of which the first `count` exist.
template <class T>
WICK_FN void column_vector(const T* x, int64_t x_row, int64_t n, int count, T* y, int64_t y_row,
                           int64_t y_step) {
  ColumnState state;
  for (int64_t start = 0, g = 0; start < n; start += kGroup, ++g) {
    const int64_t rows = n - start < kGroup ? n - start : kGroup;
    ScaledLanes v[kGroup];
    for (int64_t i = 0; i < rows; ++i) {
      alignas(64) double wide[kWidth];
      for (int c = 0; c < kWidth; ++c) {
        wide[c] = c < count ? static_cast<double>(widen(x[(start + i) * x_row + c])) : 1.0;
      }
      v[i] = scaled(load(wide));
    }
    for (int64_t i = rows; i < kGroup; ++i) v[i] = ones();
#pragma GCC unroll 4
    for (int distance = 1; distance < kGroup; distance *= 2) {
#pragma GCC unroll 16
      for (int i = kGroup - 1; i >= distance; --i) v[i] = product(v[i], v[i - distance]);
    }
    const ScaledLanes offset = state.offset();
    state.add(v[kGroup - 1], g);
    for (int64_t i = 0; i < rows; ++i) {
      alignas(64) double wide[kWidth];
      store(wide, value(product(offset, v[i])));
      for (int c = 0; c < count; ++c) {
        T& to = y[(start + i) * y_row + c * y_step];
        if constexpr (math::Real<T>) {
          to = static_cast<T>(wide[c]);
        } else {
          to = math::from_f64<T>(wide[c]);
        }
      }
    }
  }
}

template <class T>
void columns(const void* x_data, int64_t x_row, int64_t n, int64_t width, void* y_data,
             int64_t y_row, int64_t y_step) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  for (int64_t c = 0; c < width; c += kWidth) {
    if (width - c >= kWidth) {
      column_vector(x + c, x_row, n, kWidth, y + c * y_step, y_row, y_step);
    } else {
      column_vector(x + c, x_row, n, static_cast<int>(width - c), y + c * y_step, y_row, y_step);
    }
  }
}

// ---- Integers ----

template <class T>
void row_of_integers(const void* x_data, int64_t x_step, int64_t n, const ScanTotal& carry,
                     void* y_data, int64_t y_step, bool, ScanTotal* total) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const T first = read<T>(carry);
  T all = 1;
  for (int64_t i = 0; i < n; ++i) {
    all = math::mul(all, x[i * x_step]);
    if (y != nullptr) y[i * y_step] = math::mul(first, all);
  }
  *total = total_of(all);
}

template <class T>
void columns_of_integers(const void* x_data, int64_t x_row, int64_t n, int64_t width, void* y_data,
                         int64_t y_row, int64_t y_step) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  T total[kScanColumns];
  for (T& t : total) t = 1;
  for (int64_t i = 0; i < n; ++i) {
    const T* from = x + i * x_row;
    for (int64_t c = 0; c < width; ++c) total[c] = math::mul(total[c], from[c]);
    for (int64_t c = 0; c < width; ++c) y[i * y_row + c * y_step] = total[c];
  }
}

template <class N>
void combine(ScanTotal* into, const ScanTotal& x) {
  if constexpr (math::kSame<N, Scaled>) {
    *into = total_of(math::normalized(math::product(read<N>(*into), read<N>(x))));
  } else {
    *into = total_of(math::mul(read<N>(*into), read<N>(x)));
  }
}

template <DType kDType>
constexpr void add_dtype(ScanKernels& table) {
  constexpr int kAt = static_cast<int>(kDType);
  if constexpr (is_float(kDType)) {
    using T = Storage<kDType>;
    table.row[kAt] = row<T>;
    table.columns[kAt] = columns<T>;
    table.combine[kAt] = combine<Scaled>;
    table.identity[kAt] = total_of(Scaled{});
  } else if constexpr (!is_block(kDType)) {
    using T = Storage<kDType>;
    table.row[kAt] = row_of_integers<T>;
    table.columns[kAt] = columns_of_integers<T>;
    table.combine[kAt] = combine<T>;
    table.identity[kAt] = total_of(T{1});
  }
}
constexpr ScanKernels make_table() {
  ScanKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr ScanKernels product_scan_kernels = make_table();
static_assert(complete(product_scan_kernels));

}  // namespace wick::cpu::WICK_ISA
