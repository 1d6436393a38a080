#pragma once

// Scalar helpers that several tables use.

#include <algorithm>
#include <cfenv>
#include <limits>

#include "emu/tests/ops.h"

namespace emu::test {

using u8 = uint8_t;
using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

template <class T>
bool is_signalling(T x) {
  if (!(x != x)) return false;
  const uint64_t quiet = sizeof(T) == 8 ? uint64_t{1} << 51 : sizeof(T) == 4 ? 1 << 22 : 1 << 9;
  return (to_bits(x) & quiet) == 0;
}

template <class T>
T quiet_nan() {
  return static_cast<T>(std::numeric_limits<double>::quiet_NaN());
}

template <class T>
bool sign_of(T x) {
  return (to_bits(x) >> (8 * sizeof(T) - 1) & 1) != 0;
}

/// Numbers take precedence over NaN, and -0 is less than +0. With the IEEE bit, a signalling NaN
/// takes precedence.
template <class T>
T float_min(T a, T b) {
  if (ieee_mode() && (is_signalling(a) || is_signalling(b))) return quiet_nan<T>();
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return sign_of(a) ? a : b;
  return a < b ? a : b;
}

template <class T>
T float_max(T a, T b) {
  if (ieee_mode() && (is_signalling(a) || is_signalling(b))) return quiet_nan<T>();
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return sign_of(a) ? b : a;
  return a > b ? a : b;
}

/// Returns the median. If one operand is NaN, returns the least of the others.
template <class T>
T float_med3(T a, T b, T c) {
  if (a != a || b != b || c != c) return float_min(float_min(a, b), c);
  const T most = float_max(float_max(a, b), c);
  if (most == a) return float_max(b, c);
  return most == b ? float_max(a, c) : float_max(a, b);
}

template <class T>
T int_med3(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

/// Saturates a wide value to T.
template <class T>
T saturate(__int128 value) {
  if (value < std::numeric_limits<T>::min()) return std::numeric_limits<T>::min();
  if (value > std::numeric_limits<T>::max()) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

/// Returns a float's integer part as T, saturated; NaN becomes 0.
template <class T>
T to_integer(double x) {
  if (x != x) return 0;
  const double whole = std::trunc(x);
  if (whole <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (whole >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(whole);
}

/// Returns value * 2^exponent as f16, rounded to nearest even from an exact integer.
half half_from_fixed(__int128 value, int exponent, bool negative_zero);
half half_fma(half a, half b, half c);
/// Convert to f16 with rounding to nearest, or toward zero.
half half_nearest(double x);
half half_towards_zero(float x);
float bf16_value(u16 bits);

}  // namespace emu::test
