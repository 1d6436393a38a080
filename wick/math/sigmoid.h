#pragma once

// The sigmoid and the activation functions derived from it. The conventions of wick/math/scalar.h
// hold here.

#include "wick/math/exp_log.h"

namespace wick::math {

namespace detail {

/// (1 + e)·scale for an e = exp(…) given by its parts. The power of two `scale` keeps the sum in
/// the middle of the range. A quotient by the sum is rounded there, and rounded again only if its
/// product with scale is denormal.
template <class F>
struct OnePlus {
  F sum, scale;

  WICK_FN explicit OnePlus(const ExpParts<F>& e) : scale(inverse_power(e.s2)) {
    // (1 + e)·scale = s1 + scale + r·s1·q. The sum of the two powers of two loses the smaller one
    // if they are 24 or more binary places apart; the lost part is added to the small term.
    const F powers = e.s1 + scale;
    const F lost = scale - (powers - e.s1);
    sum = fma(e.r * e.s1, e.q, lost) + powers;
  }
};
/// 1 + exp(−x), with x clamped to at most `limit`.
template <class F>
WICK_FN OnePlus<F> one_plus_exp_neg(F x, F limit) {
  return OnePlus<F>(exp_parts(-(x > limit ? limit : x)));
}

/// A number as the sum of `high` and a much smaller `low`.
template <class F>
struct Sum {
  F high, low;
};

/// x·(a + b·x²) with a = 2·√(2/π) and b = 0.044715·a, precise enough that exp of it is accurate to
/// the last bits. a and b are sums of two floats, and a's first part has so few bits that the sums
/// below are exact.
WICK_FN Sum<float> gelu_exponent(float x) {
  const float h = x * x;
  const float h_low = fma(x, x, -h);
  const float w = fma(0x1.2444f2p-4f, h, 0x1.988p0f);
  float low = fma(0x1.2444f2p-4f, h, 0x1.988p0f - w);
  low = low + fma(0x1.49b16ap-29f, h, fma(0x1.2444f2p-4f, h_low, 0x1.14cf5p-14f));
  const float high = x * w;
  return {high, fma(x, low, fma(x, w, -high))};
}
WICK_FN Sum<double> gelu_exponent(double x) {
  const double h = x * x;
  const double h_low = fma(x, x, -h);
  const double w = fma(0x1.2444f2a4d8b4bp-4, h, 0x1.988453p0);
  double low = fma(0x1.2444f2a4d8b4bp-4, h, 0x1.988453p0 - w);
  low =
      low + fma(-0x1.6c843a29d1c7p-61, h, fma(0x1.2444f2a4d8b4bp-4, h_low, 0x1.ea1b284687e5ap-27));
  const double high = x * w;
  return {high, fma(x, low, fma(x, w, -high))};
}

/// x/(1 + exp(−gelu_exponent(x))); |x| is clamped to `limit` in the exponent.
template <class F>
WICK_FN F gelu_within(F x, F limit) {
  const F a = x < -limit ? -limit : x;
  const Sum<F> v = gelu_exponent(a > limit ? limit : a);
  const OnePlus<F> d(exp_parts(-v.high, -v.low));
  return (a / d.sum) * d.scale;
}

}  // namespace detail

/// 1/(1 + exp(−x)). Every input; for large negative x the result follows exp(x) into the denormals.
/// Worst 1.810 ulp (f32), 1.69 (f64).
WICK_FN float sigmoid(float x) {
  x = x < -110.0f ? -110.0f : x;
  const auto d = detail::one_plus_exp_neg(x, 110.0f);
  return recip_moderate(d.sum) * d.scale;
}
WICK_FN double sigmoid(double x) {
  x = x < -760.0 ? -760.0 : x;
  const auto d = detail::one_plus_exp_neg(x, 760.0);
  return (1.0 / d.sum) * d.scale;
}

/// x·sigmoid(x). Every input; silu(−inf) is the limit −0. Worst 1.867 ulp (f32), 1.73 (f64).
WICK_FN float silu(float x) {
  x = x < -120.0f ? -120.0f : x;
  const auto d = detail::one_plus_exp_neg(x, 120.0f);
  return (x / d.sum) * d.scale;
}
WICK_FN double silu(double x) {
  x = x < -780.0 ? -780.0 : x;
  const auto d = detail::one_plus_exp_neg(x, 780.0);
  return (x / d.sum) * d.scale;
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
  const auto e = detail::exp_parts(clamped + clamped);
  const float s = e.s1 * e.s2;
  const float large = 1.0f - 2.0f * recip_moderate(fma(e.r * s, e.q, s + 1.0f));
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
  const auto e = detail::exp_parts(clamped + clamped);
  const double s = e.s1 * e.s2;
  const double large = 1.0 - 2.0 / fma(e.r * s, e.q, s + 1.0);
  return bits_f64(f64_bits(y < 0.55 ? small : large) | (f64_bits(x) & 0x8000000000000000u));
}

/// x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), computed as x·sigmoid(2·t) for tanh's argument t.
/// Every input; gelu(−inf) is the limit −0. Worst 1.80 ulp (f32), 1.66 (f64). Source: D. Hendrycks,
/// K. Gimpel, "Gaussian error linear units" (2016).
WICK_FN float gelu(float x) { return detail::gelu_within(x, 11.0f); }
WICK_FN double gelu(double x) { return detail::gelu_within(x, 21.7); }

/// x if x is positive, else alpha·(exp(x) − 1). Every input. Worst 2.33 ulp (f32), 2.02 (f64).
WICK_FN float elu(float x, float alpha) { return x > 0.0f ? x : alpha * expm1(x); }
WICK_FN double elu(double x, double alpha) { return x > 0.0 ? x : alpha * expm1(x); }

}  // namespace wick::math
