#pragma once

// The elementwise functions of wick, written once for every processor: branch-free, fma spelled
// out, no call into a maths library. The same source gives the same bits wherever fma, division and
// square root are correctly rounded, results below the normal range are kept, and the compiler
// contracts nothing (-ffp-contract=off and its like).
//
// The polynomials are minimax fits with coefficients rounded to their type, printed by
// tools/math_coefficients.sollya. "ulp" is the distance to the true value in units of the last
// place of the true value's binade; the worst found is over all 2^32 floats
// (tests/math/math_exhaustive), for double over random and edge values.

#include "wick/math/fn.h"

namespace wick::math {

namespace detail {

inline constexpr float kInfF32 = __builtin_bit_cast(float, 0x7f800000u);
inline constexpr double kInfF64 = __builtin_bit_cast(double, u64{0x7ff0000000000000u});
inline constexpr float kNaNF32 = __builtin_bit_cast(float, 0x7fc00000u);
inline constexpr double kNaNF64 = __builtin_bit_cast(double, u64{0x7ff8000000000000u});

/// exp(x) = (1 + r·q)·s1·s2 with |r| ≤ ln(2)/2 and two powers of two, each of which is a normal
/// number where their product may not be.
struct ExpF32 {
  float r, q, s1, s2;
};
struct ExpF64 {
  double r, q, s1, s2;
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

/// Splits exp(x) for |x| ≤ 120. A NaN makes r a NaN.
WICK_FN ExpF32 exp_parts(float x) {
  // Adding 1.5·2^23 leaves round(x / ln 2) in the low bits; 254 is the bias of two exponents.
  constexpr float kShift = 0x1.8p23f + 254.0f;
  const float t = fma(x, 0x1.715476p0f, kShift);
  const float n = t - kShift;
  float r = fma(n, -0x1.62e43p-1f, x);
  r = fma(n, 0x1.05c61p-29f, r);
  const float q = exp_quotient(r);
  const u32 sum = f32_bits(t);
  const u32 half = sum >> 1;
  return {r, q, bits_f32(half << 23), bits_f32((sum - half) << 23)};
}

/// Splits exp(x) for |x| ≤ 800. A NaN makes r a NaN.
WICK_FN ExpF64 exp_parts(double x) {
  constexpr double kShift = 0x1.8p52 + 2046.0;
  const double t = fma(x, 0x1.71547652b82fep0, kShift);
  const double n = t - kShift;
  double r = fma(n, -0x1.62e42fefa39efp-1, x);
  r = fma(n, -0x1.abc9e3b39803fp-56, r);
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
  q = fma(q, r, 1.0);
  const u64 sum = f64_bits(t);
  const u64 half = sum >> 1;
  return {r, q, bits_f64(half << 52), bits_f64((sum - half) << 52)};
}

/// 1/s for a power of two s.
WICK_FN float inverse_power(float s) { return bits_f32(0x7f000000u - f32_bits(s)); }
WICK_FN double inverse_power(double s) { return bits_f64(0x7fe0000000000000u - f64_bits(s)); }

/// a/(1 + exp(−x)) with x clamped to ±limit; scaled so that the quotient is rounded in the normal
/// range and once more only where the result is below it.
template <class F>
WICK_FN F over_one_plus_exp_neg(F a, F x, F limit) {
  x = x > limit ? limit : x;
  const auto e = exp_parts(-x);
  const F scale = inverse_power(e.s2);
  // (1 + exp(−x))·scale = s1 + scale + r·s1·q. The sum of the two powers of two can lose one of
  // them where they are 24 binary places apart; what it loses goes into the small term.
  const F powers = e.s1 + scale;
  const F lost = scale - (powers - e.s1);
  const F sum = fma(e.r * e.s1, e.q, lost) + powers;
  return (a / sum) * scale;
}

}  // namespace detail

/// e to the power x. Every input: overflows to inf, underflows through the denormals to 0.
/// Worst 0.892 ulp (f32), 0.87 (f64). The reduction is Cody and Waite's, with fma.
WICK_FN float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const detail::ExpF32 e = detail::exp_parts(x);
  return fma(e.r * e.s1, e.q, e.s1) * e.s2;
}
/// The same bits for x ≤ 0 or NaN, with one bound to keep instead of two.
WICK_FN float exp_of_negative(float x) {
  x = x < -104.0f ? -104.0f : x;
  const detail::ExpF32 e = detail::exp_parts(x);
  return fma(e.r * e.s1, e.q, e.s1) * e.s2;
}
/// The same bits for −87 ≤ x ≤ 0 or NaN: no result is denormal, so one power of two does.
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
  const detail::ExpF64 e = detail::exp_parts(x);
  return fma(e.r * e.s1, e.q, e.s1) * e.s2;
}

/// 1/(1 + exp(−x)). Every input; the tail for large negative x follows exp(x) into the denormals.
/// Worst 1.810 ulp (f32), 1.69 (f64).
WICK_FN float sigmoid(float x) {
  x = x < -110.0f ? -110.0f : x;
  return detail::over_one_plus_exp_neg(1.0f, x, 110.0f);
}
WICK_FN double sigmoid(double x) {
  x = x < -760.0 ? -760.0 : x;
  return detail::over_one_plus_exp_neg(1.0, x, 760.0);
}

/// x·sigmoid(x). Every input; silu(−inf) is the limit −0. Worst 1.867 ulp (f32), 1.73 (f64).
WICK_FN float silu(float x) {
  x = x < -120.0f ? -120.0f : x;
  return detail::over_one_plus_exp_neg(x, x, 120.0f);
}
WICK_FN double silu(double x) {
  x = x < -780.0 ? -780.0 : x;
  return detail::over_one_plus_exp_neg(x, x, 780.0);
}

/// Hyperbolic tangent: an odd polynomial below 0.55, 1 − 2/(1 + exp(2|x|)) above. Every input.
/// Worst 1.332 ulp (f32), 1.27 (f64).
WICK_FN float tanh(float x) {
  const float y = abs(x);
  const float z = y * y;
  float p = -0x1.958c74p-8f;
  p = fma(p, z, 0x1.584238p-6f);
  p = fma(p, z, -0x1.b90a76p-5f);
  p = fma(p, z, 0x1.110c7p-3f);
  p = fma(p, z, -0x1.555548p-2f);
  const float small = fma(p * z, y, y);
  const float clamped = y > 10.0f ? 10.0f : y;
  const detail::ExpF32 e = detail::exp_parts(clamped + clamped);
  const float s = e.s1 * e.s2;
  const float large = 1.0f - 2.0f / fma(e.r * s, e.q, s + 1.0f);
  return bits_f32(f32_bits(y < 0.55f ? small : large) | (f32_bits(x) & 0x80000000u));
}
WICK_FN double tanh(double x) {
  const double y = abs(x);
  const double z = y * y;
  double p = -0x1.3f08862fa4b5fp-16;
  p = fma(p, z, 0x1.5a3766e61fb45p-14);
  p = fma(p, z, -0x1.e85009e664649p-13);
  p = fma(p, z, 0x1.34678f31c7c99p-11);
  p = fma(p, z, -0x1.7d8c6d809d867p-10);
  p = fma(p, z, 0x1.d6d2586245a94p-9);
  p = fma(p, z, -0x1.226e2d6cd3a6bp-7);
  p = fma(p, z, 0x1.664f484c90e02p-6);
  p = fma(p, z, -0x1.ba1ba1b944192p-5);
  p = fma(p, z, 0x1.11111111103a8p-3);
  p = fma(p, z, -0x1.555555555554cp-2);
  const double small = fma(p * z, y, y);
  const double clamped = y > 20.0 ? 20.0 : y;
  const detail::ExpF64 e = detail::exp_parts(clamped + clamped);
  const double s = e.s1 * e.s2;
  const double large = 1.0 - 2.0 / fma(e.r * s, e.q, s + 1.0);
  return bits_f64(f64_bits(y < 0.55 ? small : large) | (f64_bits(x) & 0x8000000000000000u));
}

namespace detail {

/// What log adds for arguments that are not positive and finite. A sum, because compilers turn a
/// select between a result and constants into branches where a conversion with selects follows.
WICK_FN float log_special(float x) {
  const float above = x < kInfF32 ? 0.0f : x;
  return x > 0.0f ? above : (x == 0.0f ? -kInfF32 : kNaNF32);
}
WICK_FN double log_special(double x) {
  const double above = x < kInfF64 ? 0.0 : x;
  return x > 0.0 ? above : (x == 0.0 ? -kInfF64 : kNaNF64);
}

}  // namespace detail

/// Natural logarithm. log(±0) = −inf, NaN below zero; denormals are right. Worst 0.838 ulp (f32).
WICK_FN float log(float x) {
  constexpr u32 kLow = 0x3f2aaaabu;  // 2/3: x = 2^k·m with m in [2/3, 4/3)
  const bool denormal = x < 0x1p-126f;
  const u32 b = f32_bits(denormal ? x * 0x1p23f : x) - kLow;
  const float k = static_cast<float>(static_cast<i32>(b) >> 23) - (denormal ? 23.0f : 0.0f);
  const float f = bits_f32((b & 0x007fffffu) + kLow) - 1.0f;
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
  y = fma(k, 0x1.62e43p-1f, f + y);
  return y + detail::log_special(x);
}
/// Natural logarithm, worst 0.85 ulp (f64). With s = f/(2 + f), log(1 + f) = 2·artanh(s) is taken
/// as f − f²/2 + s·(f²/2 + R(s²)). Source: K. C. Ng's arrangement in Sun's fdlibm, e_log.c, 1993.
WICK_FN double log(double x) {
  constexpr u64 kLow = 0x3fe6a09e667f3bcdu;  // √½: x = 2^k·m with m in [√½, √2)
  constexpr u64 kBias = u64{1023} << 52;
  const bool denormal = x < 0x1p-1022;
  const u64 b = f64_bits(denormal ? x * 0x1p54 : x) - kLow + kBias;
  // The biased exponent as the low bits of a double near 2^52: there is no vector conversion from
  // 64-bit integers before AVX-512.
  const double k = bits_f64((b >> 52) | 0x4330000000000000u) -
                   (denormal ? 0x1p52 + 1023.0 + 54.0 : 0x1p52 + 1023.0);
  const double f = bits_f64((b & 0x000fffffffffffffu) + kLow) - 1.0;
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
  double y = fma(s, fma(p, z, h), k * 0x1.abc9e3b39803fp-56);
  y = fma(k, 0x1.62e42fefa39efp-1, f - (h - y));
  return y + detail::log_special(x);
}

namespace detail {

/// x = n·π/2 + r + tail with |r| ≤ π/4; quadrant holds n mod 4 in its low bits.
struct QuarterTurns {
  double r, tail;
  u64 quadrant;
};

/// Subtracts n·π/2 with π/2 as a sum of three doubles (Cody and Waite), keeping the rounding
/// errors.
WICK_FN QuarterTurns quarter_turns(double x) {
  constexpr double kShift = 0x1.8p52;
  const double t = fma(x, 0x1.45f306dc9c883p-1, kShift);
  const double n = t - kShift;
  const double a = fma(n, -0x1.921fb54442d18p0, x);  // exact: the difference has few bits left
  const double w = n * -0x1.1a62633145c07p-54;
  const double w_error = fma(n, -0x1.1a62633145c07p-54, -w);
  const double sum = a + w;
  const double back = sum - a;
  const double sum_error = (a - (sum - back)) + (w - back);
  const double low = fma(n, 0x1.f1976b7ed8fbcp-110, sum_error + w_error);
  const double r = sum + low;
  return {r, low - (r - sum), f64_bits(t)};
}

/// Sine (even = false) or cosine of the reduced argument.
WICK_FN double turned(const QuarterTurns& q, u64 quadrant) {
  const double z = q.r * q.r;
  double s = 0x1.5d8e4234a02e8p-33;
  s = fma(s, z, -0x1.ae5e549c421c6p-26);
  s = fma(s, z, 0x1.71de355f3628cp-19);
  s = fma(s, z, -0x1.a01a019bf2523p-13);
  s = fma(s, z, 0x1.111111110f75ep-7);
  s = fma(s, z, -0x1.5555555555548p-3);
  s = q.r + fma(s, z * q.r, fma(z, -0.5 * q.tail, q.tail));
  double c = -0x1.8fa6917123386p-37;
  c = fma(c, z, 0x1.1ee9dbec7010ap-29);
  c = fma(c, z, -0x1.27e4f7f1c1054p-22);
  c = fma(c, z, 0x1.a01a019c8f66bp-16);
  c = fma(c, z, -0x1.6c16c16c15017p-10);
  c = fma(c, z, 0x1.555555555554bp-5);
  const double h = 0.5 * z;
  const double one = 1.0 - h;
  c = one + (((1.0 - one) - h) + fma(c, z * z, -(q.r * q.tail)));
  const double y = (quadrant & 1) != 0 ? c : s;
  return bits_f64(f64_bits(y) ^ ((quadrant & 2) << 62));
}

}  // namespace detail

/// Sine of x radians. |x| ≤ 2^30, NaN for ±inf. Worst 0.77 ulp.
WICK_FN double sin(double x) {
  const detail::QuarterTurns q = detail::quarter_turns(x);
  const double y = detail::turned(q, q.quadrant);
  return x == 0.0 ? x : y;
}
/// Cosine of x radians. |x| ≤ 2^30, NaN for ±inf. Worst 0.77 ulp.
WICK_FN double cos(double x) {
  const detail::QuarterTurns q = detail::quarter_turns(x);
  return detail::turned(q, q.quadrant + 1);
}

/// 1/x. Every input; correctly rounded.
WICK_FN float recip(float x) { return 1.0f / x; }
WICK_FN double recip(double x) { return 1.0 / x; }

/// 1/√x, two roundings. NaN below zero, ±inf at ±0. Worst 1.491 ulp (f32), 1.49 (f64).
WICK_FN float rsqrt(float x) { return 1.0f / sqrt(x); }
WICK_FN double rsqrt(double x) { return 1.0 / sqrt(x); }

/// −x. Every input; exact.
WICK_FN float neg(float x) { return -x; }
WICK_FN double neg(double x) { return -x; }

/// x·x. Every input; correctly rounded.
WICK_FN float sqr(float x) { return x * x; }
WICK_FN double sqr(double x) { return x * x; }
/// x·x, by its other name.
WICK_FN float square(float x) { return x * x; }
WICK_FN double square(double x) { return x * x; }

/// x where positive, else +0; NaN stays NaN. Exact.
WICK_FN float relu(float x) { return x <= 0.0f ? 0.0f : x; }
WICK_FN double relu(double x) { return x <= 0.0 ? 0.0 : x; }

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

}  // namespace wick::math
