#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/powers.h"

// Reference for 16-bit floats, written from their definition.

namespace wick::reference {

/// Decodes a 16-bit float with `mantissa` explicit mantissa bits.
inline double decode_half(uint16_t bits, int mantissa) {
  const int exponent_bits = 15 - mantissa;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << mantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const long double part = fraction * test::power_of_two(-mantissa);
  const long double significand = exponent == 0 ? part : 1 + part;
  return sign * static_cast<double>(significand *
                                    test::power_of_two((exponent == 0 ? 1 : exponent) - bias));
}

/// Returns the nearest value of such a type, ties to even, as a float.
inline float round_to_half(float x, int mantissa) {
  if (!std::isfinite(x) || x == 0.0f) return x;
  const int bias = (1 << (14 - mantissa)) - 1;
  const int exponent = std::max(test::exponent_of(double{x}), 1 - bias);
  const long double units = std::fabs(x) * test::power_of_two(mantissa - exponent);
  const long double y = test::to_nearest_integer(units) * test::power_of_two(exponent - mantissa);
  const long double largest = (2 - test::power_of_two(-mantissa)) * test::power_of_two(bias);
  return std::copysign(y > largest ? std::numeric_limits<float>::infinity() : static_cast<float>(y),
                       x);
}

inline uint16_t read_u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

inline float read_f16(const uint8_t* p) { return static_cast<float>(decode_half(read_u16(p), 10)); }

}  // namespace wick::reference
