// 32- and 64-bit integer arithmetic.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

EMU_INLINE WithLanes<U32> add_carry(U32 a, U32 b, LaneMask carry) {
  const U32 sum = a + b;
  const U32 with = select(carry, sum + 1, sum);
  return {with, {lane_mask(sum < a) | (carry & lane_mask(sum == ~0u))}};
}

EMU_INLINE WithLanes<U32> sub_borrow(U32 a, U32 b, LaneMask borrow) {
  const U32 difference = a - b;
  return {select(borrow, difference - 1, difference),
          {lane_mask(a < b) | (borrow & lane_mask(a == b))}};
}

/// Returns `sum`, or all ones in lanes with a carry.
EMU_INLINE WithLanes<U32> saturated_up(WithLanes<U32> sum) {
  return {select(sum.lanes.bits, splat<U32>(~0u), sum.value), sum.lanes};
}
EMU_INLINE WithLanes<U32> saturated_down(WithLanes<U32> difference) {
  return {select(difference.lanes.bits, splat<U32>(0), difference.value), difference.lanes};
}

EMU_INLINE U32 low24(U32 a) { return a & 0xffffff; }
EMU_INLINE I32 low24(I32 a) { return (a << 8) >> 8; }
EMU_INLINE U64 product(U32 a, U32 b) { return convert<U64>(a) * convert<U64>(b); }
EMU_INLINE I64 product(I32 a, I32 b) { return convert<I64>(a) * convert<I64>(b); }
EMU_INLINE U32 high(U64 x) { return convert<U32>(x >> 32); }
EMU_INLINE I32 high(I64 x) { return convert<I32>(x >> 32); }

EMU_INLINE WithLanes<U64> mad(U32 a, U32 b, U64 c) {
  const U64 sum = product(a, b) + c;
  return {sum, {lane_mask(sum < c)}};
}
/// The carry is bit 64 of the sum.
EMU_INLINE WithLanes<I64> mad(I32 a, I32 b, I64 c) {
  const I64 p = product(a, b);
  const I64 sum = bits_as<I64>(bits_as<U64>(p) + bits_as<U64>(c));
  const I64 overflow = (p ^ sum) & (c ^ sum);
  return {sum, {lane_mask((overflow ^ sum) < 0)}};
}

EMU_INLINE U32 mad24_clamped(U32 a, U32 b, U32 c) {
  const U64 sum = product(low24(a), low24(b)) + convert<U64>(c);
  return convert<U32>(sum > 0xffffffff ? splat<U64>(0xffffffff) : sum);
}
EMU_INLINE I32 mad24_clamped(I32 a, I32 b, I32 c) {
  const I64 sum = product(low24(a), low24(b)) + convert<I64>(c);
  return convert<I32>(clip(sum, -int64_t{0x80000000}, int64_t{0x7fffffff}));
}

template <class V>
EMU_INLINE V add_sat(V a, V b) {
  return __builtin_elementwise_add_sat(a, b);
}
template <class V>
EMU_INLINE V sub_sat(V a, V b) {
  return __builtin_elementwise_sub_sat(a, b);
}

constexpr auto kAdd = [](U32 a, U32 b) { return a + b; };
constexpr auto kSub = [](U32 a, U32 b) { return a - b; };
constexpr auto kSubrev = [](U32 a, U32 b) { return b - a; };
constexpr auto kAddSat = [](U32 a, U32 b) { return add_sat(a, b); };
constexpr auto kSubSat = [](U32 a, U32 b) { return sub_sat(a, b); };
constexpr auto kSubrevSat = [](U32 a, U32 b) { return sub_sat(b, a); };
constexpr auto kAddSigned = [](I32 a, I32 b) { return a + b; };
constexpr auto kSubSigned = [](I32 a, I32 b) { return a - b; };
constexpr auto kAddSignedSat = [](I32 a, I32 b) { return add_sat(a, b); };
constexpr auto kSubSignedSat = [](I32 a, I32 b) { return sub_sat(a, b); };

constexpr auto kAddCo = [](U32 a, U32 b) { return add_carry(a, b, 0); };
constexpr auto kAddCi = [](U32 a, U32 b, Lanes c) { return add_carry(a, b, c.bits); };
constexpr auto kSubCo = [](U32 a, U32 b) { return sub_borrow(a, b, 0); };
constexpr auto kSubCi = [](U32 a, U32 b, Lanes c) { return sub_borrow(a, b, c.bits); };
constexpr auto kSubrevCo = [](U32 a, U32 b) { return sub_borrow(b, a, 0); };
constexpr auto kSubrevCi = [](U32 a, U32 b, Lanes c) { return sub_borrow(b, a, c.bits); };
constexpr auto kAddCoSat = [](U32 a, U32 b) { return saturated_up(kAddCo(a, b)); };
constexpr auto kAddCiSat = [](U32 a, U32 b, Lanes c) { return saturated_up(kAddCi(a, b, c)); };
constexpr auto kSubCoSat = [](U32 a, U32 b) { return saturated_down(kSubCo(a, b)); };
constexpr auto kSubCiSat = [](U32 a, U32 b, Lanes c) { return saturated_down(kSubCi(a, b, c)); };
constexpr auto kSubrevCoSat = [](U32 a, U32 b) { return saturated_down(kSubrevCo(a, b)); };
constexpr auto kSubrevCiSat = [](U32 a, U32 b, Lanes c) {
  return saturated_down(kSubrevCi(a, b, c));
};

constexpr Row kRows[] = {
    hot_saturating<kAdd, kAddSat>("v_add_nc_u32"),
    hot_saturating<kAdd, kAddSat>("v_add_u32"),
    hot_saturating<kSub, kSubSat>("v_sub_nc_u32"),
    hot_saturating<kSub, kSubSat>("v_sub_u32"),
    hot_saturating<kSubrev, kSubrevSat>("v_subrev_nc_u32"),
    hot_saturating<kSubrev, kSubrevSat>("v_subrev_u32"),
    saturating<kAddSigned, kAddSignedSat>("v_add_nc_i32"),
    saturating<kAddSigned, kAddSignedSat>("v_add_i32"),
    saturating<kSubSigned, kSubSignedSat>("v_sub_nc_i32"),
    saturating<kSubSigned, kSubSignedSat>("v_sub_i32"),
    hot_saturating<kAddCo, kAddCoSat>("v_add_co_u32"),
    hot_saturating<kAddCi, kAddCiSat>("v_add_co_ci_u32"),
    hot_saturating<kAddCi, kAddCiSat>("v_addc_co_u32"),
    hot_saturating<kSubCo, kSubCoSat>("v_sub_co_u32"),
    hot_saturating<kSubCi, kSubCiSat>("v_sub_co_ci_u32"),
    hot_saturating<kSubCi, kSubCiSat>("v_subb_co_u32"),
    saturating<kSubrevCo, kSubrevCoSat>("v_subrev_co_u32"),
    saturating<kSubrevCi, kSubrevCiSat>("v_subrev_co_ci_u32"),
    saturating<kSubrevCi, kSubrevCiSat>("v_subbrev_co_u32"),
    hot<[](U32 a, U32 b) { return minimum(a, b); }>("v_min_u32"),
    hot<[](U32 a, U32 b) { return maximum(a, b); }>("v_max_u32"),
    hot<[](I32 a, I32 b) { return minimum(a, b); }>("v_min_i32"),
    hot<[](I32 a, I32 b) { return maximum(a, b); }>("v_max_i32"),
    vop<[](U32 a, U32 b, U32 c) { return minimum(minimum(a, b), c); }>("v_min3_u32"),
    vop<[](U32 a, U32 b, U32 c) { return maximum(maximum(a, b), c); }>("v_max3_u32"),
    vop<[](U32 a, U32 b, U32 c) { return median(a, b, c); }>("v_med3_u32"),
    vop<[](I32 a, I32 b, I32 c) { return minimum(minimum(a, b), c); }>("v_min3_i32"),
    vop<[](I32 a, I32 b, I32 c) { return maximum(maximum(a, b), c); }>("v_max3_i32"),
    vop<[](I32 a, I32 b, I32 c) { return median(a, b, c); }>("v_med3_i32"),
    vop<[](U32 a, U32 b, U32 c) { return minimum(maximum(a, b), c); }>("v_maxmin_u32"),
    vop<[](U32 a, U32 b, U32 c) { return maximum(minimum(a, b), c); }>("v_minmax_u32"),
    vop<[](I32 a, I32 b, I32 c) { return minimum(maximum(a, b), c); }>("v_maxmin_i32"),
    vop<[](I32 a, I32 b, I32 c) { return maximum(minimum(a, b), c); }>("v_minmax_i32"),
    hot<[](U32 a, U32 b) { return a * b; }>("v_mul_lo_u32"),
    vop<[](U32 a, U32 b) { return a * b; }>("v_mul_lo_i32"),
    hot<[](U32 a, U32 b) { return high(product(a, b)); }>("v_mul_hi_u32"),
    warm<[](I32 a, I32 b) { return high(product(a, b)); }>("v_mul_hi_i32"),
    hot<[](U32 a, U32 b) { return low24(a) * low24(b); }>("v_mul_u32_u24"),
    warm<[](I32 a, I32 b) { return low24(a) * low24(b); }>("v_mul_i32_i24"),
    vop<[](U32 a, U32 b) { return high(product(low24(a), low24(b))); }>("v_mul_hi_u32_u24"),
    vop<[](I32 a, I32 b) { return high(product(low24(a), low24(b))); }>("v_mul_hi_i32_i24"),
    hot_saturating<[](U32 a, U32 b, U32 c) { return low24(a) * low24(b) + c; },
                   [](U32 a, U32 b, U32 c) { return mad24_clamped(a, b, c); }>("v_mad_u32_u24"),
    saturating<[](I32 a, I32 b, I32 c) { return low24(a) * low24(b) + c; },
               [](I32 a, I32 b, I32 c) { return mad24_clamped(a, b, c); }>("v_mad_i32_i24"),
    hot<[](U32 a, U32 b, U64 c) { return mad(a, b, c); }>("v_mad_u64_u32"),
    warm<[](I32 a, I32 b, I64 c) { return mad(a, b, c); }>("v_mad_i64_i32"),
    hot<[](U32 a, U32 b, U32 c) { return a + b + c; }>("v_add3_u32"),
    hot<[](U32 a, U32 n, U32 b) { return (a << (n & 31)) + b; }>("v_lshl_add_u32"),
    hot<[](U32 a, U32 b, U32 n) { return (a + b) << (n & 31); }>("v_add_lshl_u32"),
    warm<[](U64 a, U32 n, U64 b) { return (a << convert<U64>(n & 7)) + b; }>("v_lshl_add_u64"),
    vop<[](U32 a, U32 b, U32 c) { return (a ^ b) + c; }>("v_xad_u32"),
};

}  // namespace

std::span<const Row> integer_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
