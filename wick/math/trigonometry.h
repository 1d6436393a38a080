#pragma once

// Sine, cosine and the angle of a point. What wick/math/scalar.h says of all its functions holds
// here.

#include "wick/math/fn.h"

namespace wick::math {

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

/// x = n·π/2 + r; the low bits of turned's pattern hold n.
struct Turn {
  double r, turned;
};

/// The turn of a float x, |x| ≤ 2^40. The first difference is exact, for the last bit of π/2 as a
/// double is 2^-52, so that two doubles for π/2 are enough.
WICK_FN Turn near_turn(double x) {
  constexpr double kShift = 0x1.8p52;
  const double t = fma(x, 0x1.45f306dc9c883p-1, kShift);
  const double n = t - kShift;
  const double r = fma(n, -0x1.921fb54442d18p0, x);
  return {fma(n, -0x1.1a62633145c07p-54, r), t};
}

/// The turn of a float x, |x| ≥ 2^40: multiplies by 1/(2π) in pieces of 29 bits, whose products
/// with 24 bits are exact, and drops the whole turns of each; the bits of 1/(2π) that give nothing
/// but whole turns are left out. NaN for ±inf. Source of the idea: M. Payne, R. Hanek, "Radian
/// reduction for trigonometric functions" (1983).
WICK_FN Turn far_turn(double x) {
  const double a = x * 0x1.836e4e4p-18, b = x * 0x1.054a7fp-48, c = x * 0x1.3abe8fap-77;
  const double d = x * 0x1.34ddc0cp-106, e = x * 0x1.b629599p-134, f = x * 0x1.e21c82p-165;
  const double a1 = a - rint(a), b1 = b - rint(b), c1 = c - rint(c);
  const double d1 = d - rint(d), e1 = e - rint(e), f1 = f - rint(f);
  constexpr double kShift = 0x1.8p52;
  const double t = fma(((((a1 + b1) + c1) + d1) + e1) + f1, 4.0, kShift);
  // Largest first: each sum is exact until the small terms come.
  const double first = fma(t - kShift, -0.25, a1);
  const double rest = ((((first + b1) + c1) + d1) + e1) + f1;
  return {rest * 0x1.921fb54442d18p2, t};
}

/// Sine (plus = 0) or cosine (plus = 1) of a reduced float.
WICK_FN float turned(const Turn& turn, u32 plus) {
  const float r = static_cast<float>(turn.r);
  const u32 quadrant = static_cast<u32>(f64_bits(turn.turned)) + plus;
  const float z = r * r;
  float s = fma(-0x1.9954p-13f, z, 0x1.110778p-7f);
  s = fma(s, z, -0x1.555546p-3f);
  s = fma(s, z * r, r);
  float c = fma(0x1.99e91p-16f, z, -0x1.6c0c2ap-10f);
  c = fma(c, z, 0x1.55554ap-5f);
  c = fma(c, z, -0.5f);
  c = fma(c, z, 1.0f);
  const float y = (quadrant & 1) != 0 ? c : s;
  return bits_f32(f32_bits(y) ^ ((quadrant & 2) << 30));
}

WICK_FN Turn any_turn(float x) {
  const double wide = static_cast<double>(x);
  Turn turn = near_turn(wide);
  if (abs(wide) > 0x1p40) turn = far_turn(wide);
  return turn;
}

}  // namespace detail

/// Sine and cosine of x radians. Every input, NaN for ±inf. Worst 1.54 and 1.52 ulp.
WICK_FN float sin(float x) {
  const float y = detail::turned(detail::any_turn(x), 0);
  return x == 0.0f ? x : y;
}
WICK_FN float cos(float x) { return detail::turned(detail::any_turn(x), 1); }
/// The same bits for |x| ≤ 2^40 or NaN, in a third of the time where both ways are computed.
WICK_FN float sin_of_near(float x) {
  const float y = detail::turned(detail::near_turn(static_cast<double>(x)), 0);
  return x == 0.0f ? x : y;
}
WICK_FN float cos_of_near(float x) {
  return detail::turned(detail::near_turn(static_cast<double>(x)), 1);
}

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

namespace detail {

/// atan(a) for 0 ≤ a ≤ 1.
WICK_FN float atan_of_ratio(float a) {
  const float z = a * a;
  float p = -0x1.d5a1aap-10f;
  p = fma(p, z, 0x1.6551e2p-7f);
  p = fma(p, z, -0x1.fe7d24p-6f);
  p = fma(p, z, 0x1.da9c2ep-5f);
  p = fma(p, z, -0x1.5825f2p-4f);
  p = fma(p, z, 0x1.c0946cp-4f);
  p = fma(p, z, -0x1.24211ap-3f);
  p = fma(p, z, 0x1.9991ecp-3f);
  p = fma(p, z, -0x1.55553ep-2f);
  return fma(p * z, a, a);
}
WICK_FN double atan_of_ratio(double a) {
  const double z = a * a;
  double p = 0x1.bbed9f7b04237p-17;
  p = fma(p, z, -0x1.3f364d4b9695cp-13);
  p = fma(p, z, 0x1.b3facbcd7bb8ap-11);
  p = fma(p, z, -0x1.7a399ad4364a2p-9);
  p = fma(p, z, 0x1.d7b927bbdceedp-8);
  p = fma(p, z, -0x1.c78fcd542af16p-7);
  p = fma(p, z, 0x1.683cc98472e13p-6);
  p = fma(p, z, -0x1.e9fa0da6643e9p-6);
  p = fma(p, z, 0x1.2c2e5ccfd4e26p-5);
  p = fma(p, z, -0x1.59a3ff2ac6667p-5);
  p = fma(p, z, 0x1.82dad79d1736p-5);
  p = fma(p, z, -0x1.ae5e72c0e6984p-5);
  p = fma(p, z, 0x1.e1bba66c1a4b8p-5);
  p = fma(p, z, -0x1.110e5126fd02dp-4);
  p = fma(p, z, 0x1.3b13669a2a047p-4);
  p = fma(p, z, -0x1.745d11ae74c7ap-4);
  p = fma(p, z, 0x1.c71c717fcf76dp-4);
  p = fma(p, z, -0x1.249249237f57dp-3);
  p = fma(p, z, 0x1.99999999955b4p-3);
  p = fma(p, z, -0x1.5555555555526p-2);
  return fma(p * z, a, a);
}

/// The angle of (x, y), with π/2 = quarter + quarter_low.
template <class F>
WICK_FN F angle(F y, F x, bool left, F quarter, F quarter_low) {
  const F u = abs(x), v = abs(y);
  const bool steep = v > u;
  const F less = steep ? u : v, more = steep ? v : u;
  const F ratio = less == more ? (more == F(0) ? F(0) : F(1)) : less / more;
  const F p = atan_of_ratio(ratio);
  // The angle from the nearest of 0, π/2 and π.
  const F whole = left ? F(2) : F(0);
  const F turns = steep ? F(1) : whole;
  const F signed_p = steep != left ? -p : p;
  return with_sign(fma(turns, quarter, fma(turns, quarter_low, signed_p)), y);
}

}  // namespace detail

/// The angle of the point (x, y) from the x axis, in [−π, π]; zeros and infinities as C99 has them,
/// signs of zeros included. Worst 1.47 ulp (f32), 1.34 (f64).
WICK_FN float atan2(float y, float x) {
  return detail::angle(y, x, (f32_bits(x) >> 31) != 0, 0x1.921fb6p0f, -0x1.777a5cp-25f);
}
WICK_FN double atan2(double y, double x) {
  return detail::angle(y, x, (f64_bits(x) >> 63) != 0, 0x1.921fb54442d18p0, 0x1.1a62633145c07p-54);
}

}  // namespace wick::math
