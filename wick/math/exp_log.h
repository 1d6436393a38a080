#pragma once

// Exponentials and logarithms. The conventions of wick/math/scalar.h hold here.

#include "wick/math/fn.h"

namespace wick::math {

namespace detail {

/// exp(x) = exp(r)·s1·s2 with |r| ≤ ln(2)/2. s1 and s2 are powers of two that are normal numbers
/// even if their product isn't.
template <class F>
struct ExpSplit {
  F r, s1, s2;
};
/// exp(x) = (1 + r·q)·s1·s2 with q = (exp(r) − 1)/r.
template <class F>
struct ExpParts {
  F r, q, s1, s2;
};

/// (exp(r) − 1)/r for |r| ≤ ln(2)/2.
WICK_FN float exp_quotient(float r) {
  float q = 0x1.694ca6p-10f;
  q = fma(q, r, 0x1.12398p-7f);
  q = fma(q, r, 0x1.555a26p-5f);
  q = fma(q, r, 0x1.555492p-3f);
  q = fma(q, r, 0x1.fffffap-2f);
  return fma(q, r, 1.0f);
}
WICK_FN double exp_quotient(double r) {
  double q = 0x1.ad9303fd412f7p-26;
  q = fma(q, r, 0x1.28adfefa6f8a2p-22);
  q = fma(q, r, 0x1.71df18e255081p-19);
  q = fma(q, r, 0x1.a019995cdc7d6p-16);
  q = fma(q, r, 0x1.a01a012ff2941p-13);
  q = fma(q, r, 0x1.6c16c18477aefp-10);
  q = fma(q, r, 0x1.1111111126b3p-7);
  q = fma(q, r, 0x1.55555555506bap-5);
  q = fma(q, r, 0x1.55555555554fep-3);
  q = fma(q, r, 0x1.000000000000ap-1);
  return fma(q, r, 1.0);
}

/// Splits exp(x) for |x| ≤ 120. A NaN makes r a NaN.
WICK_FN ExpSplit<float> exp_split(float x) {
  // Adding 1.5·2^23 leaves round(x / ln 2) in the low bits; 254 is the sum of two exponent biases.
  constexpr float kShift = 0x1.8p23f + 254.0f;
  const float t = fma(x, 0x1.715476p0f, kShift);
  const float n = t - kShift;
  const float r = fma(n, 0x1.05c61p-29f, fma(n, -0x1.62e43p-1f, x));
  const u32 sum = f32_bits(t);
  const u32 half = sum >> 1;
  return {r, bits_f32(half << 23), bits_f32((sum - half) << 23)};
}
/// Splits exp(x + low), where low is small compared with 1.
WICK_FN ExpSplit<float> exp_split(float x, float low) {
  constexpr float kShift = 0x1.8p23f + 254.0f;
  const float t = fma(x, 0x1.715476p0f, kShift);
  const float n = t - kShift;
  const float r = fma(n, -0x1.62e43p-1f, x) + fma(n, 0x1.05c61p-29f, low);
  const u32 sum = f32_bits(t);
  const u32 half = sum >> 1;
  return {r, bits_f32(half << 23), bits_f32((sum - half) << 23)};
}
/// Splits exp(x) for |x| ≤ 800. A NaN makes r a NaN.
WICK_FN ExpSplit<double> exp_split(double x) {
  constexpr double kShift = 0x1.8p52 + 2046.0;
  const double t = fma(x, 0x1.71547652b82fep0, kShift);
  const double n = t - kShift;
  const double r = fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, x));
  const u64 sum = f64_bits(t);
  const u64 half = sum >> 1;
  return {r, bits_f64(half << 52), bits_f64((sum - half) << 52)};
}
WICK_FN ExpSplit<double> exp_split(double x, double low) {
  constexpr double kShift = 0x1.8p52 + 2046.0;
  const double t = fma(x, 0x1.71547652b82fep0, kShift);
  const double n = t - kShift;
  const double r = fma(n, -0x1.62e42fefa39efp-1, x) + fma(n, -0x1.abc9e3b39803fp-56, low);
  const u64 sum = f64_bits(t);
  const u64 half = sum >> 1;
  return {r, bits_f64(half << 52), bits_f64((sum - half) << 52)};
}

/// The parts of exp(x), in the domain of exp_split.
template <class F>
WICK_FN ExpParts<F> exp_parts(F x) {
  const ExpSplit<F> e = exp_split(x);
  return {e.r, exp_quotient(e.r), e.s1, e.s2};
}
/// The parts of exp(x + low), where low is small compared with 1, without an additional rounding.
template <class F>
WICK_FN ExpParts<F> exp_parts(F x, F low) {
  const ExpSplit<F> e = exp_split(x, low);
  return {e.r, exp_quotient(e.r), e.s1, e.s2};
}

/// 1/s for a power of two s.
WICK_FN float inverse_power(float s) { return bits_f32(0x7f000000u - f32_bits(s)); }
WICK_FN double inverse_power(double s) { return bits_f64(0x7fe0000000000000u - f64_bits(s)); }

/// (exp(r) − 1 − r)/r² for |r| ≤ ln(2)/2.
WICK_FN float expm1_quotient(float r) {
  float p = 0x1.9e0bfep-13f;
  p = fma(p, r, 0x1.6d436ap-10f);
  p = fma(p, r, 0x1.111306p-7f);
  p = fma(p, r, 0x1.5554fp-5f);
  p = fma(p, r, 0x1.555554p-3f);
  return fma(p, r, 0.5f);
}
WICK_FN double expm1_quotient(double r) {
  double p = 0x1.1f1a283b150dep-29;
  p = fma(p, r, 0x1.af5f17c20b7e7p-26);
  p = fma(p, r, 0x1.27e5133c9376dp-22);
  p = fma(p, r, 0x1.71ddf819199dep-19);
  p = fma(p, r, 0x1.a01a018e0fb81p-16);
  p = fma(p, r, 0x1.a01a01b000a1cp-13);
  p = fma(p, r, 0x1.6c16c16c1aafap-10);
  p = fma(p, r, 0x1.111111110f659p-7);
  p = fma(p, r, 0x1.555555555554dp-5);
  p = fma(p, r, 0x1.5555555555559p-3);
  return fma(p, r, 0.5);
}

/// exp(x) − 1 in the domain of exp_split.
template <class F>
WICK_FN F expm1_within(F x) {
  const ExpSplit<F> e = exp_split(x);
  const F tail = (e.r * e.r) * expm1_quotient(e.r);
  // Computes s1·(r + tail) + s1 − 1/s2. The powers of two are subtracted first, because their
  // difference is exact wherever cancellation would amplify an error.
  const F large = fma(e.s1, e.r, e.s1 - inverse_power(e.s2));
  return with_sign(fma(e.s1, tail, large) * e.s2, x);
}

}  // namespace detail

/// e to the power of x. Every input; overflows to inf, underflows through the denormals to 0. Worst
/// 0.892 ulp (f32), 0.87 (f64). Uses Cody and Waite's argument reduction with fma.
WICK_FN float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const auto e = detail::exp_parts(x);
  return fma(e.r * e.s1, e.q, e.s1) * e.s2;
}
/// exp(x) for x ≤ 0 or NaN, with the same bits as exp; it needs one clamp instead of two.
WICK_FN float exp_of_negative(float x) {
  x = x < -104.0f ? -104.0f : x;
  const auto e = detail::exp_parts(x);
  return fma(e.r * e.s1, e.q, e.s1) * e.s2;
}
/// exp(x) for −87 ≤ x ≤ 0 or NaN, with the same bits as exp; no result is denormal, so one power of
/// two suffices.
WICK_FN float exp_of_small(float x) {
  constexpr float kShift = 0x1.8p23f + 127.0f;
  const float t = fma(x, 0x1.715476p0f, kShift);
  const float n = t - kShift;
  float r = fma(n, -0x1.62e43p-1f, x);
  r = fma(n, 0x1.05c61p-29f, r);
  return fma(r, detail::exp_quotient(r), 1.0f) * bits_f32(f32_bits(t) << 23);
}
WICK_FN double exp(double x) {
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  const auto e = detail::exp_parts(x);
  return fma(e.r * e.s1, e.q, e.s1) * e.s2;
}

/// exp(x) − 1. Every input; −1 for large negative x, and expm1(−0) = −0. Worst 1.26 ulp (f32),
/// 1.43 (f64).
WICK_FN float expm1(float x) {
  x = x > 89.0f ? 89.0f : x;
  return detail::expm1_within(x < -20.0f ? -20.0f : x);
}
WICK_FN double expm1(double x) {
  x = x > 710.0 ? 710.0 : x;
  return detail::expm1_within(x < -40.0 ? -40.0 : x);
}

namespace detail {

/// The term that log adds for arguments that aren't positive and finite. It is a sum, because
/// compilers turn a select between a result and constants into branches if a conversion with
/// selects follows.
WICK_FN float log_special(float x) {
#if WICK_FN_NVCC_DEVICE
  float y;  // gives the special values in one instruction, except for negative denormals
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 0x1p64f));
  return (x > 0.0f) & (x < kInfF32) ? 0.0f : y;
#else
  const float above = x < kInfF32 ? 0.0f : x;
  return x > 0.0f ? above : (x == 0.0f ? -kInfF32 : kNaNF32);
#endif
}
WICK_FN double log_special(double x) {
  const double above = x < kInfF64 ? 0.0 : x;
  return x > 0.0 ? above : (x == 0.0 ? -kInfF64 : kNaNF64);
}

/// k·ln(2) + log(1 + f) for 1 + f in [2/3, 4/3).
WICK_FN float log_sum(float k, float f) {
  const float f2 = f * f;
  float p = -0x1.080c9ep-3f;
  p = fma(p, f, 0x1.1e73ap-3f);
  p = fma(p, f, -0x1.f30e36p-4f);
  p = fma(p, f, 0x1.1ed424p-3f);
  p = fma(p, f, -0x1.559de4p-3f);
  p = fma(p, f, 0x1.99d05ep-3f);
  p = fma(p, f, -0x1.fffefp-3f);
  p = fma(p, f, 0x1.555506p-2f);
  float y = fma(k, -0x1.05c61p-29f, (f * f2) * p);
  y = fma(f2, -0.5f, y);
  return fma(k, 0x1.62e43p-1f, f + y);
}
/// k·ln(2) + log(1 + f) for 1 + f in [√½, √2). With s = f/(2 + f), log(1 + f) = 2·artanh(s) is
/// computed as f − f²/2 + s·(f²/2 + R(s²)). Source: K. C. Ng's arrangement in Sun's fdlibm,
/// e_log.c, 1993.
WICK_FN double log_sum(double k, double f) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 0x1.2f04b156d3635p-3;
  p = fma(p, z, 0x1.39a1d33b70363p-3);
  p = fma(p, z, 0x1.74663da2edcb9p-3);
  p = fma(p, z, 0x1.c71c52118bd6dp-3);
  p = fma(p, z, 0x1.24924941e3c88p-2);
  p = fma(p, z, 0x1.999999997ff01p-2);
  p = fma(p, z, 0x1.5555555555592p-1);
  const double h = 0.5 * (f * f);
  const double y = fma(s, fma(p, z, h), k * 0x1.abc9e3b39803fp-56);
  return fma(k, 0x1.62e42fefa39efp-1, f - (h - y));
}

inline constexpr u32 kLogLowF32 = 0x3f2aaaabu;          // 2/3: x = 2^k·m with m in [2/3, 4/3)
inline constexpr u64 kLogLowF64 = 0x3fe6a09e667f3bcdu;  // √½: x = 2^k·m with m in [√½, √2)

/// The exponent k of a double, 54 less if it is denormal, from its bits minus kLogLowF64. The
/// biased exponent becomes the low bits of a double near 2^52, because there is no vector
/// conversion from 64-bit integers before AVX-512.
WICK_FN double log_exponent(u64 b, bool denormal) {
  const u64 biased = (b + (u64{1023} << 52)) >> 52;
  return bits_f64(biased | 0x4330000000000000u) -
         (denormal ? 0x1p52 + 1023.0 + 54.0 : 0x1p52 + 1023.0);
}

/// log(x). kDenormals: whether denormal numbers are supported.
template <bool kDenormals>
WICK_FN float log_f32(float x) {
  const bool denormal = kDenormals && x < 0x1p-126f;
  const u32 b = f32_bits(denormal ? x * 0x1p23f : x) - kLogLowF32;
  const float k = static_cast<float>(static_cast<i32>(b) >> 23) - (denormal ? 23.0f : 0.0f);
  const float f = bits_f32((b & 0x007fffffu) + kLogLowF32) - 1.0f;
  return log_sum(k, f) + log_special(x);
}

}  // namespace detail

/// Natural logarithm. Every input; log(±0) = −inf, NaN below zero. Worst 0.838 ulp (f32), 0.85
/// (f64).
WICK_FN float log(float x) { return detail::log_f32<true>(x); }
WICK_FN double log(double x) {
  const bool denormal = x < 0x1p-1022;
  const u64 b = f64_bits(denormal ? x * 0x1p54 : x) - detail::kLogLowF64;
  const double k = detail::log_exponent(b, denormal);
  const double f = bits_f64((b & 0x000fffffffffffffu) + detail::kLogLowF64) - 1.0;
  return detail::log_sum(k, f) + detail::log_special(x);
}

/// log(1 + x). Every input; −inf at −1, NaN below; log1p(−0) = −0. Worst 1.52 ulp (f32), 1.24
/// (f64). With 1 + x = 2^k·(1 + f), k may be computed from the rounded sum, but f must not.
WICK_FN float log1p(float x) {
  const float u = 1.0f + x;
  const u32 b = f32_bits(u) - detail::kLogLowF32;
  const float k = static_cast<float>(static_cast<i32>(b) >> 23);
  const float scale = bits_f32(0x40800000u - (b & 0xff800000u));  // 2^(2 − k), normal for every k
  const float finite = x < 0x1.fffffep127f ? x : 0x1.fffffep127f;
  const float f = 0.25f * fma(finite, scale, scale - 4.0f);
  return detail::with_sign(detail::log_sum(k, f) + detail::log_special(u), x);
}
WICK_FN double log1p(double x) {
  const double u = 1.0 + x;
  const u64 b = f64_bits(u) - detail::kLogLowF64;
  const double k = detail::log_exponent(b, false);
  const double scale = bits_f64(0x4010000000000000u - (b & 0xfff0000000000000u));
  const double finite = x < 0x1.fffffffffffffp1023 ? x : 0x1.fffffffffffffp1023;
  const double f = 0.25 * fma(finite, scale, scale - 4.0);
  return detail::with_sign(detail::log_sum(k, f) + detail::log_special(u), x);
}

}  // namespace wick::math
