#pragma once

// Elementwise functions.
//
// Computes: out[i] = f(in[i]), f(in[i]; p, q) or f(a[i], b[i]), in the compute type of the dtype,
// rounded once at the store. Comparisons and tests give bytes of 0 and 1.
// Index map: see layout/elementwise.h. A thread takes several vectors or elements, one block width
// apart.
// Bytes moved: each element is read once and written once.
//
// `with(body)` calls body(f) with the function f. A kernel of one row of ops.def passes that row's
// f; a kernel of several rows passes a switch.

#include "wick/backend/gpu/kernels/layout/elementwise.h"
#include "wick/backend/gpu/kernels/map/map_abi.h"
#include "wick/math/arithmetic.h"
#include "wick/math/narrow.h"

namespace wick::gpu {

/// The parameters p and q of a row that takes numbers.
template <class C>
struct Numbers {
  C p, q;
  WICK_DEVICE static Numbers of(const Number& p, const Number& q) { return {p.as<C>(), q.as<C>()}; }
};

struct Integers {};
struct Floats {};
struct Real {};
struct Any {};   // Real, and bool, which is u8 here
struct Bits {};  // Integers, and bool
/// Whether a row of ops.def with these dtypes supports T.
template <class T, class Dtypes>
inline constexpr bool kHas = kSame<Dtypes, Real> || kSame<Dtypes, Any> ||
                             (math::Real<Compute<T>>
                                  ? kSame<Dtypes, Floats>
                                  : kSame<Dtypes, Integers> || kSame<Dtypes, Bits>);

#define WICK_ROW_CALL(name, ...)             \
  if constexpr (kSame<T, bf16>) {            \
    return math::of_bf16::name(__VA_ARGS__); \
  } else if constexpr (kNarrow<T>) {         \
    return math::of_f16::name(__VA_ARGS__);  \
  } else {                                   \
    return math::name(__VA_ARGS__);          \
  }
#define WICK_UNARY(name, dtypes, ...)                  \
  struct name##_row {                                  \
    using Dtypes = dtypes;                             \
    template <class T>                                 \
    WICK_DEVICE static Compute<T> call(Compute<T> x) { \
      WICK_ROW_CALL(name, x)                           \
    }                                                  \
  };
#define WICK_NUMBERS_1(n) n.p
#define WICK_NUMBERS_2(n) n.p, n.q
#define WICK_UNARY_WITH(name, dtypes, numbers, ...)                                  \
  struct name##_row {                                                                \
    using Dtypes = dtypes;                                                           \
    template <class T>                                                               \
    WICK_DEVICE static Compute<T> call(Compute<T> x, const Numbers<Compute<T>>& n) { \
      WICK_ROW_CALL(name, x, WICK_NUMBERS_##numbers(n))                              \
    }                                                                                \
  };
#define WICK_TEST(name, dtypes, ...)           \
  struct name##_row {                          \
    using Dtypes = dtypes;                     \
    template <class T>                         \
    WICK_DEVICE static u8 call(Compute<T> x) { \
      WICK_ROW_CALL(name, x)                   \
    }                                          \
  };
#define WICK_BINARY(name, dtypes, ...)                                                           \
  struct name##_row {                                                                            \
    using Dtypes = dtypes;                                                                       \
    static constexpr bool kDivides =                                                             \
        BinaryRow::name == BinaryRow::div || BinaryRow::name == BinaryRow::rem;                  \
    template <class T>                                                                           \
    WICK_DEVICE static Compute<T> call(Compute<T> a, Compute<T> b, const Divisions& divisions) { \
      if constexpr (kDivides && math::Whole<T>) {                                                \
        if (b == T{0}) {                                                                         \
          report(divisions.line, kDividedByZero, u32(divisions.note), 0);                        \
          return T{0};                                                                           \
        }                                                                                        \
      }                                                                                          \
      WICK_ROW_CALL(name, a, b)                                                                  \
    }                                                                                            \
  };
#include "wick/op/ops.def"

// with_row calls body(row) with the row's struct, if the row supports T.
#define WICK_ROW_CASE(Row, name)                                            \
  case Row::name:                                                           \
    if constexpr (kHas<T, typename name##_row::Dtypes>) body(name##_row()); \
    break;

template <class T, class Body>
WICK_DEVICE void with_row(UnaryRow row, Body body) {
  switch (row) {
#define WICK_UNARY(name, ...) WICK_ROW_CASE(UnaryRow, name)
#include "wick/op/ops.def"
  }
}
template <class T, class Body>
WICK_DEVICE void with_row(UnaryWithRow row, Body body) {
  switch (row) {
#define WICK_UNARY_WITH(name, ...) WICK_ROW_CASE(UnaryWithRow, name)
#include "wick/op/ops.def"
  }
}
template <class T, class Body>
WICK_DEVICE void with_row(TestRow row, Body body) {
  switch (row) {
#define WICK_TEST(name, ...) WICK_ROW_CASE(TestRow, name)
#include "wick/op/ops.def"
  }
}
template <class T, class Body>
WICK_DEVICE void with_row(BinaryRow row, Body body) {
  switch (row) {
#define WICK_BINARY(name, ...) WICK_ROW_CASE(BinaryRow, name)
#include "wick/op/ops.def"
  }
}

// ---- Vectorized ----

template <class To, class T, class With>
WICK_DEVICE void map_vectorized(To* WICK_RESTRICT out, const T* WICK_RESTRICT in,
                                const StridedIndex<2>& strided, u32 rest, With with) {
  constexpr u32 kPack = map_vec(sizeof(To), sizeof(T)), kUnroll = map_unroll(sizeof(To), sizeof(T));
  using P = Vec<To, kPack>;
  const Places<2, kUnroll> places(strided);
  pdl_wait();
  pdl_launch_dependents();
  Vec<T, kPack> x[kUnroll];
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] < strided.elems) x[u] = load_vec<T, kPack>(in + places.at[1][u]);
  }
  with([&](auto f) WICK_INLINE {
#pragma unroll
    for (u32 u = 0; u < kUnroll; ++u) {
      if (places.index[u] >= strided.elems) continue;
      Compute<To> y[kPack];
#pragma unroll
      for (u32 i = 0; i < kPack; ++i) y[i] = f(x[u][i]);
      *reinterpret_cast<P*>(out + places.at[0][u]) = P::of(y);
    }
    if (is_rest(rest)) {
      const u64 at = u64{strided.elems} * kPack + thread_index();
      out[at] = narrow<To>(f(widen(in[at])));
    }
  });
}

/// Bit k of `repeated` is set if input operand k is one repeated element along the innermost dim.
template <class To, class T, class With>
WICK_DEVICE void map_vectorized(To* WICK_RESTRICT out, const T* WICK_RESTRICT a,
                                const T* WICK_RESTRICT b, const StridedIndex<3>& strided, u32 rest,
                                u32 repeated, With with) {
  constexpr u32 kPack = map_vec(sizeof(To), sizeof(T)), kUnroll = map_unroll(sizeof(To), sizeof(T));
  using P = Vec<To, kPack>;
  const bool one_a = (repeated & 1) != 0, one_b = (repeated & 2) != 0;
  const Places<3, kUnroll> places(strided);
  pdl_wait();
  pdl_launch_dependents();
  Vec<T, kPack> x[kUnroll], y[kUnroll];
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] >= strided.elems) continue;
    x[u] = load_vec<T, kPack>(a + places.at[1][u], one_a);
    y[u] = load_vec<T, kPack>(b + places.at[2][u], one_b);
  }
  with([&](auto f) WICK_INLINE {
#pragma unroll
    for (u32 u = 0; u < kUnroll; ++u) {
      if (places.index[u] >= strided.elems) continue;
      Compute<To> z[kPack];
#pragma unroll
      for (u32 i = 0; i < kPack; ++i) z[i] = f(x[u][i], y[u][i]);
      *reinterpret_cast<P*>(out + places.at[0][u]) = P::of(z);
    }
    if (is_rest(rest)) {
      const u64 at = u64{strided.elems} * kPack + thread_index();
      out[at] = narrow<To>(f(widen(a[one_a ? 0 : at]), widen(b[one_b ? 0 : at])));
    }
  });
}

// ---- A matrix and a row ----

/// A thread takes one vector of columns of several neighbouring rows, so it loads the row's vector
/// once.
template <class T>
WICK_DEVICE void map_rows(T* WICK_RESTRICT out, const T* WICK_RESTRICT matrix,
                          const T* WICK_RESTRICT row, const BinaryRowsArgs& args) {
  constexpr u32 kPack = map_vec(sizeof(T), sizeof(T)), kAtOnce = 8;
  const u32 thread = block_index() * block_threads() + thread_index();
  const u32 group = args.vectors.divide(thread);
  const u32 column = (thread - group * args.vectors.by) * kPack, first = group * args.each;
  if (first >= args.rows) return;
  const u32 end = args.rows - first < args.each ? args.rows : first + args.each;
  const Vec<T, kPack> y = load_vec<T, kPack>(row + column);
  const auto run = [&](auto f) WICK_INLINE {
#pragma unroll 1
    for (u32 r = first; r < end; r += kAtOnce) {
      Vec<T, kPack> x[kAtOnce];
#pragma unroll
      for (u32 u = 0; u < kAtOnce; ++u) {
        if (r + u < end) x[u] = load_vec<T, kPack>(matrix + i64{r + u} * args.matrix_step + column);
      }
#pragma unroll
      for (u32 u = 0; u < kAtOnce; ++u) {
        if (r + u >= end) continue;
        Compute<T> z[kPack];
#pragma unroll
        for (u32 i = 0; i < kPack; ++i) z[i] = f(x[u][i], y[i]);
        store_vec(out + i64{r + u} * args.out_step + column, Vec<T, kPack>::of(z));
      }
    }
  };
  constexpr Divisions kNone{nullptr, 0};
  using C = Compute<T>;
  if (args.op == BinaryRow::add) {
    run([&](C a, C b) WICK_INLINE { return add_row::call<T>(a, b, kNone); });
  } else if (args.op == BinaryRow::mul) {
    run([&](C a, C b) WICK_INLINE { return mul_row::call<T>(a, b, kNone); });
  } else if (args.row_first != 0) {
    run([&](C a, C b) WICK_INLINE { return sub_row::call<T>(b, a, kNone); });
  } else {
    run([&](C a, C b) WICK_INLINE { return sub_row::call<T>(a, b, kNone); });
  }
}

// ---- Scalar ----

template <class To, class T, class With>
WICK_DEVICE void map_scalar(To* WICK_RESTRICT out, const T* WICK_RESTRICT in,
                            const StridedIndex<2>& strided, With with) {
  const Places<2, kMapEach> places(strided);
  pdl_wait();
  pdl_launch_dependents();
  Compute<T> x[kMapEach];
  Compute<To> y[kMapEach];
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < strided.elems) x[u] = widen(in[places.at[1][u]]);
  }
  with([&](auto f) WICK_INLINE {
#pragma unroll
    for (u32 u = 0; u < kMapEach; ++u) {
      if (places.index[u] < strided.elems) y[u] = f(x[u]);
    }
  });
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < strided.elems) out[places.at[0][u]] = narrow<To>(y[u]);
  }
}

template <class To, class T, class With>
WICK_DEVICE void map_scalar(To* WICK_RESTRICT out, const T* WICK_RESTRICT a,
                            const T* WICK_RESTRICT b, const StridedIndex<3>& strided, With with) {
  const Places<3, kMapEach> places(strided);
  pdl_wait();
  pdl_launch_dependents();
  Compute<T> x[kMapEach], y[kMapEach];
  Compute<To> z[kMapEach];
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] >= strided.elems) continue;
    x[u] = widen(a[places.at[1][u]]);
    y[u] = widen(b[places.at[2][u]]);
  }
  with([&](auto f) WICK_INLINE {
#pragma unroll
    for (u32 u = 0; u < kMapEach; ++u) {
      if (places.index[u] < strided.elems) z[u] = f(x[u], y[u]);
    }
  });
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < strided.elems) out[places.at[0][u]] = narrow<To>(z[u]);
  }
}

}  // namespace wick::gpu
