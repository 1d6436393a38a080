#pragma once

// Products that neither overflow nor underflow: an f64 with an exponent apart.

#include "wick/math/fn.h"

namespace wick::math {

/// mantissa · 2^exponent. The mantissas that scaled() and normalized() give are in [1, 2), or they
/// are 0, infinite or NaN. A product of n of them is below 2^n.
struct Scaled {
  double mantissa = 1;
  i64 exponent = 0;
};

/// x as such a number. Every input; exact.
WICK_FN Scaled scaled(double x) {
  const bool tiny = abs(x) < 0x1p-1022;
  const u64 bits = f64_bits(tiny ? x * 0x1p54 : x);
  const i64 biased = static_cast<i64>(bits >> 52 & 0x7ff);
  const bool special = biased == 0 || biased == 0x7ff;  // 0, infinite or NaN
  const u64 mantissa = (bits & 0x800fffffffffffffu) | 0x3ff0000000000000u;
  return {special ? x : bits_f64(mantissa), special ? 0 : biased - (tiny ? 1023 + 54 : 1023)};
}
/// The same number with its mantissa in [1, 2). Exact; the mantissa isn't denormal.
WICK_FN Scaled normalized(Scaled x) {
  const Scaled y = scaled(x.mantissa);
  return {y.mantissa, y.exponent + x.exponent};
}
/// a · b: the product of the mantissas is rounded to f64.
WICK_FN Scaled product(Scaled a, Scaled b) {
  return {a.mantissa * b.mantissa, a.exponent + b.exponent};
}

}  // namespace wick::math
