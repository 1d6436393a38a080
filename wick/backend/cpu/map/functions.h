#pragma once

// The function of each row of ops.def under the row's name: that of wick/math, but for integer
// divisions, which are made for vectors here. For kernel sources only.

#include "wick/backend/cpu/dense_run.h"
#include "wick/math/arithmetic.h"
#include "wick/math/narrow.h"
#include "wick/math/scalar.h"

namespace wick::cpu::WICK_ISA {
namespace {
namespace fn {

using namespace math;  // rows that aren't defined below

template <Real T>
inline T div(T a, T b) {
  return math::div(a, b);
}
/// Truncated division; the caller has checked b != 0. The lowest integer over -1 wraps to itself.
/// Up to 32 bits, the quotient of two floats of twice the width truncates to the right integer: the
/// next integer is farther away than half a unit in the last place.
template <Whole T>
inline T div(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    return b == T{-1} ? neg(a) : static_cast<T>(a / b);
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(static_cast<math::i64>(static_cast<double>(a) / static_cast<double>(b)));
  } else {
    return static_cast<T>(static_cast<math::i32>(static_cast<float>(a) / static_cast<float>(b)));
  }
}

/// Remainder; the caller has checked b != 0 of integers.
template <Real T>
inline T rem(T a, T b) {
  return math::rem(a, b);
}
template <Whole T>
inline T rem(T a, T b) {
  return math::rem_from_quotient(a, b, div(a, b));
}

/// math::rem of floats whose quotient is at most 2^40, for which its first step is enough.
inline float rem_of_near(float a, float b) {
  const double top = static_cast<double>(math::abs(a)), bottom = static_cast<double>(math::abs(b));
  const double r = math::fma(-math::rint(top * (1.0 / bottom)), bottom, top);
  const bool differ = ((math::f32_bits(a) ^ math::f32_bits(b)) >> 31) != 0;
  const double rest = math::detail::remainder_from(r, bottom, differ & (r != 0.0));
  return math::detail::with_sign(static_cast<float>(rest), b);
}

}  // namespace fn

/// Calls the function of a row for elements of S, with arguments in the compute type.
#define WICK_ROW_CALL(name, ...)              \
  if constexpr (math::kSame<S, math::bf16>) { \
    return math::of_bf16::name(__VA_ARGS__);  \
  } else if constexpr (kNarrow<S>) {          \
    return math::of_f16::name(__VA_ARGS__);   \
  } else {                                    \
    return fn::name(__VA_ARGS__);             \
  }

/// y = f(x) for whole cache lines. kExact: f maps numbers of S to numbers of S, which needn't be
/// rounded.
template <class S, bool kExact, class F>
WICK_FN void map_lines(S* __restrict y, const S* __restrict x, int64_t n, const F& f) {
  if constexpr (kConvertsByRun<S>) {
    constexpr int64_t kN = kLine<S>;
    for (int64_t i = 0; i < n; i += kN) {
      alignas(64) float wide[kN];
      widen_run(wide, x + i, kN);
      for (int64_t j = 0; j < kN; ++j) wide[j] = f(wide[j]);
      if constexpr (kExact) {
        narrow_run_exact(y + i, wide, kN);
      } else {
        narrow_run(y + i, wide, kN);
      }
    }
  } else {
    const int64_t whole = n / kLine<S> * kLine<S>;
    for (int64_t i = 0; i < whole; ++i) y[i] = narrow<S>(f(widen(x[i])));
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
