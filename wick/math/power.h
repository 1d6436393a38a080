#pragma once

// Powers and roots. The conventions of wick/math/scalar.h hold here.

#include "wick/math/exp_log.h"

namespace wick::math {

/// 1/x. Every input; correctly rounded.
WICK_FN float recip(float x) { return 1.0f / x; }
WICK_FN double recip(double x) { return 1.0 / x; }

/// 1/√x, two roundings. NaN below zero, ±inf at ±0. Worst 1.491 ulp (f32), 1.49 (f64).
WICK_FN float rsqrt(float x) {
#if WICK_FN_NVCC_DEVICE
  const RootF32 root(x);
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(root.root));
  const float near = fma(r, -fma(root.root, r, -1.0f), r);  // NaN at 0 and infinity: r is right
  return (root.ends ? r : near) * (root.small ? 0x1p48f : 1.0f);
#else
  return 1.0f / sqrt(x);
#endif
}
WICK_FN double rsqrt(double x) { return 1.0 / sqrt(x); }

/// x·x. Every input; correctly rounded.
WICK_FN float sqr(float x) { return x * x; }
WICK_FN double sqr(double x) { return x * x; }
/// x·x, for code that uses the name square.
WICK_FN float square(float x) { return x * x; }
WICK_FN double square(double x) { return x * x; }

namespace detail {

/// A product as an unevaluated sum of two doubles.
struct ProductF64 {
  double high, low;
};

/// log2|x| of a float with a relative error of 2^-35; ±inf for inf and 0, NaN stays NaN.
WICK_FN double log2_of_magnitude(float x) {
  constexpr u32 kLow = 0x3f3504f3u;  // √½: |x| = 2^k·m with m in [√½, √2)
  const float a = abs(x);
  const bool denormal = a < 0x1p-126f;
  const u32 b = f32_bits(denormal ? a * 0x1p23f : a) - kLow;
  const float k = static_cast<float>(static_cast<i32>(b) >> 23) - (denormal ? 23.0f : 0.0f);
  const float special = a == 0.0f ? -kInfF32 : (a < kInfF32 ? 0.0f : a);
  const double f = static_cast<double>(bits_f32((b & 0x007fffffu) + kLow) - 1.0f);
  double p = 0x1.3ce8ec444fcfbp-4;
  p = fma(p, f, -0x1.2489037cdef0dp-3);
  p = fma(p, f, 0x1.2871db03f6e78p-3);
  p = fma(p, f, -0x1.252f31f762fe8p-3);
  p = fma(p, f, 0x1.45291a1ad8927p-3);
  p = fma(p, f, -0x1.7141719082265p-3);
  p = fma(p, f, 0x1.a63f445900defp-3);
  p = fma(p, f, -0x1.ec72b58ddcd4dp-3);
  p = fma(p, f, 0x1.277651fc52496p-2);
  p = fma(p, f, -0x1.71547097b5387p-2);
  p = fma(p, f, 0x1.ec709ebb93d2p-2);
  p = fma(p, f, -0x1.715476565d24cp-1);
  p = fma(p, f, 0x1.71547652a1e9ap0);
  return fma(p, f, static_cast<double>(k + special));
}

/// 2 to the power of p, |p| ≤ 200 or NaN, rounded to float.
WICK_FN float exp2_rounded(double p) {
  constexpr double kShift = 0x1.8p52 + 254.0;
  const double t = p + kShift;
  const float r = static_cast<float>(p - (t - kShift));
  float e = 0x1.3f9068p-13f;
  e = fma(e, r, 0x1.5f0a66p-10f);
  e = fma(e, r, 0x1.3b30bp-7f);
  e = fma(e, r, 0x1.c6af78p-5f);
  e = fma(e, r, 0x1.ebfbd8p-3f);
  e = fma(e, r, 0x1.62e43p-1f);
  e = fma(e, r, 1.0f);
  const u32 sum = static_cast<u32>(f64_bits(t));
  const u32 half = sum >> 1;
  return e * bits_f32(half << 23) * bits_f32((sum - half) << 23);
}

/// 2 to the power of p + low, |p| ≤ 1100 or NaN.
WICK_FN double exp2_of_sum(double p, double low) {
  constexpr double kShift = 0x1.8p52 + 2046.0;
  const double t = p + kShift;
  const double r = ((p - (t - kShift)) + low) * 0x1.62e42fefa39efp-1;
  const u64 sum = f64_bits(t);
  const u64 half = sum >> 1;
  const double s1 = bits_f64(half << 52), s2 = bits_f64((sum - half) << 52);
  return fma(r * s1, exp_quotient(r), s1) * s2;
}

/// y·log2|x| as a sum of two doubles, for a finite non-zero x and |y| ≤ 2^65, with a relative error
/// of about 2^-64. With |x| = 2^k·m and s = (m − 1)/(m + 1), log2(m) = s·(c0 + s²·(c1 + s²·Q(s²)));
/// c0, c1, s and all sums except the innermost are sums of two doubles.
WICK_FN ProductF64 times_log2(double y, double x) {
  const double a = abs(x);
  const bool denormal = a < 0x1p-1022;
  const u64 b = f64_bits(denormal ? a * 0x1p54 : a) - kLogLowF64;
  const double k = log_exponent(b, denormal);
  const double m = bits_f64((b & 0x000fffffffffffffu) + kLogLowF64);
  const double f = m - 1.0;
  const double d = m + 1.0;
  const double d_low = m - (d - 1.0);
  const double inverse = 1.0 / d;
  const double s = f * inverse;
  const double s_low = fma(-s, d_low, fma(-s, d, f)) * inverse;
  const double z = s * s;
  const double z_low = fma(s + s, s_low, fma(s, s, -z));
  double q = 0x1.5f17007e22194p-3;
  q = fma(q, z, 0x1.5956f3e3d4c95p-3);
  q = fma(q, z, 0x1.8a052836ea237p-3);
  q = fma(q, z, 0x1.c68f087170ba7p-3);
  q = fma(q, z, 0x1.0c9a84ff9c214p-2);
  q = fma(q, z, 0x1.484b13d729accp-2);
  q = fma(q, z, 0x1.a61762a7ae5c5p-2);
  q = fma(q, z, 0x1.2776c50ef9bfdp-1);
  // u = c1 + z·q, v = z·u, w = c0 + v, log2(m) = s·w.
  constexpr double kC1 = 0x1.ec709dc3a03fdp-1, kC0 = 0x1.71547652b82fep1;
  const double zq = z * q;
  const double u = kC1 + zq;
  const double u_low = (zq - (u - kC1)) + 0x1.d2adc011ccdd5p-55;
  const double v = z * u;
  const double v_low = fma(z, u, -v) + fma(z, u_low, z_low * u);
  const double w = kC0 + v;
  const double w_low = (v - (w - kC0)) + (0x1.777d0ffda0d24p-55 + v_low);
  const double l = s * w;
  const double l_low = fma(s, w, -l) + fma(s, w_low, s_low * w);
  const double log = k + l;
  const double log_low = (l - (log - k)) + l_low;
  const double p = y * log;
  return {p, fma(y, log_low, fma(y, log, -p))};
}

/// pow(x, y) from the power of |x|: applies the sign and the special cases that a logarithm can't
/// express.
template <class F>
WICK_FN F signed_power(F x, F y, F power, bool negative, F most, F nan) {
  const bool whole = y == rint(y);
  const F half = F(0.5) * y;
  const bool odd = whole & (half != rint(half));
  const bool imaginary = (x < F(0)) & (x >= -most) & !whole;
  const F magnitude = ((y == F(0)) | (x == F(1))) ? F(1) : power;
  const F signed_magnitude = (odd & negative) ? -magnitude : magnitude;
  return imaginary ? nan : signed_magnitude;
}

}  // namespace detail

/// x to the power of y. Every input, with the special values of C99: 1 if y = 0 or x = 1 whatever
/// the other is, NaN for a finite x below zero and a non-integer y. Worst 0.93 ulp (f32), 0.96
/// (f64).
WICK_FN float pow(float x, float y) {
  // For |y| > 2^40 every power except that of ±1 overflows or underflows.
  float clamped = y > 0x1p40f ? 0x1p40f : y;
  clamped = clamped < -0x1p40f ? -0x1p40f : clamped;
  double p = static_cast<double>(clamped) * detail::log2_of_magnitude(x);
  p = p > 130.0 ? 130.0 : p;
  p = p < -152.0 ? -152.0 : p;
  return detail::signed_power(x, y, detail::exp2_rounded(p), (f32_bits(x) >> 31) != 0,
                              0x1.fffffep127f, detail::kNaNF32);
}
WICK_FN double pow(double x, double y) {
  double clamped = y > 0x1p65 ? 0x1p65 : y;
  clamped = clamped < -0x1p65 ? -0x1p65 : clamped;
  const detail::ProductF64 p = detail::times_log2(clamped, x);
  const bool above = p.high > 1100.0, below = p.high < -1100.0;
  const double high = above ? 1100.0 : (below ? -1100.0 : p.high);
  const double power = detail::exp2_of_sum(high, (above | below) ? 0.0 : p.low);
  // 0 and infinity have no logarithm. A NaN operand must give NaN.
  const double a = abs(x);
  const double extreme = (a == 0.0) == (y > 0.0) ? 0.0 : detail::kInfF64;
  const double some = ((a == 0.0) | (a == detail::kInfF64)) ? extreme : power;
  const double known = ((x != x) | (y != y)) ? detail::kNaNF64 : some;
  return detail::signed_power(x, y, known, (f64_bits(x) >> 63) != 0, 0x1.fffffffffffffp1023,
                              detail::kNaNF64);
}

}  // namespace wick::math
