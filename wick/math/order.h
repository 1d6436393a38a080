#pragma once

// Sign, order and class of numbers. The conventions of wick/math/scalar.h hold here.

#include "wick/math/fn.h"

namespace wick::math {

/// −x. Every input; exact.
WICK_FN float neg(float x) { return -x; }
WICK_FN double neg(double x) { return -x; }

/// x if x is positive, else +0; NaN stays NaN. Exact.
WICK_FN float relu(float x) { return x <= 0.0f ? 0.0f : x; }
WICK_FN double relu(double x) { return x <= 0.0 ? 0.0 : x; }

/// ±1 by the sign of x; zeros and NaN are unchanged. Exact.
WICK_FN float sign(float x) {
  const float one = bits_f32(0x3f800000u | (f32_bits(x) & 0x80000000u));
  return ((x < 0.0f) | (x > 0.0f)) ? one : x;
}
WICK_FN double sign(double x) {
  const double one = bits_f64(0x3ff0000000000000u | (f64_bits(x) & 0x8000000000000000u));
  return ((x < 0.0) | (x > 0.0)) ? one : x;
}

/// Whether x is NaN; whether x is infinite.
WICK_FN bool isnan(float x) { return (f32_bits(x) & 0x7fffffffu) > 0x7f800000u; }
WICK_FN bool isnan(double x) { return (f64_bits(x) & 0x7fffffffffffffffu) > 0x7ff0000000000000u; }
WICK_FN bool isinf(float x) { return (f32_bits(x) & 0x7fffffffu) == 0x7f800000u; }
WICK_FN bool isinf(double x) { return (f64_bits(x) & 0x7fffffffffffffffu) == 0x7ff0000000000000u; }

/// The larger of two numbers. NaN if either is NaN, −0 < +0; exact.
WICK_FN float maximum(float a, float b) {
  const float larger = ((a > b) | (a != a)) ? a : b;
  return a == b ? bits_f32(f32_bits(a) & f32_bits(b)) : larger;
}
WICK_FN double maximum(double a, double b) {
  const double larger = ((a > b) | (a != a)) ? a : b;
  return a == b ? bits_f64(f64_bits(a) & f64_bits(b)) : larger;
}

/// The smaller of two numbers. NaN if either is NaN, −0 < +0; exact.
WICK_FN float minimum(float a, float b) {
  const float smaller = ((a < b) | (a != a)) ? a : b;
  return a == b ? bits_f32(f32_bits(a) | f32_bits(b)) : smaller;
}
WICK_FN double minimum(double a, double b) {
  const double smaller = ((a < b) | (a != a)) ? a : b;
  return a == b ? bits_f64(f64_bits(a) | f64_bits(b)) : smaller;
}

/// minimum(maximum(x, low), high): NaN in any of the three gives NaN, and high wins if low > high.
/// Exact.
WICK_FN float clamp(float x, float low, float high) { return minimum(maximum(x, low), high); }
WICK_FN double clamp(double x, double low, double high) { return minimum(maximum(x, low), high); }

}  // namespace wick::math
