#pragma once

// The elementwise ops under the names of their rows in ops.def, for floats and integers. scalar.h
// and integer.h have most of them; this header adds comparisons, logic, and the float ops that are
// one machine operation.

#include "wick/math/integer.h"
#include "wick/math/scalar.h"

namespace wick::math {

/// Arithmetic of floats. Every input; correctly rounded.
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
/// silu(a)·b; the product is rounded once more.
template <Real T>
WICK_FN T silu_mul(T a, T b) {
  return silu(a) * b;
}

/// x·by, rounded, plus a number, rounded.
template <Number T>
WICK_FN T affine(T x, T by, T plus) {
  return add(mul(x, by), plus);
}
/// pow(x, exponent) as an op of one operand and a number.
template <Real T>
WICK_FN T powf(T x, T exponent) {
  return pow(x, exponent);
}

/// Elementwise comparison of a and b. For floats as in IEEE 754: NaN is unequal to everything and
/// unordered, −0 equals +0.
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

/// Logic on numbers: only zeros are false, and NaN is true.
template <Number T>
WICK_FN bool logical_and(T a, T b) {
  return (a != T{0}) & (b != T{0});
}
template <Number T>
WICK_FN bool logical_or(T a, T b) {
  return (a != T{0}) | (b != T{0});
}
template <Number T>
WICK_FN bool logical_xor(T a, T b) {
  return (a != T{0}) != (b != T{0});
}
template <Number T>
WICK_FN bool logical_not(T x) {
  return x == T{0};
}
template <Number T>
WICK_FN bool to_bool(T x) {
  return x != T{0};
}

}  // namespace wick::math
