#pragma once

// Sine, cosine and atan2. The conventions of wick/math/scalar.h hold here.

#include "wick/math/fn.h"

namespace wick::math {

namespace detail {

/// x = n·π/2 + r + tail with |r| ≤ π/4; the low bits of quadrant are n mod 4.
struct QuarterTurns {
  double r, tail;
  u64 quadrant;
};

/// Subtracts n·π/2, where π/2 is a sum of three doubles (Cody and Waite), and keeps the rounding
/// errors.
WICK_FN QuarterTurns quarter_turns(double x) {
  constexpr double kShift = 0x1.8p52;
  const double t = fma(x, 0x1.45f306dc9c883p-1, kShift);
  const double n = t - kShift;
  const double a = fma(n, -0x1.921fb54442d18p0, x);  // exact: few bits are left
  const double w = n * -0x1.1a62633145c07p-54;
  const double w_error = fma(n, -0x1.1a62633145c07p-54, -w);
  const double sum = a + w;
  const double back = sum - a;
  const double sum_error = (a - (sum - back)) + (w - back);
  const double low = fma(n, 0x1.f1976b7ed8fbcp-110, sum_error + w_error);
  const double r = sum + low;
  return {r, low - (r - sum), f64_bits(t)};
}

/// Reduces a finite x with |x| ≥ 2^30. x is m·2^e with an integer m of 53 bits. The 192 bits of 2/π
/// from the bit on that makes m·2^e a multiple of 2 give m·2^e·2/π modulo 4 with an error below
/// 2^-137; no double is closer to a multiple of π/2 than 2^-62. Source of the idea: M. Payne, R.
/// Hanek, "Radian reduction for trigonometric functions" (1983).
WICK_FN QuarterTurns far_quarter_turns(double x) {
  constexpr u32 kTwoOverPi[] = {  // after 64 zero bits
      0x00000000u, 0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
      0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u,
      0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u,
      0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
      0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u,
      0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau,
      0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u,
  };
  const u64 bits = f64_bits(x);
  const u64 m = (bits & 0xfffffffffffffu) | 0x10000000000000u;
  const u32 first = static_cast<u32>((bits >> 52) & 0x7ffu) - 1013u;  // e + 62, of e = exponent − 1075
  const u32 word = first >> 5, shift = first & 31u;
  u32 a[6];  // least significant word first
  for (u32 i = 0; i < 6; ++i) {
    const u64 pair = u64{kTwoOverPi[word + i]} << 32 | kTwoOverPi[word + i + 1];
    a[5 - i] = static_cast<u32>(pair << shift >> 32);
  }
  const u64 m0 = m & 0xffffffffu, m1 = m >> 32;
  u64 carry = 0;
  u32 p[6];
  for (int i = 0; i < 6; ++i) {
    const u64 t = a[i] * m0 + carry;
    p[i] = static_cast<u32>(t);
    carry = t >> 32;
  }
  carry = 0;
  for (int i = 1; i < 6; ++i) {
    const u64 t = a[i - 1] * m1 + p[i] + carry;
    p[i] = static_cast<u32>(t);
    carry = t >> 32;
  }
  u64 quadrant = p[5] >> 30;
  u64 high = u64{p[5]} << 34 | u64{p[4]} << 2 | p[3] >> 30;
  u64 middle = u64{p[3]} << 34 | u64{p[2]} << 2 | p[1] >> 30;
  u64 low = u64{p[1]} << 34 | u64{p[0]} << 2;
  // Rounds to the nearest multiple of π/2.
  const bool above = (high >> 63) != 0;
  if (above) {
    quadrant += 1;
    high = ~high, middle = ~middle, low = ~low;
  }
  u64 zeros = 0;
  if (high == 0) {
    high = middle, middle = low;
    zeros = 64;
  }
  for (u64 step = 32; step != 0; step >>= 1) {
    if (high >> (64 - step) != 0) continue;
    high = high << step | middle >> (64 - step);
    middle <<= step;
    zeros += step;
  }
  const double scale = bits_f64((1023u - zeros) << 52);
  const double top = static_cast<double>(static_cast<i64>(high >> 11)) * 0x1p-53;
  const double rest = static_cast<double>(static_cast<i64>((high & 0x7ffu) << 42 | middle >> 22)) * 0x1p-106;
  const double product = top * 0x1.921fb54442d18p0;
  const double error = fma(top, 0x1.921fb54442d18p0, -product);
  const double more = error + fma(top, 0x1.1a62633145c07p-54, rest * 0x1.921fb54442d18p0);
  const double sum = product + more;
  const bool left = (bits >> 63) != 0;
  const double signed_scale = above != left ? -scale : scale;
  return {sum * signed_scale, (more - (sum - product)) * signed_scale, left ? u64{0} - quadrant : quadrant};
}

/// Reduces any x; NaN for ±inf.
WICK_FN QuarterTurns any_quarter_turns(double x) {
  const u64 magnitude = f64_bits(x) & 0x7fffffffffffffffu;
  if (magnitude > 0x41d0000000000000u && magnitude < 0x7ff0000000000000u) return far_quarter_turns(x);
  return quarter_turns(x);
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

/// x = n·π/2 + r; the low bits of the bit pattern of `turned` are n.
struct Turn {
  double r, turned;
};

/// Reduces a float x with |x| ≤ 2^40. The first difference is exact, because the last bit of π/2 as
/// a double is 2^-52; therefore two doubles for π/2 suffice.
WICK_FN Turn near_turn(double x) {
  constexpr double kShift = 0x1.8p52;
  const double t = fma(x, 0x1.45f306dc9c883p-1, kShift);
  const double n = t - kShift;
  const double r = fma(n, -0x1.921fb54442d18p0, x);
  return {fma(n, -0x1.1a62633145c07p-54, r), t};
}

/// Reduces a float x with |x| ≥ 2^40. Multiplies by 1/(2π) in pieces of 29 bits, whose products
/// with 24 bits are exact, and drops the integer part of each product. The bits of 1/(2π) that only
/// contribute whole turns are omitted. NaN for ±inf. Source of the idea: M. Payne, R. Hanek,
/// "Radian reduction for trigonometric functions" (1983).
WICK_FN Turn far_turn(double x) {
  const double a = x * 0x1.836e4e4p-18, b = x * 0x1.054a7fp-48, c = x * 0x1.3abe8fap-77;
  const double d = x * 0x1.34ddc0cp-106, e = x * 0x1.b629599p-134, f = x * 0x1.e21c82p-165;
  const double a1 = a - rint(a), b1 = b - rint(b), c1 = c - rint(c);
  const double d1 = d - rint(d), e1 = e - rint(e), f1 = f - rint(f);
  constexpr double kShift = 0x1.8p52;
  const double t = fma(((((a1 + b1) + c1) + d1) + e1) + f1, 4.0, kShift);
  // Sums from the largest term on; each sum is exact until the small terms.
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

/// Sine and cosine of x radians. Every input; NaN for ±inf. Worst 1.54 and 1.52 ulp.
WICK_FN float sin(float x) {
  const float y = detail::turned(detail::any_turn(x), 0);
  return x == 0.0f ? x : y;
}
WICK_FN float cos(float x) { return detail::turned(detail::any_turn(x), 1); }
/// sin and cos for |x| ≤ 2^40 or NaN, with the same bits, in a third of the time on processors that
/// compute both branches.
WICK_FN float sin_of_near(float x) {
  const float y = detail::turned(detail::near_turn(static_cast<double>(x)), 0);
  return x == 0.0f ? x : y;
}
WICK_FN float cos_of_near(float x) {
  return detail::turned(detail::near_turn(static_cast<double>(x)), 1);
}

/// Sine and cosine of x radians. Every input; NaN for ±inf. Worst 0.78 ulp.
WICK_FN double sin(double x) {
  const detail::QuarterTurns q = detail::any_quarter_turns(x);
  const double y = detail::turned(q, q.quadrant);
  return x == 0.0 ? x : y;
}
WICK_FN double cos(double x) {
  const detail::QuarterTurns q = detail::any_quarter_turns(x);
  return detail::turned(q, q.quadrant + 1);
}
/// sin and cos for |x| ≤ 2^30 or NaN, with the same bits, without a branch.
WICK_FN double sin_of_near(double x) {
  const detail::QuarterTurns q = detail::quarter_turns(x);
  const double y = detail::turned(q, q.quadrant);
  return x == 0.0 ? x : y;
}
WICK_FN double cos_of_near(double x) {
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

/// The angle of (x, y), where π/2 = quarter + quarter_low.
template <class F>
WICK_FN F angle(F y, F x, bool left, F quarter, F quarter_low) {
  const F u = abs(x), v = abs(y);
  const bool steep = v > u;
  const F less = steep ? u : v, more = steep ? v : u;
  const F ratio = less == more ? (more == F(0) ? F(0) : F(1)) : less / more;
  const F p = atan_of_ratio(ratio);
  // Adds the angle to the nearest of 0, π/2 and π.
  const F whole = left ? F(2) : F(0);
  const F turns = steep ? F(1) : whole;
  const F signed_p = steep != left ? -p : p;
  return with_sign(fma(turns, quarter, fma(turns, quarter_low, signed_p)), y);
}

}  // namespace detail

/// The angle of the point (x, y) from the x axis, in [−π, π]. Every input, with the special values
/// of C99, including the signs of zeros. Worst 1.47 ulp (f32), 1.34 (f64).
WICK_FN float atan2(float y, float x) {
  return detail::angle(y, x, (f32_bits(x) >> 31) != 0, 0x1.921fb6p0f, -0x1.777a5cp-25f);
}
WICK_FN double atan2(double y, double x) {
  return detail::angle(y, x, (f64_bits(x) >> 63) != 0, 0x1.921fb54442d18p0, 0x1.1a62633145c07p-54);
}

}  // namespace wick::math
