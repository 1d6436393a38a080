#pragma once

// The error function, the normal distribution and the exact gelu. The conventions of
// wick/math/scalar.h hold here.

#include "wick/math/exp_log.h"

namespace wick::math {

namespace detail {

/// exp(−y²/2)/Φ(−y) for 0 ≤ y ≤ 14.5. The function is nearly a line, so it is computed as a line
/// minus a quotient, whose rounding errors then matter little.
WICK_FN float inverse_mills(float y) {
  float p = 0x1.2adce6p-7f;
  p = fma(p, y, 0x1.42e756p-4f);
  p = fma(p, y, 0x1.2a2db4p-2f);
  p = fma(p, y, 0x1.028fbep-1f);
  float q = 0x1.2b23dcp-8f;
  q = fma(q, y, 0x1.711caap-5f);
  q = fma(q, y, 0x1.a0207p-3f);
  q = fma(q, y, 0x1.f1af02p-2f);
  q = fma(q, y, 0x1.1bdff2p-1f);
  return fma(y, 0x1.40d83ep+1f - p / q, 2.0f);
}
/// exp(y²/2)·Φ(−y) for 1 ≤ y ≤ 38.7, a smooth function that falls like 1/y: a polynomial in (y −
/// c)/(y + c), divided by y + c. The reciprocal w is that of the unrounded y + c, because its error
/// would count twice.
WICK_FN double scaled_normal_tail(double y) {
  const double d = y + 3.0;
  const double first = 1.0 / d;
  const double w = fma(first, fma(-first, d, 1.0) - first * (y - (d - 3.0)), first);
  const double t = (y - 3.0) * w;
  double p = -0x1.25b7650730bd3p-24;
  p = fma(p, t, 0x1.918973e989dcep-23);
  p = fma(p, t, 0x1.ce62e78a465c2p-24);
  p = fma(p, t, -0x1.ac8b88c67968ap-22);
  p = fma(p, t, -0x1.419f1f742a542p-21);
  p = fma(p, t, 0x1.6559838e0c8b3p-24);
  p = fma(p, t, 0x1.2da9779317fc7p-19);
  p = fma(p, t, 0x1.e4cd83cd61eaep-19);
  p = fma(p, t, -0x1.d784d6289f7eep-19);
  p = fma(p, t, -0x1.5afbf4b74608ap-16);
  p = fma(p, t, -0x1.bc80a83f902b7p-17);
  p = fma(p, t, 0x1.4a8f08babaa02p-14);
  p = fma(p, t, 0x1.43c9fecd32181p-13);
  p = fma(p, t, -0x1.0d09e053ca052p-12);
  p = fma(p, t, -0x1.12285f3a52935p-10);
  p = fma(p, t, 0x1.0d608c5f9362fp-10);
  p = fma(p, t, 0x1.c8f52c330015dp-8);
  p = fma(p, t, -0x1.56d8e3d7b86bap-7);
  p = fma(p, t, -0x1.832dbf6992f52p-5);
  p = fma(p, t, 0x1.d71387c654b92p-3);
  p = fma(p, t, -0x1.04c7295a48f32p-1);
  return fma(p, t, 0x1.754a751a56f4ap-1) * w;
}

/// (Φ(x) − ½)/x for h = x² ≤ 1.
WICK_FN double normal_quotient(double h) {
  double p = 0x1.6fd5cfae8078p-38;
  p = fma(p, h, -0x1.00abb05085ee6p-33);
  p = fma(p, h, 0x1.39ee4f0b8f9p-29);
  p = fma(p, h, -0x1.6242fe199fbb6p-25);
  p = fma(p, h, 0x1.658bcc4c29f1cp-21);
  p = fma(p, h, -0x1.3ce9084a1fa38p-17);
  p = fma(p, h, 0x1.e42b0dda7f58p-14);
  p = fma(p, h, -0x1.37403f6d3c2eap-10);
  p = fma(p, h, 0x1.46d042976e6c7p-7);
  p = fma(p, h, -0x1.1058377e2cf61p-4);
  return fma(p, h, 0x1.9884533d43651p-2);
}

/// The parts of exp(−y²/2) for |y| ≤ 15. y² keeps its rounding error; the factor −1/2 is folded
/// into the coefficients, which are powers of two, so the bits don't change and two multiplications
/// are saved.
WICK_FN ExpParts<float> exp_of_half_square(float y) {
  constexpr float kShift = 0x1.8p23f + 254.0f;
  const float h = y * y;
  const float t = fma(h, -0x1.715476p-1f, kShift);
  const float n = t - kShift;
  const float r = fma(n, 0x1.62e43p0f, h) + fma(n, -0x1.05c61p-28f, fma(y, y, -h));
  float q = 0x1.694ca6p-16f;
  q = fma(q, r, -0x1.12398p-12f);
  q = fma(q, r, 0x1.555a26p-9f);
  q = fma(q, r, -0x1.555492p-6f);
  q = fma(q, r, 0x1.fffffap-4f);
  q = fma(q, r, -0.5f);
  const u32 sum = f32_bits(t);
  const u32 half = sum >> 1;
  return {r, q, bits_f32(half << 23), bits_f32((sum - half) << 23)};
}

/// Φ(−y) = (1 + r·q)·s1·s2/mills for y = |x|; 0 above 14.5.
struct NormalTail {
  float y, mills;
  ExpParts<float> e;
};
WICK_FN NormalTail normal_tail(float x) {
  const float a = abs(x);
  const float y = a > 14.5f ? 14.5f : a;
  return {y, inverse_mills(y), exp_of_half_square(y)};
}

/// Φ(x) = value·scale; scale is a power of two that keeps value normal.
struct NormalShare {
  double value, scale;
};
WICK_FN NormalShare normal_share(double x) {
  const double a = abs(x);
  const double y = a > 38.7 ? 38.7 : a;
  const double h = y * y;
  const double h_low = fma(y, y, -h);
  const ExpParts<double> e = exp_parts(-0.5 * h, -0.5 * h_low);
  const double g = scaled_normal_tail(y);
  const double tail = fma(e.r * e.q, g, g) * e.s1;
  const double centre = fma(x, normal_quotient(h), 0.5);
  const double above = a < 1.0 ? centre : 1.0 - tail * e.s2;
  const bool below = x <= -1.0;
  return {below ? tail : above, below ? e.s2 : 1.0};
}

/// log(erfc(y)) for 1 ≤ y ≤ 3.95; the error grows with y.
WICK_FN float log_erfc(float y) {
  float p = 0x1.86dd8ep-13f;
  p = fma(p, y, -0x1.825afep-9f);
  p = fma(p, y, 0x1.65cb7ap-6f);
  p = fma(p, y, -0x1.a65344p-4f);
  p = fma(p, y, -0x1.46baecp-1f);
  p = fma(p, y, -0x1.2088eap0f);
  return fma(p, y, -0x1.661cf4p-12f);
}

}  // namespace detail

/// The error function, 2/√π·∫exp(−t²) from 0 to x: an odd polynomial below 1, one minus an
/// exponential above. Every input; erf(−0) = −0. Worst 1.12 ulp (f32), 1.32 (f64).
WICK_FN float erf(float x) {
  const float y = abs(x);
  const float z = y * y;
  float p = 0x1.4917a4p-14f;
  p = fma(p, z, -0x1.a3d812p-11f);
  p = fma(p, z, 0x1.540172p-8f);
  p = fma(p, z, -0x1.b7f88cp-6f);
  p = fma(p, z, 0x1.ce2cf2p-4f);
  p = fma(p, z, -0x1.81273ep-2f);
  p = fma(p, z, 0x1.06eba8p-3f);
  const float small = fma(y, p, y);
  const float large = 1.0f - exp_of_small(detail::log_erfc(y > 3.95f ? 3.95f : y));
  return detail::with_sign(y < 1.0f ? small : large, x);
}
WICK_FN double erf(double x) {
  const double y = abs(x);
  const double z = y * y;
  double p = 0x1.25ec3cb74e2efp-34;
  p = fma(p, z, -0x1.452ac54ffb859p-30);
  p = fma(p, z, 0x1.fc0d5c2f29023p-27);
  p = fma(p, z, -0x1.5f8e4d2412c7p-23);
  p = fma(p, z, 0x1.b9ed71fb0fe73p-20);
  p = fma(p, z, -0x1.f4d31d85b4f84p-17);
  p = fma(p, z, 0x1.f9a3342152cf7p-14);
  p = fma(p, z, -0x1.c02db49229b1fp-11);
  p = fma(p, z, 0x1.565bcd126d6edp-8);
  p = fma(p, z, -0x1.b82ce312ab0a3p-6);
  p = fma(p, z, 0x1.ce2f21a04360fp-4);
  p = fma(p, z, -0x1.812746b0379fdp-2);
  p = fma(p, z, 0x1.06eba8214db69p-3);
  const double small = fma(y, p, y);
  const double clamped = y > 6.0 ? 6.0 : y;
  const double tail = detail::scaled_normal_tail(clamped * 0x1.6a09e667f3bcdp0);
  const double large = fma(exp(-(clamped * clamped)) * tail, -2.0, 1.0);
  return detail::with_sign(y < 1.0 ? small : large, x);
}

/// Φ(x), the cumulative distribution function of the standard normal distribution. Every input; the
/// lower tail passes through the denormals to 0. Worst 3.23 ulp (f32), 2.64 (f64).
WICK_FN float normcdf(float x) {
  const auto t = detail::normal_tail(x);
  const float tail = fma(t.e.r, t.e.q, 1.0f) / t.mills * t.e.s1;
  return x >= 0.0f ? fma(-tail, t.e.s2, 1.0f) : tail * t.e.s2;
}
WICK_FN double normcdf(double x) {
  const auto share = detail::normal_share(x);
  return share.value * share.scale;
}

/// x·Φ(x), the gelu with the error function. Every input; gelu_erf(−inf) is the limit −0. Worst
/// 3.66 ulp (f32), 2.87 (f64). In f32 it is computed as max(x, 0) − |x|·Φ(−|x|), one formula for
/// both signs.
WICK_FN float gelu_erf(float x) {
  const auto t = detail::normal_tail(x);
  const float below = fma(t.e.r * t.e.q, t.y, t.y) / t.mills * t.e.s1;
  return fma(-below, t.e.s2, x >= 0.0f ? x : -0.0f);
}
WICK_FN double gelu_erf(double x) {
  const auto share = detail::normal_share(x);
  return ((x < -38.7 ? -38.7 : x) * share.value) * share.scale;
}

}  // namespace wick::math
