// f64 arithmetic.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

EMU_INLINE F64 fract(F64 x) {
  const F64 r = x - round_down(x);
  return r >= 1.0 ? bits_as<F64>(splat<U64>(0x3fefffffffffffff)) : r;
}

/// The bits of 2/pi; the first has the value 1/2.
constexpr uint32_t kTwoOverPi[] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
};

/// Returns 53 bits of 2/pi, scaled by their position, which depends on the exponent of x and on the
/// segment. Reductions of large arguments multiply by them.
double two_over_pi_part(double x, uint32_t segment) {
  const auto exponent = static_cast<int>(__builtin_bit_cast(uint64_t, x) >> 52 & 0x7ff);
  int shift = static_cast<int>(segment & 31) * 53;
  if (exponent > 1077) shift += exponent - 1077;
  uint64_t bits = 0;
  for (int i = 0; i < 53; ++i) {
    const int at = shift + i;
    const bool set = at < 1201 && (kTwoOverPi[at / 32] >> (31 - at % 32) & 1);
    bits = bits << 1 | static_cast<uint64_t>(set);
  }
  int power = -53 - shift;
  if (exponent >= 1968) power += 128;
  return __builtin_ldexp(static_cast<double>(bits), power);
}

EMU_INLINE F64 trig_preop(F64 x, U32 segment) {
  F64 r;
  for (int i = 0; i < kLanes; ++i) r[i] = two_over_pi_part(x[i], segment[i]);
  return r;
}

constexpr Row kRows[] = {
    hot<[](F64 a, F64 b) { return a + b; }>("v_add_f64"),
    hot<[](F64 a, F64 b) { return a * b; }>("v_mul_f64"),
    hot<[](F64 a, F64 b, F64 c) { return fma(a, b, c); }>("v_fma_f64"),
    warm_accumulate<[](F64 a, F64 b, F64 c) { return fma(a, b, c); }>("v_fmac_f64"),
    ieee<EMU_BY_IEEE((F64 a, F64 b), N::least(a, b)), Heat::warm>("v_min_f64"),
    ieee<EMU_BY_IEEE((F64 a, F64 b), N::most(a, b)), Heat::warm>("v_max_f64"),
    warm<[](F64 x) { return round_down(x); }>("v_floor_f64"),
    vop<[](F64 x) { return round_up(x); }>("v_ceil_f64"),
    warm<[](F64 x) { return round_even(x); }>("v_rndne_f64"),
    vop<[](F64 x) { return round_to_zero(x); }>("v_trunc_f64"),
    vop<[](F64 x) { return fract(x); }>("v_fract_f64"),
    warm<[](F64 x, I32 n) { return scale(x, n); }>("v_ldexp_f64"),
    vop<[](F64 x) { return convert<I32>(fraction_exponent(x)); }>("v_frexp_exp_i32_f64"),
    vop<[](F64 x) { return fraction(x); }>("v_frexp_mant_f64"),
    vop<[](F64 x, U32 segment) { return trig_preop(x, segment); }>("v_trig_preop_f64"),
};

}  // namespace

std::span<const Row> double_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
