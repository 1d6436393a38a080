#pragma once

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

// Powers of two, binary exponents and rounding for references, which call them for each element
// that they decode, round or encode. std::ldexp and std::ilogb are calls into the C library and
// would take half of the time of the parity tests.

namespace wick::test {

/// Returns 2^exponent, which is exact. The exponent is between -1200 and 1200.
inline long double power_of_two(int exponent) {
  constexpr int kLimit = 1200;  // f64 needs 1126
  static constexpr std::array<long double, 2 * kLimit + 1> kPowers = [] {
    std::array<long double, 2 * kLimit + 1> powers{};
    powers[kLimit] = 1;
    for (size_t i = 1; i <= kLimit; ++i) {
      powers[kLimit + i] = powers[kLimit + i - 1] * 2;
      powers[kLimit - i] = powers[kLimit - i + 1] / 2;
    }
    return powers;
  }();
  return kPowers.at(static_cast<size_t>(exponent + kLimit));
}

/// Returns the exponent e of x = ±m * 2^e with 1 <= m < 2, like std::ilogb.
inline int exponent_of(double x) {
  const int field = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52 & 0x7ff);
  return field != 0 && field != 0x7ff ? field - 1023 : std::ilogb(x);
}
inline int exponent_of(long double x) {
#if LDBL_MANT_DIG == 64  // the sign and the exponent are the last two of ten bytes
  uint16_t sign_and_exponent = 0;
  std::memcpy(&sign_and_exponent, reinterpret_cast<const char*>(&x) + 8, 2);
  const int field = sign_and_exponent & 0x7fff;
  if (field != 0 && field != 0x7fff) return field - 16383;
#endif
  return std::ilogb(x);
}

/// Rounds x >= 0 to the nearest integer, ties to even: at 2^(LDBL_MANT_DIG - 1), adjacent long
/// doubles are one apart.
inline long double to_nearest_integer(long double x) {
  constexpr long double kWhole = 1 / LDBL_EPSILON;  // 2^(LDBL_MANT_DIG - 1)
  return x < kWhole ? (x + kWhole) - kWhole : x;
}

}  // namespace wick::test
