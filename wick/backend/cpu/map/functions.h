#pragma once

// The function of each row of ops.def by the row's name: floats from wick/math, plus what a
// processor does in one instruction and the integers. Included by kernel sources only.

#include "wick/backend/cpu/tile.h"
#include "wick/math/scalar.h"

namespace wick::cpu::WICK_ISA {
namespace {
namespace fn {

using namespace math;  // a row that isn't below is the function of that name

template <class T>
concept Whole = !kNarrow<T> && !math::kSame<T, float> && !math::kSame<T, double>;
template <class T>
concept Real = !Whole<T>;
/// The unsigned type in which a type's integers wrap; at least 32 bits, or C++ promotes to int.
template <class T>
struct WrapType {
  using type = math::u32;
};
template <class T>
requires(sizeof(T) == 8) struct WrapType<T> {
  using type = math::u64;
};
template <class T>
using Wrap = typename WrapType<T>::type;

using math::abs;
using math::maximum;
using math::minimum;
using math::neg;
using math::sqr;

template <Whole T>
inline T neg(T x) {
  return static_cast<T>(Wrap<T>{0} - static_cast<Wrap<T>>(x));
}
template <Whole T>
inline T abs(T x) {
  return x < T{0} ? neg(x) : x;
}
template <Whole T>
inline T sqr(T x) {
  return static_cast<T>(static_cast<Wrap<T>>(x) * static_cast<Wrap<T>>(x));
}

template <Real T>
inline T add(T a, T b) {
  return a + b;
}
template <Real T>
inline T sub(T a, T b) {
  return a - b;
}
template <Real T>
inline T mul(T a, T b) {
  return a * b;
}
template <Real T>
inline T div(T a, T b) {
  return a / b;
}
template <Real T>
inline T silu_mul(T a, T b) {
  return math::silu(a) * b;
}
template <Whole T>
inline T add(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
}
template <Whole T>
inline T sub(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
}
template <Whole T>
inline T mul(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
}
template <Whole T>
inline T maximum(T a, T b) {
  return a > b ? a : b;
}
template <Whole T>
inline T minimum(T a, T b) {
  return a < b ? a : b;
}
/// Truncated; the caller has seen to b != 0. The lowest integer over -1 wraps to itself. Up to 32
/// bits the quotient of two floats twice as wide truncates to the right integer: it can't reach the
/// next one, which is farther away than half a unit in its last place.
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

}  // namespace fn
}  // namespace
}  // namespace wick::cpu::WICK_ISA
