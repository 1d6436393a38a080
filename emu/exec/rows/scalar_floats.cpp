// Floats in scalar registers, which gfx11.5 and gfx12 have.

#include "emu/exec/scalar_floats.h"

#include <bit>
#include <cmath>
#include <limits>

#include "emu/exec/extremes.h"
#include "emu/exec/half_rounding.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/salu.h"

namespace emu::EMU_VARIANT {
namespace {

using u32 = uint32_t;
using i32 = int32_t;

float real(u32 bits) { return std::bit_cast<float>(bits); }
u32 bits(float value) { return std::bit_cast<u32>(value); }

constexpr auto kMultiplyAdd = [](u32 a, u32 b, u32 c) {
  return bits(std::fma(real(a), real(b), real(c)));
};

template <class T>
T saturated(float x) {
  if (!(x == x)) return 0;
  if (x <= static_cast<float>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<float>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

#define EMU_COMPARE_REAL(name, condition) \
  sop<[](u32 x, u32 y, u32& scc) {        \
    const float a = real(x), b = real(y); \
    scc = condition;                      \
  }>("s_cmp_" name "_f32")

#define EMU_COMPARE(name, condition) \
  of_scalars_row<[](F16 a, F16 b) { return Lanes{lane_mask(condition)}; }>("s_cmp_" name "_f16")
#define EMU_COMPARE_BOTH(name, condition)                                                    \
  EMU_COMPARE(name, condition),                                                              \
      of_scalars_row<[](F32 a, F32 b) { return Lanes{lane_mask(condition)}; }>("s_cmp_" name \
                                                                               "_f32")

template <class V, bool kMost, bool kIeee>
constexpr auto kExtreme = [](V a, V b) {
  using N = FloatOrder<kIeee>;
  return kMost ? N::most(a, b) : N::least(a, b);
};

template <class V, bool kMost>
Stop extreme_by_ieee(Wave* w, const Op* op) {
  if ((w->mode & kIeeeMode) == 0) {
    [[clang::musttail]] return of_scalars<kExtreme<V, kMost, false>>(w, op);
  }
  [[clang::musttail]] return of_scalars<kExtreme<V, kMost, true>>(w, op);
}

template <class V, bool kMost>
void lower_by_ieee_mode(Lowering& l, const Inst& inst) {
  lower_of_scalars<kExtreme<V, kMost, false>, false>(l, inst);
  l.ops.back().fn = &extreme_by_ieee<V, kMost>;
}
template <class V, bool kMost>
constexpr Row by_ieee_row(const char* name) {
  return {name, &lower_by_ieee_mode<V, kMost>};
}

constexpr Row kRows[] = {
    sop<[](u32 a, u32 b) { return bits(real(a) + real(b)); }>("s_add_f32"),
    sop<[](u32 a, u32 b) { return bits(real(a) - real(b)); }>("s_sub_f32"),
    sop<[](u32 a, u32 b) { return bits(real(a) * real(b)); }>("s_mul_f32"),
    sop_accumulate<kMultiplyAdd>("s_fmac_f32"),
    sop<kMultiplyAdd>("s_fmaak_f32"),
    sop<kMultiplyAdd>("s_fmamk_f32"),
    sop<[](i32 a) { return bits(static_cast<float>(a)); }>("s_cvt_f32_i32"),
    sop<[](u32 a) { return bits(static_cast<float>(a)); }>("s_cvt_f32_u32"),
    sop<[](u32 a) { return saturated<i32>(real(a)); }>("s_cvt_i32_f32"),
    sop<[](u32 a) { return saturated<u32>(real(a)); }>("s_cvt_u32_f32"),
    sop<[](u32 a) { return bits(std::floor(real(a))); }>("s_floor_f32"),
    sop<[](u32 a) { return bits(std::ceil(real(a))); }>("s_ceil_f32"),
    sop<[](u32 a) { return bits(std::trunc(real(a))); }>("s_trunc_f32"),
    EMU_COMPARE_REAL("lt", a < b),
    EMU_COMPARE_REAL("eq", a == b),
    EMU_COMPARE_REAL("le", a <= b),
    EMU_COMPARE_REAL("gt", a > b),
    EMU_COMPARE_REAL("lg", a<b || a> b),
    EMU_COMPARE_REAL("ge", a >= b),
    EMU_COMPARE_REAL("neq", !(a == b)),
    EMU_COMPARE_REAL("nlt", !(a < b)),
    EMU_COMPARE_REAL("ngt", !(a > b)),
    of_scalars_row<[](F16 a, F16 b) { return a + b; }>("s_add_f16"),
    of_scalars_row<[](F16 a, F16 b) { return a - b; }>("s_sub_f16"),
    of_scalars_row<[](F16 a, F16 b) { return a * b; }>("s_mul_f16"),
    of_scalars_accumulate<[](F16 a, F16 b, F16 c) { return fma(a, b, c); }>("s_fmac_f16"),
    of_scalars_row<kMinimumNumber<F16>>("s_min_num_f16"),
    of_scalars_row<kMaximumNumber<F16>>("s_max_num_f16"),
    of_scalars_row<kMinimumNumber<F32>>("s_min_num_f32"),
    of_scalars_row<kMaximumNumber<F32>>("s_max_num_f32"),
    // gfx11.5 has IEEE mode, and instructions without "num" in their names.
    by_ieee_row<F16, false>("s_min_f16"),
    by_ieee_row<F16, true>("s_max_f16"),
    by_ieee_row<F32, false>("s_min_f32"),
    by_ieee_row<F32, true>("s_max_f32"),
    of_scalars_row<kMinimum<F16>>("s_minimum_f16"),
    of_scalars_row<kMaximum<F16>>("s_maximum_f16"),
    of_scalars_row<kMinimum<F32>>("s_minimum_f32"),
    of_scalars_row<kMaximum<F32>>("s_maximum_f32"),
    of_scalars_row<[](F16 x) { return round_up(x); }>("s_ceil_f16"),
    of_scalars_row<[](F16 x) { return round_down(x); }>("s_floor_f16"),
    of_scalars_row<[](F16 x) { return round_to_zero(x); }>("s_trunc_f16"),
    of_scalars_row<[](F16 x) { return round_even(x); }>("s_rndne_f16"),
    of_scalars_row<[](F32 x) { return round_even(x); }>("s_rndne_f32"),
    of_scalars_row<[](F32 x) { return convert<F16>(x); }>("s_cvt_f16_f32"),
    of_scalars_row<[](F16 x) { return convert<F32>(x); }>("s_cvt_f32_f16"),
    of_scalars_row<[](U32 x) { return convert<F32>(bits_as<F16>(convert<U16>(x >> 16))); }>(
        "s_cvt_hi_f32_f16"),
    of_scalars_row<[](F32 a, F32 b) { return pack_rtz(a, b); }>("s_cvt_pk_rtz_f16_f32"),
    EMU_COMPARE("lt", a < b),
    EMU_COMPARE("eq", a == b),
    EMU_COMPARE("le", a <= b),
    EMU_COMPARE("gt", a > b),
    EMU_COMPARE("lg", (a < b) | (a > b)),
    EMU_COMPARE("ge", a >= b),
    EMU_COMPARE("neq", !(a == b)),
    EMU_COMPARE("nlt", !(a < b)),
    EMU_COMPARE("ngt", !(a > b)),
    EMU_COMPARE_BOTH("nge", !(a >= b)),
    EMU_COMPARE_BOTH("nle", !(a <= b)),
    EMU_COMPARE_BOTH("nlg", !((a < b) | (a > b))),
    EMU_COMPARE_BOTH("o", (a == a) & (b == b)),
    EMU_COMPARE_BOTH("u", (a != a) | (b != b)),
};

}  // namespace

std::span<const Row> scalar_float_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
