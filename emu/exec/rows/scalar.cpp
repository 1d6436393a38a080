// Scalar arithmetic, logic, moves and comparisons.

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

/// The destination takes EXEC; EXEC becomes kCombine(source, EXEC), SCC whether any lane is left.
template <class T, auto kCombine>
Stop save_exec(Wave* w, const Op* op) {
  const auto source = scalar_source<T>(w, op->a);
  const auto exec = scalar_source<T>(w, sgpr_offset(kExec));
  const auto put = [&](uint32_t to, T value) {
    at<u32>(w, to) = static_cast<u32>(value);
    if constexpr (sizeof(T) == 8) at<u32>(w, to + 4) = static_cast<u32>(value >> 32);
  };
  put(op->dst, exec);
  const T result = static_cast<T>(kCombine(source, exec));
  put(sgpr_offset(kExec), result);
  w->scc = result != 0;
  EMU_NEXT;
}

template <class T, auto kCombine>
void lower_save_exec(Lowering& l, const Inst& inst) {
  Op& op = l.emit(&save_exec<T, kCombine>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b64);
}

#define EMU_SAVE_EXEC(name, combine)                                        \
  {"s_" name "_saveexec_b32", &lower_save_exec<u32, [](u32 s, u32 e) { return combine; }>}, \
  {"s_" name "_saveexec_b64", &lower_save_exec<u64, [](u64 s, u64 e) { return combine; }>}

constexpr Row kRows[] = {
    EMU_SAVE_EXEC("and", s & e),
    EMU_SAVE_EXEC("or", s | e),
    EMU_SAVE_EXEC("xor", s ^ e),
    EMU_SAVE_EXEC("nand", ~(s & e)),
    EMU_SAVE_EXEC("nor", ~(s | e)),
    EMU_SAVE_EXEC("xnor", ~(s ^ e)),
    EMU_SAVE_EXEC("and_not1", s & ~e),   // as the assembler writes it for gfx11
    EMU_SAVE_EXEC("or_not1", s | ~e),
    EMU_SAVE_EXEC("and_not0", ~s & e),
    EMU_SAVE_EXEC("or_not0", ~s | e),
    sop<[](u32 a) { return a; }>("s_mov_b32"),
    sop<[](u64 a) { return a; }>("s_mov_b64"),
    sop<[](u32 a) { return a; }>("s_movk_i32"),
    sop<[](i32 a, i32 b, u32& scc) {
      i32 sum;
      scc = __builtin_sadd_overflow(a, b, &sum);
      return sum;
    }>("s_add_i32"),
    sop<[](u32 a, u32 b, u32& scc) {
      u32 sum;
      scc = __builtin_uadd_overflow(a, b, &sum);
      return sum;
    }>("s_add_u32"),
    sop<[](u32 a, u32 b, u32& scc) {
      const u64 sum = u64{a} + b + scc;
      scc = static_cast<u32>(sum >> 32);
      return static_cast<u32>(sum);
    }>("s_addc_u32"),
    sop<[](u32 a, u32 b) { return a * b; }>("s_mul_i32"),
    sop<[](u32 a, u32 b, u32& scc) { return nonzero(a & b, scc); }>("s_and_b32"),
    sop<[](u32 a, u32 b, u32& scc) { return nonzero(a | b, scc); }>("s_or_b32"),
    sop<[](u32 a, u32 b, u32& scc) { return nonzero(a << (b & 31), scc); }>("s_lshl_b32"),
    sop<[](u32 a, u32 b, u32& scc) { return nonzero(a >> (b & 31), scc); }>("s_lshr_b32"),
    sop<[](i32 a, u32 b, u32& scc) { return nonzero(a >> (b & 31), scc); }>("s_ashr_i32"),
    sop<[](u64 a, u32 b, u32& scc) { return nonzero(a << (b & 63), scc); }>("s_lshl_b64"),
    sop<[](i32 a, i32 b, u32& scc) { scc = a < b; }>("s_cmp_lt_i32"),
    sop<[](i32 a, i32 b, u32& scc) { scc = a >= b; }>("s_cmp_ge_i32"),
    sop<[](u32 a, u32 b, u32& scc) { scc = a == b; }>("s_cmp_eq_u32"),
    sop<[](u32 a, u32 b, u32& scc) { scc = a != b; }>("s_cmp_lg_u32"),
    sop<[](i32 a, i32 b, u32& scc) { scc = a == b; }>("s_cmp_eq_i32"),
    sop<[](i32 a, i32 b, u32& scc) { scc = a != b; }>("s_cmp_lg_i32"),
    sop<[](i32 a, i32 b, u32& scc) { scc = a > b; }>("s_cmp_gt_i32"),
    sop<[](i32 a, i32 b, u32& scc) { scc = a <= b; }>("s_cmp_le_i32"),
    sop<[](u32 a, u32 b, u32& scc) { scc = a < b; }>("s_cmp_lt_u32"),
};

}  // namespace

std::span<const Row> scalar_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
