// f64 arithmetic.

#include "emu/tests/reference.h"
#include "emu/tests/scaled_fma.h"

namespace emu::test {

using D = double;

void add_float64(Table& t) {
  t.op("v_add_f64", [](D a, D b) { return a + b; });
  t.op("v_mul_f64", [](D a, D b) { return a * b; });
  t.op("v_fma_f64", [](D a, D b, D c) { return std::fma(a, b, c); });
  t.op("v_fmac_f64", [](D a, D b, D c) { return std::fma(a, b, c); }).accumulate();
  t.op("v_min_f64", [](D a, D b) { return float_min(a, b); });
  t.op("v_max_f64", [](D a, D b) { return float_max(a, b); });
  t.op("v_floor_f64", [](D a) { return std::floor(a); });
  t.op("v_ceil_f64", [](D a) { return std::ceil(a); });
  t.op("v_trunc_f64", [](D a) { return std::trunc(a); });
  t.op("v_rndne_f64", [](D a) { return std::nearbyint(a); });
  t.op("v_fract_f64", [](D a) {
    if (std::isinf(a)) return quiet_nan<D>();
    return std::min(a - std::floor(a), 0x1.fffffffffffffp-1);
  });
  t.op("v_ldexp_f64", [](D a, i32 n) { return std::ldexp(a, std::clamp(n, -5000, 5000)); });
  t.op("v_frexp_mant_f64", [](D a) {
    int exponent = 0;
    return std::isinf(a) || a != a ? a : std::frexp(a, &exponent);
  });
  t.op("v_frexp_exp_i32_f64", [](D a) -> i32 {
    int exponent = 0;
    if (std::isinf(a) || a != a) return 0;
    std::frexp(a, &exponent);
    return exponent;
  });
  t.op("v_div_fixup_f64", [](D q, D d, D n) {
     const bool negative = sign_of(d) != sign_of(n);
     const auto put = [negative](D x) { return negative ? -x : x; };
     if (n != n || d != d) return quiet_nan<D>();
     if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return quiet_nan<D>();
     if (d == 0 || std::isinf(n)) return put(std::numeric_limits<D>::infinity());
     if (std::isinf(d) || n == 0) return put(0.0);
     if (std::ilogb(n) - std::ilogb(d) > 1024) return put(std::numeric_limits<D>::infinity());
     if (std::ilogb(n) - std::ilogb(d) < -1075) return put(0.0);
     return put(std::abs(q));
   }).normal();
  t.op("v_div_fmas_f64", [](D a, D b, D c, bool vcc) {
     return scaled_fma(a, b, c, !vcc ? 0 : std::abs(c) >= 2 ? 128 : -128);
   }).with_vcc();
  // About half of the mantissa is correct. clang's division and square root refine it.
  const double kPart = std::ldexp(1.0, 53 - 24);
  t.op("v_rcp_f64", [](D a) { return 1 / a; }).ulp(kPart).normal();
  t.op("v_rsq_f64", [](D a) { return 1 / std::sqrt(a); }).ulp(kPart).normal();
  t.op("v_sqrt_f64", [](D a) { return std::sqrt(a); }).ulp(kPart).normal();
}

}  // namespace emu::test
