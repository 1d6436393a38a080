// f16 and 16-bit integer arithmetic with one value per lane.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

EMU_INLINE F16 fract(F16 x) {
  const F16 r = x - round_down(x);
  return float_bits(r) == 0x3c00 ? bits_as<F16>(splat<U16>(0x3bff)) : r;
}

EMU_INLINE F16 mix(Mixed a, Mixed b, Mixed c) {
  return convert<F16>(fma(a.value, b.value, c.value));
}

EMU_INLINE I32 wide(I16 x) { return convert<I32>(x); }
EMU_INLINE U32 wide(U16 x) { return convert<U32>(x); }

EMU_INLINE U16 mad_clamped(U16 a, U16 b, U16 c) {
  const U32 r = wide(a) * wide(b);
  const U32 sum = r + wide(c);  // overflows only if r is close to 2^32, hence above 16 bits
  return convert<U16>((r > 0xffff) | (sum > 0xffff) ? splat<U32>(0xffff) : sum);
}
EMU_INLINE I16 mad_clamped(I16 a, I16 b, I16 c) {
  return convert<I16>(clip(wide(a) * wide(b) + wide(c), -0x8000, 0x7fff));
}
EMU_INLINE U32 mad_wide_clamped(U16 a, U16 b, U32 c) {
  return __builtin_elementwise_add_sat(wide(a) * wide(b), c);
}
EMU_INLINE I32 mad_wide_clamped(I16 a, I16 b, I32 c) {
  return __builtin_elementwise_add_sat(wide(a) * wide(b), c);
}

#define EMU_SAT_ADD(Type)               \
  [](Type a, Type b) { return a + b; }, \
      [](Type a, Type b) { return __builtin_elementwise_add_sat(a, b); }
#define EMU_SAT_SUB(Type)               \
  [](Type a, Type b) { return a - b; }, \
      [](Type a, Type b) { return __builtin_elementwise_sub_sat(a, b); }
#define EMU_SAT_SUBREV(Type)            \
  [](Type a, Type b) { return b - a; }, \
      [](Type a, Type b) { return __builtin_elementwise_sub_sat(b, a); }

constexpr Row kRows[] = {
    hot<[](F16 a, F16 b) { return a + b; }>("v_add_f16"),
    warm<[](F16 a, F16 b) { return a - b; }>("v_sub_f16"),
    warm<[](F16 a, F16 b) { return b - a; }>("v_subrev_f16"),
    hot<[](F16 a, F16 b) { return a * b; }>("v_mul_f16"),
    ieee<EMU_BY_IEEE((F16 a, F16 b), N::least(a, b)), Heat::warm>("v_min_f16"),
    ieee<EMU_BY_IEEE((F16 a, F16 b), N::most(a, b)), Heat::warm>("v_max_f16"),
    {"v_fma_f16", &lower_keeping<[](F16 a, F16 b, F16 c) { return fma(a, b, c); }, false, false>},
    warm_accumulate<[](F16 a, F16 b, F16 c) { return fma(a, b, c); }>("v_fmac_f16"),
    vop<[](F16 a, F16 k, F16 b) { return fma(a, k, b); }>("v_fmamk_f16"),
    vop<[](F16 a, F16 b, F16 k) { return fma(a, b, k); }>("v_fmaak_f16"),
    vop<[](F16 a, F16 b, F16 c) { return fma(a, b, c); }>("v_fma_legacy_f16"),
    keeping<[](F16 a, F16 b, F16 c) { return a * b + c; }>("v_mad_f16"),
    vop<[](F16 a, F16 b, F16 c) { return a * b + c; }>("v_mad_legacy_f16"),
    {"v_mac_f16", &lower_keeping<[](F16 a, F16 b, F16 c) { return a * b + c; }, true, false>},
    keeping<[](F16 a, F16 k, F16 b) { return a * k + b; }>("v_madmk_f16"),
    keeping<[](F16 a, F16 b, F16 k) { return a * b + k; }>("v_madak_f16"),
    keeping<[](Mixed a, Mixed b, Mixed c) { return mix(a, b, c); }>("v_fma_mixlo_f16"),
    {"v_fma_mixhi_f16",
     &lower_keeping<[](Mixed a, Mixed b, Mixed c) { return mix(a, b, c); }, false, true>},
    ieee<EMU_BY_IEEE((F16 a, F16 b, F16 c), N::least(N::least(a, b), c))>("v_min3_f16"),
    ieee<EMU_BY_IEEE((F16 a, F16 b, F16 c), N::most(N::most(a, b), c))>("v_max3_f16"),
    ieee<EMU_BY_IEEE((F16 a, F16 b, F16 c), N::middle(a, b, c))>("v_med3_f16"),
    ieee<EMU_BY_IEEE((F16 a, F16 b, F16 c), N::least(N::most(a, b), c))>("v_maxmin_f16"),
    ieee<EMU_BY_IEEE((F16 a, F16 b, F16 c), N::most(N::least(a, b), c))>("v_minmax_f16"),
    vop<[](F16 x) { return round_down(x); }>("v_floor_f16"),
    vop<[](F16 x) { return round_up(x); }>("v_ceil_f16"),
    vop<[](F16 x) { return round_even(x); }>("v_rndne_f16"),
    vop<[](F16 x) { return round_to_zero(x); }>("v_trunc_f16"),
    vop<[](F16 x) { return fract(x); }>("v_fract_f16"),
    vop<[](F16 x, I16 n) { return scale(x, wide(n)); }>("v_ldexp_f16"),
    vop<[](F16 x) { return fraction_exponent(x); }>("v_frexp_exp_i16_f16"),
    vop<[](F16 x) { return fraction(x); }>("v_frexp_mant_f16"),

    // Integer instructions, whose names contain `nc` from gfx10 on.
    saturating<EMU_SAT_ADD(U16)>("v_add_nc_u16"),
    saturating<EMU_SAT_ADD(U16)>("v_add_u16"),
    saturating<EMU_SAT_SUB(U16)>("v_sub_nc_u16"),
    saturating<EMU_SAT_SUB(U16)>("v_sub_u16"),
    saturating<EMU_SAT_SUBREV(U16)>("v_subrev_u16"),
    saturating<EMU_SAT_ADD(I16)>("v_add_nc_i16"),
    saturating<EMU_SAT_ADD(I16)>("v_add_i16"),
    saturating<EMU_SAT_SUB(I16)>("v_sub_nc_i16"),
    saturating<EMU_SAT_SUB(I16)>("v_sub_i16"),
    warm<[](U16 a, U16 b) { return a * b; }>("v_mul_lo_u16"),
    warm<[](U16 n, U16 a) { return a << (n & 15); }>("v_lshlrev_b16"),
    warm<[](U16 n, U16 a) { return a >> (n & 15); }>("v_lshrrev_b16"),
    warm<[](I16 n, I16 a) { return a >> (n & 15); }>("v_ashrrev_i16"),
    warm<[](U16 a, U16 b) { return minimum(a, b); }>("v_min_u16"),
    warm<[](U16 a, U16 b) { return maximum(a, b); }>("v_max_u16"),
    warm<[](I16 a, I16 b) { return minimum(a, b); }>("v_min_i16"),
    warm<[](I16 a, I16 b) { return maximum(a, b); }>("v_max_i16"),
    warm<[](U16 a, U16 b) { return a & b; }>("v_and_b16"),
    warm<[](U16 a, U16 b) { return a | b; }>("v_or_b16"),
    warm<[](U16 a, U16 b) { return a ^ b; }>("v_xor_b16"),
    vop<[](U16 a) { return ~a; }>("v_not_b16"),
    warm<[](U16 a) { return a; }>("v_mov_b16"),
    vop<[](U16 a, U16 b, U16 c) { return minimum(minimum(a, b), c); }>("v_min3_u16"),
    vop<[](U16 a, U16 b, U16 c) { return maximum(maximum(a, b), c); }>("v_max3_u16"),
    vop<[](U16 a, U16 b, U16 c) { return median(a, b, c); }>("v_med3_u16"),
    vop<[](I16 a, I16 b, I16 c) { return minimum(minimum(a, b), c); }>("v_min3_i16"),
    vop<[](I16 a, I16 b, I16 c) { return maximum(maximum(a, b), c); }>("v_max3_i16"),
    vop<[](I16 a, I16 b, I16 c) { return median(a, b, c); }>("v_med3_i16"),
    {"v_mad_u16", [](Lowering& l, const Inst& inst) {
       lower_saturating<[](U16 a, U16 b, U16 c) { return a * b + c; },
                        [](U16 a, U16 b, U16 c) { return mad_clamped(a, b, c); }, Heat::rare>(l, inst);
       l.extras.back().keep_high = true;
     }},
    {"v_mad_i16", [](Lowering& l, const Inst& inst) {
       lower_saturating<[](I16 a, I16 b, I16 c) { return a * b + c; },
                        [](I16 a, I16 b, I16 c) { return mad_clamped(a, b, c); }, Heat::rare>(l, inst);
       l.extras.back().keep_high = true;
     }},
    saturating<[](U16 a, U16 b, U16 c) { return a * b + c; },
               [](U16 a, U16 b, U16 c) { return mad_clamped(a, b, c); }>("v_mad_legacy_u16"),
    saturating<[](I16 a, I16 b, I16 c) { return a * b + c; },
               [](I16 a, I16 b, I16 c) { return mad_clamped(a, b, c); }>("v_mad_legacy_i16"),
    saturating<[](U16 a, U16 b, U32 c) { return wide(a) * wide(b) + c; },
               [](U16 a, U16 b, U32 c) { return mad_wide_clamped(a, b, c); }>("v_mad_u32_u16"),
    saturating<[](I16 a, I16 b, I32 c) { return wide(a) * wide(b) + c; },
               [](I16 a, I16 b, I32 c) { return mad_wide_clamped(a, b, c); }>("v_mad_i32_i16"),
    vop<[](F16 a, F16 b, Lanes c) { return select(c.bits, b, a); }>("v_cndmask_b16"),
};

}  // namespace

std::span<const Row> half_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
