#pragma once

// Every elementwise op under the name of its row in ops.def, for floats and integers: those of
// scalar.h and integer.h, and here the ones that are one operation of the processor for floats, and
// the comparisons.

#include "wick/math/integer.h"
#include "wick/math/scalar.h"

namespace wick::math {

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

/// Whether a stands so to b. Of floats as IEEE 754 has it: a NaN is unequal to everything and not
/// in any order, −0 equals +0.
template <Number T>
WICK_FN bool eq(T a, T b) {
  return a == b;
}
template <Number T>
WICK_FN bool ne(T a, T b) {
  return a != b;
}
template <Number T>
WICK_FN bool lt(T a, T b) {
  return a < b;
}
template <Number T>
WICK_FN bool le(T a, T b) {
  return a <= b;
}
template <Number T>
WICK_FN bool gt(T a, T b) {
  return a > b;
}
template <Number T>
WICK_FN bool ge(T a, T b) {
  return a >= b;
}

}  // namespace wick::math
