#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

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
  const double significand =
      exponent == 0 ? std::ldexp(fraction, -mantissa) : 1.0 + std::ldexp(fraction, -mantissa);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias);
}

/// Returns the nearest value of such a type, ties to even, as a float.
inline float round_to_half(float x, int mantissa) {
  if (!std::isfinite(x) || x == 0.0f) return x;
  const int bias = (1 << (14 - mantissa)) - 1;
  const int exponent = std::max(std::ilogb(x), 1 - bias);
  const double y = std::ldexp(
      std::nearbyint(std::ldexp(static_cast<double>(x), mantissa - exponent)), exponent - mantissa);
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, -mantissa), bias);
  if (std::fabs(y) > largest) return std::copysign(std::numeric_limits<float>::infinity(), x);
  return static_cast<float>(y);
}

inline uint16_t read_u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

inline float read_f16(const uint8_t* p) { return static_cast<float>(decode_half(read_u16(p), 10)); }

}  // namespace wick::reference
