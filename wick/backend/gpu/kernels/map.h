#pragma once

// Elementwise functions.
//
// Computes: out[i] = f(in[i]), f(a[i], b[i]) or in[i]·mul + add, in the compute type of the dtype,
// rounded once at the store.
// Index map: see walk.h; an item takes some packs or elements, a group's width apart.
// Bytes moved: each element read once and written once.

#include "wick/backend/gpu/kernels/map_ops.h"
#include "wick/backend/gpu/kernels/walk.h"
#include "wick/math/arithmetic.h"
#include "wick/math/narrow.h"

namespace wick::gpu {

/// Who divided by zero reports here.
struct Divisions {
  FaultLine* line;
  u64 note;
};

struct Integers {};
struct Floats {};
struct Real {};
/// Whether a row of ops.def with these dtypes has T.
template <class T, class Dtypes>
inline constexpr bool kHas = kSame<Dtypes, Real> || math::Real<Compute<T>>;

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
#define WICK_BINARY(name, dtypes, ...)                                                           \
  struct name##_row {                                                                            \
    using Dtypes = dtypes;                                                                       \
    static constexpr bool kDivides = BinaryRow::name == BinaryRow::div;                          \
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

// ---- Packs ----

template <class T, class F>
WICK_DEVICE void map_packs(T* WICK_RESTRICT out, const T* WICK_RESTRICT in, const Nest<2>& nest,
                           u32 rest, F f) {
  constexpr u32 kPack = map_pack(sizeof(T), sizeof(T)), kUnroll = map_unroll(sizeof(T), sizeof(T));
  using P = Pack<T, kPack>;
  const Places<2, kUnroll> places(nest);
  wait_for_earlier();
  let_later_start();
  P x[kUnroll];
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] < nest.elems) x[u] = load_pack<T, kPack>(in + places.at[1][u]);
  }
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] >= nest.elems) continue;
    Compute<T> y[kPack];
#pragma unroll
    for (u32 i = 0; i < kPack; ++i) y[i] = f(x[u][i]);
    *reinterpret_cast<P*>(out + places.at[0][u]) = P::of(y);
  }
  if (is_rest(rest)) {
    const u64 at = u64{nest.elems} * kPack + item();
    out[at] = narrow<T>(f(widen(in[at])));
  }
}

/// Bit k of `repeated`: operand k of the inputs is one element along the innermost dim.
template <class T, class F>
WICK_DEVICE void map_packs(T* WICK_RESTRICT out, const T* WICK_RESTRICT a, const T* WICK_RESTRICT b,
                           const Nest<3>& nest, u32 rest, u32 repeated, F f) {
  constexpr u32 kPack = map_pack(sizeof(T), sizeof(T)), kUnroll = map_unroll(sizeof(T), sizeof(T));
  using P = Pack<T, kPack>;
  const bool one_a = (repeated & 1) != 0, one_b = (repeated & 2) != 0;
  const Places<3, kUnroll> places(nest);
  wait_for_earlier();
  let_later_start();
  P x[kUnroll], y[kUnroll];
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] >= nest.elems) continue;
    x[u] = load_pack<T, kPack>(a + places.at[1][u], one_a);
    y[u] = load_pack<T, kPack>(b + places.at[2][u], one_b);
  }
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] >= nest.elems) continue;
    Compute<T> z[kPack];
#pragma unroll
    for (u32 i = 0; i < kPack; ++i) z[i] = f(x[u][i], y[u][i]);
    *reinterpret_cast<P*>(out + places.at[0][u]) = P::of(z);
  }
  if (is_rest(rest)) {
    const u64 at = u64{nest.elems} * kPack + item();
    out[at] = narrow<T>(f(widen(a[one_a ? 0 : at]), widen(b[one_b ? 0 : at])));
  }
}

// ---- Singles: one kernel for all functions of a dtype ----

/// Calls body(row) with the row's struct, if it has T.
template <class T, class Body>
WICK_DEVICE void with_row(UnaryRow row, Body body) {
  switch (row) {
#define WICK_UNARY(name, ...)                                               \
  case UnaryRow::name:                                                      \
    if constexpr (kHas<T, typename name##_row::Dtypes>) body(name##_row()); \
    break;
#include "wick/op/ops.def"
  }
}
template <class T, class Body>
WICK_DEVICE void with_row(BinaryRow row, Body body) {
  switch (row) {
#define WICK_BINARY(name, ...)                                              \
  case BinaryRow::name:                                                     \
    if constexpr (kHas<T, typename name##_row::Dtypes>) body(name##_row()); \
    break;
#include "wick/op/ops.def"
  }
}

/// `with(body)` calls body(f) with the function of two or fewer operands.
template <class T, class With>
WICK_DEVICE void map_singles(T* WICK_RESTRICT out, const T* WICK_RESTRICT in, const Nest<2>& nest,
                             With with) {
  const Places<2, kMapEach> places(nest);
  wait_for_earlier();
  let_later_start();
  Compute<T> x[kMapEach];
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < nest.elems) x[u] = widen(in[places.at[1][u]]);
  }
  with([&](auto f) {
#pragma unroll
    for (u32 u = 0; u < kMapEach; ++u) {
      if (places.index[u] < nest.elems) x[u] = f(x[u]);
    }
  });
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < nest.elems) out[places.at[0][u]] = narrow<T>(x[u]);
  }
}

template <class T, class With>
WICK_DEVICE void map_singles(T* WICK_RESTRICT out, const T* WICK_RESTRICT a,
                             const T* WICK_RESTRICT b, const Nest<3>& nest, With with) {
  const Places<3, kMapEach> places(nest);
  wait_for_earlier();
  let_later_start();
  Compute<T> x[kMapEach], y[kMapEach];
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] >= nest.elems) continue;
    x[u] = widen(a[places.at[1][u]]);
    y[u] = widen(b[places.at[2][u]]);
  }
  with([&](auto f) {
#pragma unroll
    for (u32 u = 0; u < kMapEach; ++u) {
      if (places.index[u] < nest.elems) x[u] = f(x[u], y[u]);
    }
  });
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < nest.elems) out[places.at[0][u]] = narrow<T>(x[u]);
  }
}

/// x·mul, rounded, plus add, rounded.
template <class C>
struct Affine {
  C by, plus;
  WICK_DEVICE C operator()(C x) const { return math::add(math::mul(x, by), plus); }
};

}  // namespace wick::gpu
