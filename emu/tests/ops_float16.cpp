// f16 arithmetic: exact values are rounded once.

#include "emu/tests/reference.h"

namespace emu::test {
namespace {

using H = half;

double wide(H x) { return static_cast<double>(x); }
H root(double x) { return half_nearest(std::sqrt(x)); }

constexpr double kTau = 6.283185307179586476925286766559;

double turn(H x, double (*f)(double)) {
  return std::isinf(wide(x)) ? quiet_nan<double>() : f(std::fmod(wide(x), 1.0) * kTau);
}

}  // namespace

void add_float16(Table& t) {
  t.op("v_add_f16", [](H a, H b) { return half_nearest(wide(a) + wide(b)); });
  t.op("v_sub_f16", [](H a, H b) { return half_nearest(wide(a) - wide(b)); });
  t.op("v_subrev_f16", [](H a, H b) { return half_nearest(wide(b) - wide(a)); });
  t.op("v_mul_f16", [](H a, H b) { return half_nearest(wide(a) * wide(b)); });
  t.op("v_fma_f16", [](H a, H b, H c) { return half_fma(a, b, c); });
  t.op("v_fmac_f16", [](H a, H b, H c) { return half_fma(a, b, c); }).accumulate();
  t.op("v_fmamk_f16", [](H a, H k, H b) { return half_fma(a, k, b); }).literal(1);
  t.op("v_fmaak_f16", [](H a, H b, H k) { return half_fma(a, b, k); }).literal(2);
  t.op("v_min_f16", [](H a, H b) { return float_min(a, b); });
  t.op("v_max_f16", [](H a, H b) { return float_max(a, b); });
  t.op("v_min3_f16", [](H a, H b, H c) { return float_min(float_min(a, b), c); });
  t.op("v_max3_f16", [](H a, H b, H c) { return float_max(float_max(a, b), c); });
  t.op("v_med3_f16", [](H a, H b, H c) { return float_med3(a, b, c); });
  t.op("v_minmax_f16", [](H a, H b, H c) { return float_max(float_min(a, b), c); });
  t.op("v_maxmin_f16", [](H a, H b, H c) { return float_min(float_max(a, b), c); });
  t.op("v_floor_f16", [](H a) { return half_nearest(std::floor(wide(a))); });
  t.op("v_ceil_f16", [](H a) { return half_nearest(std::ceil(wide(a))); });
  t.op("v_trunc_f16", [](H a) { return half_nearest(std::trunc(wide(a))); });
  t.op("v_rndne_f16", [](H a) { return half_nearest(std::nearbyint(wide(a))); });
  t.op("v_fract_f16", [](H a) {
    if (std::isinf(wide(a))) return quiet_nan<H>();
    const double fraction = wide(a) - std::floor(wide(a));
    return fraction != fraction ? quiet_nan<H>() : half_nearest(std::min(fraction, 0x1.ffcp-1));
  });
  t.op("v_ldexp_f16", [](H a, i16 n) { return half_nearest(std::ldexp(wide(a), n)); });
  t.op("v_frexp_mant_f16", [](H a) {
    int exponent = 0;
    if (std::isinf(wide(a)) || a != a) return a;
    return half_nearest(std::frexp(wide(a), &exponent));
  });
  t.op("v_frexp_exp_i16_f16", [](H a) -> i16 {
    int exponent = 0;
    if (std::isinf(wide(a)) || a != a) return 0;
    std::frexp(wide(a), &exponent);
    return static_cast<i16>(exponent);
  });
  t.op("v_div_fixup_f16", [](H q, H d, H n) {
    const bool negative = sign_of(d) != sign_of(n);
    const auto put = [negative](H x) { return negative ? -x : x; };
    if (n != n || d != d) return quiet_nan<H>();
    const bool d_inf = std::isinf(wide(d)), n_inf = std::isinf(wide(n));
    if ((d == 0 && n == 0) || (d_inf && n_inf)) return quiet_nan<H>();
    if (d == 0 || n_inf) return put(static_cast<H>(HUGE_VALF));
    if (d_inf || n == 0) return put(static_cast<H>(0.0f));
    return put(sign_of(q) ? -q : q);
  });
  t.op("v_rcp_f16", [](H a) { return half_nearest(1 / wide(a)); }).ulp(1);
  t.op("v_rsq_f16", [](H a) { return half_nearest(1 / std::sqrt(wide(a))); }).ulp(1);
  t.op("v_sqrt_f16", [](H a) { return root(wide(a)); }).ulp(1);
  t.op("v_exp_f16", [](H a) { return half_nearest(std::exp2(wide(a))); }).ulp(2);
  t.op("v_log_f16", [](H a) { return half_nearest(std::log2(wide(a))); }).ulp(2).within(1e-3);
  t.op("v_sin_f16", [](H a) { return half_nearest(turn(a, std::sin)); }).within(2e-3);
  t.op("v_cos_f16", [](H a) { return half_nearest(turn(a, std::cos)); }).within(2e-3);
}

}  // namespace emu::test
