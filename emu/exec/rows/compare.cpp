// Comparisons: v_cmp into a lane mask, v_cmpx into EXEC.

#include <array>

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

template <auto F>
void lower_cmpx(Lowering& l, const Inst& inst) {
  Inst with_exec = inst;
  const bool named = !inst.operands.empty() && inst.operands[0].kind == Kind::sgpr &&
                     inst.operands.size() == 3;
  if (!named) with_exec.operands.insert(with_exec.operands.begin(), Operand());
  Operand& to = with_exec.operands[0];
  to.kind = Kind::sgpr;
  to.reg = kExec;
  lower_vector<F, false, true>(l, with_exec);
}

template <auto F>
constexpr Row cmpx(const char* name) {
  return {name, &lower_cmpx<F>};
}

#define EMU_COMPARE(type, Type, relation, truth) \
  hot<[](Type a, Type b) { return Lanes{lane_mask(truth)}; }>("v_cmp_" relation "_" type), \
  cmpx<[](Type a, Type b) { return Lanes{lane_mask(truth)}; }>("v_cmpx_" relation "_" type)

#define EMU_COMPARE_INTEGER(type, Type)       \
  EMU_COMPARE(type, Type, "lt", a < b),       \
  EMU_COMPARE(type, Type, "eq", a == b),      \
  EMU_COMPARE(type, Type, "le", a <= b),      \
  EMU_COMPARE(type, Type, "gt", a > b),       \
  EMU_COMPARE(type, Type, "ne", a != b),      \
  EMU_COMPARE(type, Type, "ge", a >= b)

#define EMU_COMPARE_FLOAT(type, Type)                      \
  EMU_COMPARE(type, Type, "lt", a < b),                    \
  EMU_COMPARE(type, Type, "eq", a == b),                   \
  EMU_COMPARE(type, Type, "le", a <= b),                   \
  EMU_COMPARE(type, Type, "gt", a > b),                    \
  EMU_COMPARE(type, Type, "lg", (a < b) | (a > b)),        \
  EMU_COMPARE(type, Type, "ge", a >= b),                   \
  EMU_COMPARE(type, Type, "o", (a == a) & (b == b)),       \
  EMU_COMPARE(type, Type, "u", (a != a) | (b != b)),       \
  EMU_COMPARE(type, Type, "nge", ~(a >= b)),               \
  EMU_COMPARE(type, Type, "nlg", ~((a < b) | (a > b))),    \
  EMU_COMPARE(type, Type, "ngt", ~(a > b)),                \
  EMU_COMPARE(type, Type, "nle", ~(a <= b)),               \
  EMU_COMPARE(type, Type, "neq", a != b),                  \
  EMU_COMPARE(type, Type, "nlt", ~(a < b))

constexpr Row kRows[] = {
    EMU_COMPARE_INTEGER("i32", I32), EMU_COMPARE_INTEGER("u32", U32),
    EMU_COMPARE_INTEGER("i64", I64), EMU_COMPARE_INTEGER("u64", U64),
    EMU_COMPARE_FLOAT("f32", F32),   EMU_COMPARE_FLOAT("f64", F64),
};

}  // namespace

std::span<const Row> compare_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
