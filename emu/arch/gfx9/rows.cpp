// Instructions of gfx9 only: moves to and from accumulation registers, and vector registers named
// relative to M0. Indexing is a mode of the wave that compilers enable around two or three
// instructions. Here lowering applies it to those instructions, so that no other instruction has to
// test for it.

#include "emu/exec/rows/rows.h"

#include "emu/exec/launch.h"
#include "emu/exec/services.h"
#include "emu/exec/track.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr uint32_t kM0Offset = sgpr_offset(kM0);

/// Returns from an indexed operation to its place in the program.
Stop go_on(Wave* w, const Op* op) {
  const Op* to = op->target;
  [[clang::musttail]] return to->fn(w, to);
}

/// Runs a copy of the next operation, with the index added to the registers that op->imm2 names.
Stop indexed(Wave* w, const Op* op) {
  read_scalar(w, op, kM0Offset, 1);
  const uint32_t shift = (w->s[kM0] & 0xff) * 128;
  Op& own = w->indexed[0];
  own = op[1];
  uint32_t* const places[] = {&own.a, &own.b, &own.c, &own.dst};
  for (uint32_t i = 0; i < 4; ++i) {
    if ((op->imm2 >> i & 1) == 0) continue;
    *places[i] += shift;
    if (*places[i] + 128 > vgpr_offset(static_cast<int>(w->vgprs))) [[unlikely]] {
      return fail(w, op, "an index in M0 beyond the wave's registers");
    }
  }
  w->indexed[1].fn = &go_on;
  w->indexed[1].target = op + 2;
  [[clang::musttail]] return own.fn(w, &own);
}

/// Copies some bits of a scalar to M0, and op->imm2 to the bits above them.
Stop set_index(Wave* w, const Op* op) {
  const bool known = pass_scalar(w, op, op->a, 1);
  const uint32_t mask = op->b;
  w->s[kM0] = (w->s[kM0] & ~mask) | (((at<uint32_t>(w, op->a) & 0xff) | op->imm2) & mask);
  write_scalar(w, op, kM0Offset, 1, known);
  EMU_NEXT;
}

enum class Set : uint8_t { on, index, operands };

template <Set kSet>
void lower_index(Lowering& l, const Inst& inst) {
  if (kSet != Set::operands && inst.operands.empty()) refuse_operands(inst);
  Op& op = l.emit(&set_index);
  op.a = kSet == Set::operands ? kM0Offset : l.source(inst.operands[0], Value::b32);
  op.b = kSet == Set::on ? 0xf0ff : kSet == Set::index ? 0xff : 0xf000;
  if (kSet == Set::index) return;
  const auto operands = static_cast<uint32_t>(inst.immediate) & 15;
  op.imm2 = operands << 12;
  l.indexed_operands = operands;
  if (kSet == Set::on) l.index_with = &indexed;
}

Stop nothing(Wave* w, const Op* op) { EMU_NEXT; }

void lower_index_off(Lowering& l, const Inst&) {
  l.emit(&nothing);  // a target for branches to this instruction
  l.index_with = nullptr;
}

constexpr Row kRows[] = {
    vop<[](U32 a) { return a; }>("v_accvgpr_mov_b32"),
    warm<[](U32 a) { return a; }>("v_accvgpr_read_b32"),
    warm<[](U32 a) { return a; }>("v_accvgpr_write_b32"),
    {"s_set_gpr_idx_on", &lower_index<Set::on>},
    {"s_set_gpr_idx_idx", &lower_index<Set::index>},
    {"s_set_gpr_idx_mode", &lower_index<Set::operands>},
    {"s_set_gpr_idx_off", &lower_index_off},
};

}  // namespace

std::span<const Row> gfx9_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
