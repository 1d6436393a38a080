#pragma once

// The elementwise ops of integers under the names of their rows in ops.def. Results wrap modulo
// 2^bits. Unless a function says otherwise, every input is valid and results are exact.

#include "wick/math/fn.h"

namespace wick::math {

namespace detail {

/// The unsigned type in which an integer type wraps; it has at least 32 bits, because C++ promotes
/// smaller types to int.
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

/// neg and abs map the lowest number to itself.
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
/// Truncating division; b must not be 0. The lowest number divided by −1 gives itself.
template <Whole T>
WICK_FN T div(T a, T b) {
  if constexpr (detail::kIsSigned<T>) {
    return b == T(-1) ? neg(a) : static_cast<T>(a / b);
  } else {
    return static_cast<T>(a / b);
  }
}
/// a − b·floor(a/b), with the sign of b, which must not be 0. The lowest number and −1 give 0.
template <Whole T>
WICK_FN T rem(T a, T b) {
  if constexpr (detail::kIsSigned<T>) {
    const T r = b == T(-1) ? T{0} : static_cast<T>(a % b);
    return static_cast<T>(((r != T{0}) & ((r ^ b) < 0)) ? r + b : r);
  } else {
    return static_cast<T>(a % b);
  }
}
/// rem(a, b) from quotient = div(a, b), for processors that divide integers by other means.
template <Whole T>
WICK_FN T rem_from_quotient(T a, T b, T quotient) {
  const T r = sub(a, mul(quotient, b));
  if constexpr (detail::kIsSigned<T>) {
    return static_cast<T>(((r != T{0}) & ((r ^ b) < 0)) ? r + b : r);
  } else {
    return r;
  }
}

/// x if x is positive, else 0.
template <Whole T>
WICK_FN T relu(T x) {
  return x > T{0} ? x : T{0};
}
/// −1, 0 or 1 by the sign of x.
template <Whole T>
WICK_FN T sign(T x) {
  if constexpr (detail::kIsSigned<T>) {
    return static_cast<T>((x > T{0} ? 1 : 0) - (x < T{0} ? 1 : 0));
  } else {
    return static_cast<T>(x != T{0} ? 1 : 0);
  }
}
/// min(max(x, low), high).
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

/// Shifts a by `count` bits. Left shifts fill with zeros, right shifts with the sign (0 for
/// unsigned types). The count is read as unsigned. A count of the type's width or more, which
/// includes negative counts, gives 0, or −1 for the right shift of a negative number.
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
    // Uses logical shifts, because the arithmetic shift has no vector form for 64 bits before
    // AVX-512.
    const W fill = a < T{0} ? ~W{0} : W{0};
    return static_cast<T>(((static_cast<W>(a) ^ fill) >> held) ^ fill);
  } else {
    return static_cast<T>(n <= kMost ? static_cast<W>(a) >> held : W{0});
  }
}

}  // namespace wick::math
