// f32 arithmetic.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

/// The DX9 rule: zero times anything is zero.
EMU_INLINE F32 multiply_dx9(F32 a, F32 b) {
  return (a == 0.0f) | (b == 0.0f) ? splat<F32>(0) : a * b;
}
EMU_INLINE F32 fma_dx9(F32 a, F32 b, F32 c) { return (a == 0.0f) | (b == 0.0f) ? c : fma(a, b, c); }

/// gfx9's unfused multiply-adds flush denormals regardless of MODE.
EMU_INLINE F32 without_denormals(F32 x) {
  return is_denormal(x) ? bits_as<F32>(bits_as<U32>(x) & 0x80000000) : x;
}
EMU_INLINE F32 multiply_add(F32 a, F32 b, F32 c) {
  const F32 product = without_denormals(without_denormals(a) * without_denormals(b));
  return without_denormals(product + without_denormals(c));
}

/// The result is below one even if the difference rounds to one.
EMU_INLINE F32 fract(F32 x) {
  const F32 r = x - round_down(x);
  return r >= 1.0f ? bits_as<F32>(splat<U32>(0x3f7fffff)) : r;
}

EMU_INLINE F32 mullit(F32 a, F32 b, F32 c) {
  const F32 lowest = bits_as<F32>(splat<U32>(0xff7fffff));
  const auto none = (b <= lowest) | (b != b) | (c <= 0.0f) | (c != c);
  return none ? lowest : a * b;
}

// Cube maps use the axis of the largest magnitude; Z precedes Y, and Y precedes X.
struct CubeAxis {
  Truth<F32> z, y;
};
EMU_INLINE CubeAxis cube_axis(F32 x, F32 y, F32 z) {
  const F32 ax = absolute(x), ay = absolute(y), az = absolute(z);
  return {(az >= ax) & (az >= ay), ay >= ax};
}
EMU_INLINE F32 cube_face(F32 x, F32 y, F32 z) {
  const CubeAxis axis = cube_axis(x, y, z);
  const auto face = [](F32 v, float first) {
    return v < 0.0f ? splat<F32>(first + 1) : splat<F32>(first);
  };
  return axis.z ? face(z, 4) : axis.y ? face(y, 2) : face(x, 0);
}
EMU_INLINE F32 cube_s(F32 x, F32 y, F32 z) {
  const CubeAxis axis = cube_axis(x, y, z);
  return axis.z ? (z < 0.0f ? -x : x) : axis.y ? x : (x < 0.0f ? z : -z);
}
EMU_INLINE F32 cube_t(F32 x, F32 y, F32 z) {
  const CubeAxis axis = cube_axis(x, y, z);
  return axis.z ? -y : axis.y ? (y < 0.0f ? -z : z) : -y;
}
EMU_INLINE F32 cube_major(F32 x, F32 y, F32 z) {
  const CubeAxis axis = cube_axis(x, y, z);
  return (axis.z ? z : axis.y ? y : x) * 2.0f;
}

constexpr Row kRows[] = {
    hot<[](F32 a, F32 b) { return a + b; }>("v_add_f32"),
    hot<[](F32 a, F32 b) { return a - b; }>("v_sub_f32"),
    hot<[](F32 a, F32 b) { return b - a; }>("v_subrev_f32"),
    hot<[](F32 a, F32 b) { return a * b; }>("v_mul_f32"),
    ieee<EMU_BY_IEEE((F32 a, F32 b), N::least(a, b)), Heat::hot>("v_min_f32"),
    ieee<EMU_BY_IEEE((F32 a, F32 b), N::most(a, b)), Heat::hot>("v_max_f32"),
    hot<[](F32 a, F32 b, F32 c) { return fma(a, b, c); }>("v_fma_f32"),
    hot_accumulate<[](F32 a, F32 b, F32 c) { return fma(a, b, c); }>("v_fmac_f32"),
    warm<[](F32 a, F32 k, F32 b) { return fma(a, k, b); }>("v_fmamk_f32"),
    warm<[](F32 a, F32 b, F32 k) { return fma(a, b, k); }>("v_fmaak_f32"),
    warm<[](Mixed a, Mixed b, Mixed c) { return fma(a.value, b.value, c.value); }>("v_fma_mix_f32"),
    vop<[](F32 a, F32 b, F32 c) { return multiply_add(a, b, c); }>("v_mad_f32"),
    vop_accumulate<[](F32 a, F32 b, F32 c) { return multiply_add(a, b, c); }>("v_mac_f32"),
    vop<[](F32 a, F32 k, F32 b) { return multiply_add(a, k, b); }>("v_madmk_f32"),
    vop<[](F32 a, F32 b, F32 k) { return multiply_add(a, b, k); }>("v_madak_f32"),
    vop<[](F32 a, F32 b) { return multiply_dx9(a, b); }>("v_mul_dx9_zero_f32"),
    vop<[](F32 a, F32 b) { return multiply_dx9(a, b); }>("v_mul_legacy_f32"),
    vop<[](F32 a, F32 b, F32 c) { return fma_dx9(a, b, c); }>("v_fma_dx9_zero_f32"),
    vop<[](F32 a, F32 b, F32 c) { return fma_dx9(a, b, c); }>("v_fma_legacy_f32"),
    vop<[](F32 a, F32 b, F32 c) { return multiply_dx9(a, b) + c; }>("v_mad_legacy_f32"),
    vop_accumulate<[](F32 a, F32 b, F32 c) { return fma_dx9(a, b, c); }>("v_fmac_dx9_zero_f32"),
    vop_accumulate<[](F32 a, F32 b, F32 c) { return fma_dx9(a, b, c); }>("v_fmac_legacy_f32"),
    ieee<EMU_BY_IEEE((F32 a, F32 b, F32 c), N::least(N::least(a, b), c)), Heat::warm>("v_min3_f32"),
    ieee<EMU_BY_IEEE((F32 a, F32 b, F32 c), N::most(N::most(a, b), c)), Heat::warm>("v_max3_f32"),
    ieee<EMU_BY_IEEE((F32 a, F32 b, F32 c), N::middle(a, b, c)), Heat::warm>("v_med3_f32"),
    ieee<EMU_BY_IEEE((F32 a, F32 b, F32 c), N::least(N::most(a, b), c))>("v_maxmin_f32"),
    ieee<EMU_BY_IEEE((F32 a, F32 b, F32 c), N::most(N::least(a, b), c))>("v_minmax_f32"),
    warm<[](F32 x) { return round_down(x); }>("v_floor_f32"),
    vop<[](F32 x) { return round_up(x); }>("v_ceil_f32"),
    warm<[](F32 x) { return round_even(x); }>("v_rndne_f32"),
    vop<[](F32 x) { return round_to_zero(x); }>("v_trunc_f32"),
    vop<[](F32 x) { return fract(x); }>("v_fract_f32"),
    warm<[](F32 x, I32 n) { return scale(x, n); }>("v_ldexp_f32"),
    vop<[](F32 x) { return fraction_exponent(x); }>("v_frexp_exp_i32_f32"),
    vop<[](F32 x) { return fraction(x); }>("v_frexp_mant_f32"),
    vop<[](F32 a, F32 b, F32 c) { return mullit(a, b, c); }>("v_mullit_f32"),
    vop<[](F32 x, F32 y, F32 z) { return cube_face(x, y, z); }>("v_cubeid_f32"),
    vop<[](F32 x, F32 y, F32 z) { return cube_s(x, y, z); }>("v_cubesc_f32"),
    vop<[](F32 x, F32 y, F32 z) { return cube_t(x, y, z); }>("v_cubetc_f32"),
    vop<[](F32 x, F32 y, F32 z) { return cube_major(x, y, z); }>("v_cubema_f32"),
};

}  // namespace

std::span<const Row> float_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
