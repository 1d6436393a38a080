// 32- and 64-bit integer and bit operations.

#include <array>

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

constexpr Row kRows[] = {
    hot<[](U32 a) { return a; }>("v_mov_b32"),
    hot<[](U32 a, U32 b) { return a + b; }>("v_add_nc_u32"),
    hot<[](U32 a, U32 b) { return a - b; }>("v_sub_nc_u32"),
    hot<[](U32 a, U32 b) { return b - a; }>("v_subrev_nc_u32"),
    hot<[](U32 a, U32 b) { return a & b; }>("v_and_b32"),
    vop<[](I32 a, I32 b) { return a > b ? a : b; }>("v_max_i32"),
    vop<[](I32 a, I32 b) { return a < b ? a : b; }>("v_min_i32"),
    hot<[](U32 a, U32 b) { return a | b; }>("v_or_b32"),
    hot<[](U32 a, U32 b) { return a ^ b; }>("v_xor_b32"),
    hot<[](U32 a, U32 b) { return a * b; }>("v_mul_lo_u32"),
    hot<[](U32 n, U32 a) { return a << (n & 31); }>("v_lshlrev_b32"),
    hot<[](U32 n, U32 a) { return a >> (n & 31); }>("v_lshrrev_b32"),
    hot<[](U32 n, I32 a) { return a >> bits_as<I32>(n & 31); }>("v_ashrrev_i32"),
    hot<[](U32 n, U64 a) { return a << convert<U64>(n & 63); }>("v_lshlrev_b64"),
    hot<[](U32 a, U32 n, U32 b) { return (a << (n & 31)) + b; }>("v_lshl_add_u32"),
    hot<[](U32 a, U32 b, U32 c) { return a + b + c; }>("v_add3_u32"),
    hot<[](U32 a, U32 at, U32 n) {
      return (a >> (at & 31)) & ((splat<U32>(1) << (n & 31)) - 1);
    }>("v_bfe_u32"),
    hot<[](U32 a, U32 b) { return add_carry(a, b, 0); }>("v_add_co_u32"),
    hot<[](U32 a, U32 b, Lanes c) { return add_carry(a, b, c.bits); }>("v_add_co_ci_u32"),
    hot<[](U32 a, U32 b) { return sub_borrow(a, b, 0); }>("v_sub_co_u32"),
    hot<[](U32 a, U32 b, Lanes c) { return sub_borrow(a, b, c.bits); }>("v_sub_co_ci_u32"),
    // The type is a float's for the sake of the sign modifiers.
    hot<[](F32 a, F32 b, Lanes c) { return select(c.bits, b, a); }>("v_cndmask_b32"),
    hot<[](U32 a, U32 b, U32 c) {
      const U64 product = convert<U64>(a) * convert<U64>(b);
      return convert<U32>(product) + c;
    }>("v_mad_u32"),
};

}  // namespace

std::span<const Row> integer_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
