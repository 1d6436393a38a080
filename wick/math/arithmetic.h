#pragma once

// The elementwise ops that are one operation of the processor, for floats and for integers, which
// wrap: written once for every backend under the names of their rows in ops.def.

#include "wick/math/fn.h"
#include "wick/math/scalar.h"

namespace wick::math {

template <class T>
concept Real = kSame<T, float> || kSame<T, double>;
template <class T>
concept Whole = kSame<T, u8> || kSame<T, u32> || kSame<T, i16> || kSame<T, i32> || kSame<T, i64>;

namespace detail {

/// The unsigned type in which a type's integers wrap; at least 32 bits, or C++ promotes to int.
template <class T>
struct WrapType {
  using type = u32;
};
template <class T>
requires(sizeof(T) == 8) struct WrapType<T> {
  using type = u64;
};
template <class T>
using Wrap = typename WrapType<T>::type;

}  // namespace detail

/// Integers, modulo 2^bits: every input; exact. The lowest number is its own negative.
template <Whole T>
WICK_FN T neg(T x) {
  using W = detail::Wrap<T>;
  return static_cast<T>(W{0} - static_cast<W>(x));
}
template <Whole T>
WICK_FN T abs(T x) {
  if constexpr (static_cast<T>(-1) < T{0}) {
    return x < T{0} ? neg(x) : x;
  } else {
    return x;
  }
}
template <Whole T>
WICK_FN T sqr(T x) {
  using W = detail::Wrap<T>;
  return static_cast<T>(static_cast<W>(x) * static_cast<W>(x));
}
template <Whole T>
WICK_FN T add(T a, T b) {
  using W = detail::Wrap<T>;
  return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
}
template <Whole T>
WICK_FN T sub(T a, T b) {
  using W = detail::Wrap<T>;
  return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
}
template <Whole T>
WICK_FN T mul(T a, T b) {
  using W = detail::Wrap<T>;
  return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
}
template <Whole T>
WICK_FN T maximum(T a, T b) {
  return a > b ? a : b;
}
template <Whole T>
WICK_FN T minimum(T a, T b) {
  return a < b ? a : b;
}
/// Truncated; b must not be 0. The lowest number over −1 is itself.
template <Whole T>
WICK_FN T div(T a, T b) {
  if constexpr (static_cast<T>(-1) < T{0}) {
    return b == T(-1) ? neg(a) : static_cast<T>(a / b);
  } else {
    return static_cast<T>(a / b);
  }
}

/// Floats. Every input; correctly rounded.
template <Real T>
WICK_FN T add(T a, T b) {
  return a + b;
}
template <Real T>
WICK_FN T sub(T a, T b) {
  return a - b;
}
template <Real T>
WICK_FN T mul(T a, T b) {
  return a * b;
}
template <Real T>
WICK_FN T div(T a, T b) {
  return a / b;
}
/// silu(a)·b, the product rounded once more.
template <Real T>
WICK_FN T silu_mul(T a, T b) {
  return silu(a) * b;
}

}  // namespace wick::math
