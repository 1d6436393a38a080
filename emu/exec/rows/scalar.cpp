// Scalar moves, arithmetic, comparisons and selections.

#include "emu/exec/launch.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/salu.h"

namespace emu::EMU_VARIANT {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

template <class T>
T nonzero(T value, u32& scc) {
  scc = value != 0;
  return value;
}

u32 add(u32 a, u64 b, u32& scc) {
  const u64 sum = a + b;
  scc = static_cast<u32>(sum >> 32) != 0;
  return static_cast<u32>(sum);
}

u32 subtract(u32 a, u64 b, u32& scc) {
  scc = b > a;
  return static_cast<u32>(a - b);
}

i32 add_signed(i32 a, i32 b, u32& scc) {
  i32 sum;
  scc = __builtin_sadd_overflow(a, b, &sum);
  return sum;
}

template <bool kMax, class T>
T extreme(T a, T b, u32& scc) {
  scc = kMax ? a >= b : a < b;
  return scc != 0 ? a : b;
}

/// The immediates of SOPK have 16 bits and are sign-extended or zero-extended.
i32 word(u32 k) { return static_cast<int16_t>(k); }
u32 unsigned_word(u32 k) { return k & 0xffff; }

template <int kShift>
constexpr auto kShiftAdd = [](u32 a, u32 b, u32& scc) {
  const u64 sum = (u64{a} << kShift) + b;
  scc = (sum >> 32) != 0;
  return static_cast<u32>(sum);
};

#define EMU_COMPARE_SCALAR(name, relation)                                                  \
  sop<[](i32 a, i32 b, u32& scc) { scc = a relation b; }>("s_cmp_" name "_i32"),            \
      sop<[](u32 a, u32 b, u32& scc) { scc = a relation b; }>("s_cmp_" name "_u32"),        \
      sop<[](i32 a, u32 k, u32& scc) { scc = a relation word(k); }>("s_cmpk_" name "_i32"), \
      sop<[](u32 a, u32 k, u32& scc) { scc = a relation unsigned_word(k); }>("s_cmpk_" name \
                                                                             "_u32")

// Instructions whose register numbers depend on M0.

constexpr u32 kOrdinary = 106;  // registers before VCC

template <int kDwords, bool kSource, bool kHalves>
Stop movrel(Wave* w, const Op* op) {
  const u32 m0 = w->s[kM0];
  u32 from = op->a, to = op->dst;
  if (kSource || kHalves) from += 4 * (kHalves ? m0 & 0x3ff : m0);
  if (!kSource || kHalves) to += 4 * (kHalves ? m0 >> 16 & 0x3ff : m0);
  const u32 end = sgpr_offset(kOrdinary) - 4 * (kDwords - 1);
  if (((kSource || kHalves) && from >= end) || ((!kSource || kHalves) && to >= end)) {
    return fail(w, op, "M0 names a scalar register that isn't there");
  }
  read_scalar(w, op, from, kDwords);
  write_scalar(w, op, to, kDwords);
  const u32 low = at<u32>(w, from), high = kDwords == 2 ? at<u32>(w, from + 4) : 0;
  at<u32>(w, to) = low;
  if (kDwords == 2) at<u32>(w, to + 4) = high;
  EMU_NEXT;
}

template <int kDwords, bool kSource, bool kHalves>
void lower_movrel(Lowering& l, const Inst& inst) {
  Op& op = l.emit(&movrel<kDwords, kSource, kHalves>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), kDwords == 2 ? Value::u64 : Value::b32);
}

constexpr Row kRows[] = {
    sop_bits<[](u32 a) { return a; }>("s_mov_b32"),
    sop_bits<[](u64 a) { return a; }>("s_mov_b64"),
    sop<[](u32 k) { return word(k); }>("s_movk_i32"),
    sop_accumulate<[](u32 a, u32 old, u32& scc) { return scc != 0 ? a : old; }>("s_cmov_b32"),
    sop_accumulate<[](u64 a, u64 old, u32& scc) { return scc != 0 ? a : old; }>("s_cmov_b64"),
    sop_accumulate<[](u32 k, i32 old, u32& scc) { return scc != 0 ? word(k) : old; }>(
        "s_cmovk_i32"),
    sop<[](u32 a, u32 b, u32& scc) { return scc != 0 ? a : b; }>("s_cselect_b32"),
    sop<[](u64 a, u64 b, u32& scc) { return scc != 0 ? a : b; }>("s_cselect_b64"),
    sop<[](i32 a, i32 b, u32& scc) { return add_signed(a, b, scc); }>("s_add_i32"),
    sop<[](i32 a, i32 b, u32& scc) {
      i32 difference;
      scc = __builtin_ssub_overflow(a, b, &difference);
      return difference;
    }>("s_sub_i32"),
    sop<[](u32 a, u32 b, u32& scc) { return add(a, b, scc); }>("s_add_u32"),
    sop<[](u32 a, u32 b, u32& scc) { return add(a, u64{b} + scc, scc); }>("s_addc_u32"),
    sop<[](u32 a, u32 b, u32& scc) { return subtract(a, b, scc); }>("s_sub_u32"),
    sop<[](u32 a, u32 b, u32& scc) { return subtract(a, u64{b} + scc, scc); }>("s_subb_u32"),
    sop<[](u64 a, u64 b) { return a + b; }>("s_add_u64"),
    sop<[](u64 a, u64 b) { return a - b; }>("s_sub_u64"),
    sop_accumulate<[](u32 k, i32 old, u32& scc) { return add_signed(old, word(k), scc); }>(
        "s_addk_i32"),
    sop_accumulate<[](u32 k, u32 old) { return old * static_cast<u32>(word(k)); }>("s_mulk_i32"),
    sop<[](u32 a, u32 b) { return a * b; }>("s_mul_i32"),
    sop<[](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }>("s_mul_hi_u32"),
    sop<[](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); }>("s_mul_hi_i32"),
    sop<[](u64 a, u64 b) { return a * b; }>("s_mul_u64"),
    sop<kShiftAdd<1>>("s_lshl1_add_u32"),
    sop<kShiftAdd<2>>("s_lshl2_add_u32"),
    sop<kShiftAdd<3>>("s_lshl3_add_u32"),
    sop<kShiftAdd<4>>("s_lshl4_add_u32"),
    sop<[](i32 a, i32 b, u32& scc) { return extreme<false>(a, b, scc); }>("s_min_i32"),
    sop<[](u32 a, u32 b, u32& scc) { return extreme<false>(a, b, scc); }>("s_min_u32"),
    sop<[](i32 a, i32 b, u32& scc) { return extreme<true>(a, b, scc); }>("s_max_i32"),
    sop<[](u32 a, u32 b, u32& scc) { return extreme<true>(a, b, scc); }>("s_max_u32"),
    sop<[](i32 a, u32& scc) {
      return nonzero(a < 0 ? 0 - static_cast<u32>(a) : static_cast<u32>(a), scc);
    }>("s_abs_i32"),
    sop<[](u32 a, u32 b, u32& scc) {
      const u32 d = a - b;
      return nonzero(static_cast<i32>(d) < 0 ? 0 - d : d, scc);
    }>("s_absdiff_i32"),
    EMU_COMPARE_SCALAR("lt", <),
    EMU_COMPARE_SCALAR("le", <=),
    EMU_COMPARE_SCALAR("gt", >),
    EMU_COMPARE_SCALAR("ge", >=),
    EMU_COMPARE_SCALAR("eq", ==),
    EMU_COMPARE_SCALAR("lg", !=),
    sop<[](u64 a, u64 b, u32& scc) { scc = a == b; }>("s_cmp_eq_u64"),
    sop<[](u64 a, u64 b, u32& scc) { scc = a != b; }>("s_cmp_lg_u64"),
    {"s_movrels_b32", &lower_movrel<1, true, false>},
    {"s_movrels_b64", &lower_movrel<2, true, false>},
    {"s_movreld_b32", &lower_movrel<1, false, false>},
    {"s_movreld_b64", &lower_movrel<2, false, false>},
    {"s_movrelsd_2_b32", &lower_movrel<1, true, true>},
};

}  // namespace

std::span<const Row> scalar_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
