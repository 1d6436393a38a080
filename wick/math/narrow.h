#pragma once

// The elementwise functions for results that are stored in 16 or 8 bits: computed in f32 like all
// functions of wick, with polynomials no longer than such results need and without divisions.
// Relative errors are below 2^-15, so that a rounded f16 is within 0.54 ulp of the true value.
//
// The same promises as in scalar.h hold: branch-free, fma spelled out, the same bits everywhere.
// Coefficients: tools/math_coefficients.sollya; errors: tests/math, all inputs.

#include "wick/math/arithmetic.h"
#include "wick/math/fn.h"
#include "wick/math/scalar.h"

namespace wick::math::narrow {

// What is one operation or two is taken as it is.
using math::abs;
using math::add;
using math::div;
using math::floor;
using math::maximum;
using math::minimum;
using math::mul;
using math::neg;
using math::recip;
using math::relu;
using math::rint;
using math::round;
using math::rsqrt;
using math::sqr;
using math::sqrt;
using math::square;
using math::sub;

namespace detail {

inline constexpr float kLog2E = 0x1.715476p0f;
inline constexpr float kShift = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits

/// 2^f for |f| ≤ ½. Relative error 2^-18.4.
WICK_FN float exp2_fraction(float f) {
  float p = 0x1.3a02fp-7f;
  p = fma(p, f, 0x1.c9fc9cp-5f);
  p = fma(p, f, 0x1.ec0378p-3f);
  p = fma(p, f, 0x1.62e12cp-1f);
  return fma(p, f, 1.0f);
}

/// 1/d for 1 ≤ d ≤ 2: a parabola and one step that cubes its error. Relative error 2^-19.8.
WICK_FN float recip_1_to_2(float d) {
  float r = 0x1.4afd76p-2f;
  r = fma(r, d, -0x1.745d2p0f);
  r = fma(r, d, 0x1.0f83e4p1f);
  const float e = fma(-d, r, 1.0f);
  return fma(r, fma(e, e, e), r);
}

/// sigmoid(x) = whole·part² for |x| ≤ 120, else or for NaN anything. Both are normal numbers, and
/// part is 1 for x ≥ 0.
struct Sigmoid {
  float whole, part;
};
WICK_FN Sigmoid sigmoid_parts(float x) {
  // part² = exp(−|x|), whole = 1/(1 + part²).
  constexpr float kHalf = -0.5f * kLog2E;
  const float y = abs(x);
  const float t = fma(y, kHalf, kShift);
  const float p = exp2_fraction(fma(y, kHalf, kShift - t));
  const float s = bits_f32(f32_bits(p) + (f32_bits(t) << 23));
  return {recip_1_to_2(fma(s, s, 1.0f)), x < 0.0f ? s : 1.0f};
}

}  // namespace detail

/// e to the power x, as the square of exp(x/2), which is a normal number for every x that matters.
/// Every input: overflows to inf, underflows through the denormals to 0.
WICK_FN float exp(float x) {
  constexpr float kHalf = 0.5f * detail::kLog2E;
  x = at_most(at_least(x, -105.0f), 89.5f);
  const float t = fma(x, kHalf, detail::kShift);
  const float p = detail::exp2_fraction(fma(x, kHalf, detail::kShift - t));
  const float s = bits_f32(f32_bits(p) + (f32_bits(t) << 23));
  return fma(s, s, x - x);  // 0, or NaN, which s needn't be: its exponent was added as an integer
}

/// 1/(1 + exp(−x)). Every input; the tail for large negative x follows exp(x) into the denormals.
WICK_FN float sigmoid(float x) {
  x = at_most(at_least(x, -120.0f), 120.0f);
  const detail::Sigmoid s = detail::sigmoid_parts(x);
  return fma(s.whole * s.part, s.part, x - x);  // plus 0, or NaN
}

/// x·sigmoid(x). Every input; silu(−inf) is the limit −0.
WICK_FN float silu(float x) {
  x = at_least(x, -120.0f);
  const detail::Sigmoid s = detail::sigmoid_parts(at_most(x, 120.0f));
  return ((x * s.whole) * s.part) * s.part;
}
WICK_FN float silu_mul(float a, float b) { return silu(a) * b; }

/// Hyperbolic tangent: with e = exp(−2|x|) − 1, exact where it is small, −e/(2 + e). Every input.
WICK_FN float tanh(float x) {
  constexpr float kBiased = detail::kShift + 127.0f;  // the low bits are an exponent
  constexpr float kTwice = -2.0f * detail::kLog2E;
  const float y = at_most(abs(x), 20.0f);
  const float t = fma(y, kTwice, kBiased);
  const float f = fma(y, kTwice, kBiased - t);
  const float s = bits_f32(f32_bits(t) << 23);
  float q = 0x1.3b29dcp-7f;  // 2^f = 1 + f·q, relative error of f·q 2^-16
  q = fma(q, f, 0x1.c96b52p-5f);
  q = fma(q, f, 0x1.ebff0ap-3f);
  q = fma(q, f, 0x1.62e2d6p-1f);
  const float e = fma(s, f * q, s - 1.0f);
  const float result = e * detail::recip_1_to_2(2.0f + e);
  return bits_f32((f32_bits(result) & 0x7fffffffu) | (f32_bits(x) & 0x80000000u));
}

/// Natural logarithm. log(±0) = −inf, NaN below zero; denormals are right.
WICK_FN float log(float x) {
  constexpr u32 kLow = 0x3f2aaaabu;  // 2/3: x = 2^k·m with m in [2/3, 4/3)
  const bool denormal = x < 0x1p-126f;
  const u32 b = f32_bits(denormal ? x * 0x1p23f : x) - kLow;
  const float k = static_cast<float>(static_cast<i32>(b) >> 23) - (denormal ? 23.0f : 0.0f);
  const float f = bits_f32((b & 0x007fffffu) + kLow) - 1.0f;
  float p = -0x1.89231cp-3f;
  p = fma(p, f, 0x1.cbb564p-3f);
  p = fma(p, f, -0x1.fd6528p-3f);
  p = fma(p, f, 0x1.54715ap-2f);
  p = fma(p, f, -0x1.0001a8p-1f);
  const float y = fma(k, 0x1.62e43p-1f, fma(p, f * f, f));
  return y + math::detail::log_special(x);
}

}  // namespace wick::math::narrow
