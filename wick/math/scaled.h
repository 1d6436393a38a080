#pragma once

// Products that neither overflow nor underflow: numbers as an f64 mantissa with a separate
// exponent.

#include "wick/math/fn.h"

namespace wick::math {

/// mantissa · 2^exponent. The mantissas that scaled() and normalized() return have a magnitude in
/// [1, 2), or are 0, infinite or NaN. The magnitude of a product of n such mantissas is below 2^n.
struct Scaled {
  double mantissa = 1;
  i64 exponent = 0;
};

/// Converts x to a Scaled number. Exact for every x.
WICK_FN Scaled scaled(double x) {
  const bool tiny = abs(x) < 0x1p-1022;
  const u64 bits = f64_bits(tiny ? x * 0x1p54 : x);
  const i64 biased = static_cast<i64>(bits >> 52 & 0x7ff);
  const bool special = biased == 0 || biased == 0x7ff;  // 0, infinite or NaN
  const u64 mantissa = (bits & 0x800fffffffffffffu) | 0x3ff0000000000000u;
  return {special ? x : bits_f64(mantissa), special ? 0 : biased - (tiny ? 1023 + 54 : 1023)};
}
/// x with its mantissa moved to [1, 2). Exact. x.mantissa must not be denormal.
WICK_FN Scaled normalized(Scaled x) {
  const Scaled y = scaled(x.mantissa);
  return {y.mantissa, y.exponent + x.exponent};
}
/// a · b: the product of the mantissas is rounded to f64.
WICK_FN Scaled product(Scaled a, Scaled b) {
  return {a.mantissa * b.mantissa, a.exponent + b.exponent};
}
/// The f64 nearest to x, rounded once. The magnitude of x.mantissa is in [1, 2^60), or x.mantissa
/// is 0, infinite or NaN.
WICK_FN double value(Scaled x) {
  const auto power_of_two = [](i64 exponent) {
    return bits_f64(static_cast<u64>(exponent + 1023) << 52);
  };
  const auto clamped = [](i64 e, i64 limit) { return e > limit ? limit : e < -limit ? -limit : e; };
  // The first factor leaves a normal number, so only the second rounds.
  const i64 first = clamped(x.exponent, 960);
  return x.mantissa * power_of_two(first) * power_of_two(clamped(x.exponent - first, 1000));
}

}  // namespace wick::math
