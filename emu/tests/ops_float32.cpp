// f32 arithmetic.

#include "emu/tests/reference.h"
#include "emu/tests/scaled_fma.h"

namespace emu::test {
namespace {

using F = float;

constexpr double kTau = 6.283185307179586476925286766559;

/// The DX9 rule: zero times anything is zero.
F dx9_mul(F a, F b) { return a == 0 || b == 0 ? 0.0f : a * b; }
F dx9_fma(F a, F b, F c) { return a == 0 || b == 0 ? c : std::fma(a, b, c); }

/// Takes the fraction of a revolution first; the remainder is exact.
double turn(double x, double (*f)(double)) {
  return std::isinf(x) ? quiet_nan<double>() : f(std::fmod(x, 1.0) * kTau);
}

F mantissa(F x) {
  int exponent = 0;
  return std::isinf(x) || x != x ? x : std::frexp(x, &exponent);
}

i32 exponent_of(F x) {
  int exponent = 0;
  if (std::isinf(x) || x != x) return 0;
  std::frexp(x, &exponent);
  return exponent;
}

/// Flushes a denormal to zero with its sign.
F normal(F x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

/// Rounds the product as well, and flushes denormal inputs and results regardless of MODE.
F two_roundings(F a, F b, F c) {
  const F product = normal(normal(a) * normal(b));
  return normal(product + normal(c));
}

/// gfx9's multiply-adds are unfused; those of later generations are fused.
void add_unfused(Table& t) {
  t.op("v_mad_f32", [](F a, F b, F c) { return two_roundings(a, b, c); });
  t.op("v_mac_f32", [](F a, F b, F c) { return two_roundings(a, b, c); }).accumulate();
  t.op("v_madmk_f32", [](F a, F k, F b) { return two_roundings(a, k, b); }).literal(1);
  t.op("v_madak_f32", [](F a, F b, F k) { return two_roundings(a, b, k); }).literal(2);
}

void add_approximate(Table& t) {
  t.op("v_rcp_f32", [](F a) { return static_cast<F>(1.0 / a); }).ulp(1).normal();
  t.op("v_rcp_iflag_f32", [](F a) { return static_cast<F>(1.0 / a); }).ulp(1).normal();
  t.op("v_rsq_f32", [](F a) { return static_cast<F>(1.0 / std::sqrt(double{a})); }).ulp(1).normal();
  t.op("v_sqrt_f32", [](F a) { return static_cast<F>(std::sqrt(double{a})); }).ulp(1).normal();
  t.op("v_exp_f32",
       [](F a) {
         const auto x = static_cast<F>(std::exp2(double{a}));
         return x;
       })
      .ulp(1)
      .within(std::ldexp(1.0, -126))
      .normal();
  t.op("v_log_f32", [](F a) { return static_cast<F>(std::log2(double{a})); })
      .ulp(2)
      .within(1e-7)
      .normal();
  t.op("v_sin_f32", [](F a) { return static_cast<F>(turn(a, std::sin)); }).within(2e-6).normal();
  t.op("v_cos_f32", [](F a) { return static_cast<F>(turn(a, std::cos)); }).within(2e-6).normal();
}

void add_cube(Table& t) {
  const auto face = [](F x, F y, F z) {
    if (std::abs(z) >= std::abs(x) && std::abs(z) >= std::abs(y)) return 2;
    return std::abs(y) >= std::abs(x) ? 1 : 0;
  };
  t.op("v_cubeid_f32", [face](F x, F y, F z) {
    const F axis[] = {x, y, z};
    const int f = face(x, y, z);
    return static_cast<F>(2 * f + (axis[f] < 0 ? 1 : 0));
  });
  t.op("v_cubema_f32", [face](F x, F y, F z) {
    const F axis[] = {x, y, z};
    return 2 * axis[face(x, y, z)];
  });
  t.op("v_cubesc_f32", [face](F x, F y, F z) {
    const int f = face(x, y, z);
    if (f == 2) return z < 0 ? -x : x;
    if (f == 1) return x;
    return x < 0 ? z : -z;
  });
  t.op("v_cubetc_f32", [face](F x, F y, F z) {
    const int f = face(x, y, z);
    return f == 1 ? (y < 0 ? -z : z) : -y;
  });
}

}  // namespace

void add_float32(Table& t) {
  t.op("v_add_f32", [](F a, F b) { return a + b; });
  t.op("v_sub_f32", [](F a, F b) { return a - b; });
  t.op("v_subrev_f32", [](F a, F b) { return b - a; });
  t.op("v_mul_f32", [](F a, F b) { return a * b; });
  t.op("v_mul_dx9_zero_f32", [](F a, F b) { return dx9_mul(a, b); });
  t.op("v_fma_f32", [](F a, F b, F c) { return std::fma(a, b, c); });
  t.op("v_fmac_f32", [](F a, F b, F c) { return std::fma(a, b, c); }).accumulate();
  t.op("v_fmac_dx9_zero_f32", [](F a, F b, F c) { return dx9_fma(a, b, c); }).accumulate();
  t.op("v_fma_dx9_zero_f32", [](F a, F b, F c) { return dx9_fma(a, b, c); });
  t.op("v_fmamk_f32", [](F a, F k, F b) { return std::fma(a, k, b); }).literal(1);
  t.op("v_fmaak_f32", [](F a, F b, F k) { return std::fma(a, b, k); }).literal(2);
  t.op("v_min_f32", [](F a, F b) { return float_min(a, b); });
  t.op("v_max_f32", [](F a, F b) { return float_max(a, b); });
  t.op("v_min3_f32", [](F a, F b, F c) { return float_min(float_min(a, b), c); });
  t.op("v_max3_f32", [](F a, F b, F c) { return float_max(float_max(a, b), c); });
  t.op("v_med3_f32", [](F a, F b, F c) { return float_med3(a, b, c); });
  t.op("v_minmax_f32", [](F a, F b, F c) { return float_max(float_min(a, b), c); });
  t.op("v_maxmin_f32", [](F a, F b, F c) { return float_min(float_max(a, b), c); });
  t.op("v_floor_f32", [](F a) { return std::floor(a); });
  t.op("v_ceil_f32", [](F a) { return std::ceil(a); });
  t.op("v_trunc_f32", [](F a) { return std::trunc(a); });
  t.op("v_rndne_f32", [](F a) { return std::nearbyint(a); });
  t.op("v_fract_f32", [](F a) {
    if (std::isinf(a)) return quiet_nan<F>();
    return std::min(a - std::floor(a), 0x1.fffffep-1f);
  });
  t.op("v_ldexp_f32", [](F a, i32 n) { return std::ldexp(a, std::clamp(n, -1000, 1000)); });
  t.op("v_frexp_mant_f32", [](F a) { return mantissa(a); });
  t.op("v_frexp_exp_i32_f32", [](F a) { return exponent_of(a); });
  t.op("v_div_fixup_f32", [](F q, F d, F n) {
     const bool negative = sign_of(d) != sign_of(n);
     const auto put = [negative](F x) { return negative ? -x : x; };
     if (n != n || d != d) return quiet_nan<F>();
     if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return quiet_nan<F>();
     if (d == 0 || std::isinf(n)) return put(std::numeric_limits<F>::infinity());
     if (std::isinf(d) || n == 0) return put(0.0f);
     // If the operands' exponents differ this much, the quotient overflows whatever the iteration
     // computes.
     if (std::ilogb(n) - std::ilogb(d) > 128) return put(std::numeric_limits<F>::infinity());
     if (std::ilogb(n) - std::ilogb(d) < -150) return put(0.0f);
     return put(std::abs(q));
   }).normal();
  t.op("v_div_fmas_f32", [](F a, F b, F c, bool vcc) {
     // Undoes the scaling of v_div_scale: up for a large numerator, down otherwise.
     return scaled_fma(a, b, c, !vcc ? 0 : std::abs(c) >= 2 ? 64 : -64);
   }).with_vcc();
  add_approximate(t);
  add_unfused(t);
  add_cube(t);
}

}  // namespace emu::test
