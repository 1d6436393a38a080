#pragma once

// The elementwise ops of integers, under the names of their rows in ops.def. Everything wraps
// modulo 2^bits; every input and exact, unless a function says otherwise.

#include "wick/math/fn.h"

namespace wick::math {

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

template <class T>
inline constexpr bool kIsSigned = static_cast<T>(-1) < T{0};

}  // namespace detail

/// The lowest number is its own negative, and its own magnitude.
template <Whole T>
WICK_FN T neg(T x) {
  using W = detail::Wrap<T>;
  return static_cast<T>(W{0} - static_cast<W>(x));
}
template <Whole T>
WICK_FN T abs(T x) {
  if constexpr (detail::kIsSigned<T>) {
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
  if constexpr (detail::kIsSigned<T>) {
    return b == T(-1) ? neg(a) : static_cast<T>(a / b);
  } else {
    return static_cast<T>(a / b);
  }
}
/// a − b·floor(a/b): the sign is that of b, which must not be 0. The lowest number over −1 leaves
/// 0.
template <Whole T>
WICK_FN T rem(T a, T b) {
  if constexpr (detail::kIsSigned<T>) {
    const T r = b == T(-1) ? T{0} : static_cast<T>(a % b);
    return static_cast<T>(((r != T{0}) & ((r ^ b) < 0)) ? r + b : r);
  } else {
    return static_cast<T>(a % b);
  }
}
/// The same from quotient = div(a, b), for processors that divide integers by other means.
template <Whole T>
WICK_FN T rem_from_quotient(T a, T b, T quotient) {
  const T r = sub(a, mul(quotient, b));
  if constexpr (detail::kIsSigned<T>) {
    return static_cast<T>(((r != T{0}) & ((r ^ b) < 0)) ? r + b : r);
  } else {
    return r;
  }
}

/// x where positive, else 0.
template <Whole T>
WICK_FN T relu(T x) {
  return x > T{0} ? x : T{0};
}
/// −1, 0 or 1.
template <Whole T>
WICK_FN T sign(T x) {
  if constexpr (detail::kIsSigned<T>) {
    return static_cast<T>((x > T{0} ? 1 : 0) - (x < T{0} ? 1 : 0));
  } else {
    return static_cast<T>(x != T{0} ? 1 : 0);
  }
}
/// x held within [low, high]; high wins where the bounds cross.
template <Whole T>
WICK_FN T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}

template <Whole T>
WICK_FN T bitwise_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <Whole T>
WICK_FN T bitwise_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <Whole T>
WICK_FN T bitwise_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <Whole T>
WICK_FN T bitwise_not(T x) {
  return static_cast<T>(~x);
}

/// a shifted by so many bits, filled with zeros from the right, and from the left with the sign (an
/// unsigned type's is 0). The count is read as unsigned; one of the type's width or more, so also a
/// negative one, shifts everything out: 0, or −1 for the right shift of a negative number.
template <Whole T>
WICK_FN T shift_left(T a, T count) {
  using W = detail::Wrap<T>;
  const W n = static_cast<W>(count);
  const W shifted = static_cast<W>(a) << (n & (8 * sizeof(W) - 1));
  return static_cast<T>(n < 8 * sizeof(T) ? shifted : W{0});
}
template <Whole T>
WICK_FN T shift_right(T a, T count) {
  using W = detail::Wrap<T>;
  constexpr W kMost = 8 * sizeof(T) - 1;
  const W n = static_cast<W>(count);
  const W held = n < kMost ? n : kMost;
  if constexpr (detail::kIsSigned<T>) {
    // Logical shifts do what the arithmetic one does, which has no vector form for 64 bits before
    // AVX-512.
    const W fill = a < T{0} ? ~W{0} : W{0};
    return static_cast<T>(((static_cast<W>(a) ^ fill) >> held) ^ fill);
  } else {
    return static_cast<T>(n <= kMost ? static_cast<W>(a) >> held : W{0});
  }
}

}  // namespace wick::math
