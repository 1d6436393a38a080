#pragma once

// The 8-bit floats by their definition, for tests: a value is looked up among all 256 bytes.

#include <gtest/gtest.h>

#include <cmath>

#include "emu/tests/reference.h"

namespace emu::test {

/// A sign, `exponent` bits of exponent with a bias, and `fraction` bits of fraction.
struct Float8Format {
  int exponent, fraction, bias;
  bool fnuz;  // one zero and one NaN, 0x80, and no infinity

  bool has_infinity() const { return !fnuz && exponent == 5; }
  bool is_nan(u32 byte) const {
    if (fnuz) return byte == 0x80;
    return has_infinity() ? (byte & 0x7f) > 0x7c : (byte & 0x7f) == 0x7f;
  }
  bool is_infinite(u32 byte) const { return has_infinity() && (byte & 0x7f) == 0x7c; }
  double value(u32 byte) const {
    if (is_nan(byte)) return std::nan("");
    const double sign = byte >> 7 != 0 ? -1 : 1;
    if (is_infinite(byte)) return sign * INFINITY;
    const int e = static_cast<int>(byte >> fraction & ((1u << exponent) - 1));
    const double f = static_cast<double>(byte & ((1u << fraction) - 1)) / (1 << fraction);
    return sign * (e == 0 ? std::ldexp(f, 1 - bias) : std::ldexp(1 + f, e - bias));
  }
  /// The byte of a number that the format has.
  u32 byte_of(double x) const {
    for (u32 byte = 0; byte < 256; ++byte) {
      if (value(byte) == x) return byte;
    }
    ADD_FAILURE() << x << " isn't an 8-bit float";
    return 0;
  }
  /// The byte of the largest finite number.
  u32 most() const { return fnuz ? 0x7f : has_infinity() ? 0x7b : 0x7e; }

  /// Returns whether `byte` is `x` rounded to the nearest number, ties to even, or truncated. With
  /// `clamps`, finite numbers that are too large become the largest one.
  bool is_rounded(float x, u32 byte, bool clamps, bool truncated = false) const {
    if (x != x) return is_nan(byte);
    const bool negative = std::signbit(x);
    const double magnitude = std::fabs(static_cast<double>(x));
    u32 best = 0;
    for (u32 code = 1; code <= most(); ++code) {
      const double below = value(code - 1), above = value(code), middle = (below + above) / 2;
      const bool up = truncated ? magnitude >= above
                                : magnitude > middle || (magnitude == middle && code % 2 == 0);
      if (up) best = code;
    }
    // Beyond half a step above the largest number, it isn't the nearest one any longer.
    const double last = value(most()), step = last - value(most() - 1);
    const bool beyond = truncated ? magnitude >= last + step
                                  : magnitude > last + step / 2 ||
                                        (magnitude == last + step / 2 && most() % 2 == 1);
    if (std::isinf(x) || (beyond && !clamps)) {
      if (fnuz) return byte == 0x80;
      return byte >> 7 == u32{negative} && (has_infinity() ? is_infinite(byte) : is_nan(byte));
    }
    if (fnuz && best == 0) return byte == 0;
    return byte == (best | u32{negative} << 7);
  }
};

inline constexpr Float8Format kFp8Fnuz{4, 3, 8, true}, kBf8Fnuz{5, 2, 16, true};
inline constexpr Float8Format kFp8Ocp{4, 3, 7, false}, kBf8Ocp{5, 2, 15, false};

}  // namespace emu::test
