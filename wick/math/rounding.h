#pragma once

// Rounding to integers, and the remainder. The conventions of wick/math/scalar.h hold here.

#include "wick/math/fn.h"

namespace wick::math {

/// The nearest integer, ties away from zero. Every input; exact.
WICK_FN float round(float x) {
  const float a = abs(x);
  const float low = floor(a);
  const float y = low + (a - low >= 0.5f ? 1.0f : 0.0f);
  return bits_f32(f32_bits(y) | (f32_bits(x) & 0x80000000u));
}
WICK_FN double round(double x) {
  const double a = abs(x);
  const double low = floor(a);
  const double y = low + (a - low >= 0.5 ? 1.0 : 0.0);
  return bits_f64(f64_bits(y) | (f64_bits(x) & 0x8000000000000000u));
}

namespace detail {

/// The remainder of |a| by |b| in [0, |b|], from `centred`, which is in [−|b|/2, |b|/2]. If the
/// signs of a and b differ, the remainder is measured from the other end. The caller applies b's
/// sign.
template <class F>
WICK_FN F remainder_from(F centred, F magnitude, bool differ) {
  const F r = differ ? -centred : centred;
  return r < F(0) ? r + magnitude : r;
}

}  // namespace detail

/// a − b·floor(a/b), with b's sign, also for zeros. Exact, except that the result is rounded once
/// if the signs differ, which may give b. NaN for an infinite a and for b = 0. For an infinite b
/// the result is a, or b if the signs differ.
WICK_FN float rem(float a, float b) {
  // In double, the relative error of the quotient is at most 2^-51, so each step, which is exact,
  // removes 51 bits of the quotient. The exponents of two floats differ by at most 277.
  const double top = static_cast<double>(abs(a)), bottom = static_cast<double>(abs(b));
  const double divisor = bottom < detail::kInfF64 ? bottom : (bottom == bottom ? 0x1p200 : bottom);
  const double inverse = 1.0 / divisor;
  double r = fma(-rint(top * inverse), divisor, top);
  if (abs(r) > 0.75 * divisor) {
    r = fma(-rint(r * inverse), divisor, r);
    r = fma(-rint(r * inverse), divisor, r);
    r = fma(-rint(r * inverse), divisor, r);
    r = fma(-rint(r * inverse), divisor, r);
    r = fma(-rint(r * inverse), divisor, r);
  }
  const bool differ = ((f32_bits(a) ^ f32_bits(b)) >> 31) != 0;
  const double rest = detail::remainder_from(r, bottom, differ & (r != 0.0));
  return detail::with_sign(static_cast<float>(rest), b);
}
/// The double version is a loop whose length depends on the quotient: one iteration for every 52
/// bits.
WICK_FN double rem(double a, double b) {
  const double top = abs(a), bottom = abs(b);
  const bool good = (top < detail::kInfF64) & (bottom > 0.0);
  const bool finite = bottom < detail::kInfF64;
  const double divisor = (good & finite) ? bottom : 1.0;
  double r = (good & finite) ? top : 0.0;
  // Each step subtracts multiples of 2^e·divisor, which is 2^50 to 2^52 times smaller than r. The
  // quotient is correctly rounded, so the remainder is exact and at most half of 2^e·divisor.
  for (int round = 0; round < 44; ++round) {
    const double n = abs(r);
    if (n <= 0x1p52 * divisor) break;
    const int scaled_by = divisor < 0x1p-1022 ? 54 : 0;
    const double normal = scaled_by != 0 ? divisor * 0x1p54 : divisor;
    const int e = static_cast<int>(f64_bits(n) >> 52) - static_cast<int>(f64_bits(normal) >> 52) +
                  scaled_by - 51;
    const int half = e / 2;
    const double s1 = bits_f64(static_cast<u64>(half + 1023) << 52);
    const double s2 = bits_f64(static_cast<u64>(e - half + 1023) << 52);
    const double multiple = (divisor * s1) * s2;
    r = fma(-rint(r / multiple), multiple, r);
  }
  r = finite ? fma(-rint(r / divisor), divisor, r) : top;
  const bool differ = ((f64_bits(a) ^ f64_bits(b)) >> 63) != 0;
  const double rest = detail::remainder_from(r, bottom, differ & (r != 0.0));
  return good ? detail::with_sign(rest, b) : detail::kNaNF64;
}

}  // namespace wick::math
