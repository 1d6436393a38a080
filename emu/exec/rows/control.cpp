// Branches, barriers, waits, and instructions that order what is in order here anyway.

#include "emu/exec/launch.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/track.h"

namespace emu::EMU_VARIANT {
namespace {

template <auto kTaken>
Stop branch(Wave* w, const Op* op) {
  const Op* to = op + 1;
  if (kTaken(w)) {
    to = op->target;
    if (to <= op && --w->budget < 0) [[unlikely]] {
      w->next = to;
      return Stop::yield;
    }
  }
  [[clang::musttail]] return to->fn(w, to);
}

template <auto kTaken>
void lower_branch(Lowering& l, const Inst&) {
  l.emit(&branch<kTaken>);  // the target is set when the whole function is lowered
}

template <auto kTaken>
constexpr Row branch_row(const char* name) {
  return {name, &lower_branch<kTaken>};
}

Stop barrier(Wave* w, const Op* op) {
  w->next = op + 1;
  return Stop::barrier;
}

Stop end(Wave* w, const Op* op) {
  w->next = op;
  return Stop::end;
}

template <Handler kHandler>
void lower_to(Lowering& l, const Inst&) {
  l.emit(kHandler);
}

Stop nothing(Wave* w, const Op* op) { EMU_NEXT; }

void lower_nothing(Lowering& l, const Inst&) { l.emit(&nothing); }

constexpr uint32_t kNotAsked = 1000;

uint64_t vcc(const Wave* w) { return uint64_t{w->s[kVcc + 1]} << 32 | w->s[kVcc]; }
// In a wave of 32 the upper halves aren't lanes.
uint64_t live(const Wave* w, uint64_t mask) { return w->lanes == 64 ? mask : mask & 0xffffffff; }

/// s_waitcnt: for each counter, how many may stay outstanding.
Stop wait(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    wait_for_vmem(w, op->a);
    wait_for_lds_and_smem(w, op->b);
  }
  EMU_NEXT;
}

/// The fields of its immediate. gfx11: vmcnt 15:10, lgkmcnt 9:4, expcnt 2:0; gfx9 and gfx10: vmcnt
/// 15:14 and 3:0, expcnt 6:4, lgkmcnt 11:8 (gfx10: 13:8).
void lower_wait(Lowering& l, const Inst& inst) {
  Op& op = l.emit(&wait);
  const auto bits = static_cast<uint32_t>(inst.immediate);
  if (l.traits.generation >= 11) {
    op.a = bits >> 10 & 63;
    op.b = bits >> 4 & 63;
    if (op.a == 63) op.a = kNotAsked;
    if (op.b == 63) op.b = kNotAsked;
  } else {
    op.a = (bits & 15) | (bits >> 14 & 3) << 4;
    op.b = bits >> 8 & (l.traits.generation == 9 ? 15 : 63);
  }
}

constexpr Row kRows[] = {
    branch_row<[](const Wave*) { return true; }>("s_branch"),
    branch_row<[](const Wave* w) { return w->scc == 0; }>("s_cbranch_scc0"),
    branch_row<[](const Wave* w) { return w->scc != 0; }>("s_cbranch_scc1"),
    branch_row<[](const Wave* w) { return live(w, vcc(w)) == 0; }>("s_cbranch_vccz"),
    branch_row<[](const Wave* w) { return live(w, vcc(w)) != 0; }>("s_cbranch_vccnz"),
    branch_row<[](const Wave* w) { return live(w, w->exec()) == 0; }>("s_cbranch_execz"),
    branch_row<[](const Wave* w) { return live(w, w->exec()) != 0; }>("s_cbranch_execnz"),
    {"s_barrier", &lower_to<&barrier>},
    {"s_endpgm", &lower_to<&end>},
    {"s_nop", &lower_nothing},
    {"s_clause", &lower_nothing},
    {"s_delay_alu", &lower_nothing},
    {"s_waitcnt", &lower_wait},
    {"s_waitcnt_vscnt", &lower_nothing},
    {"s_waitcnt_depctr", &lower_nothing},
    {"s_sendmsg", &lower_nothing},
    {"s_set_inst_prefetch_distance", &lower_nothing},
    {"s_code_end", &lower_nothing},
    {"buffer_gl0_inv", &lower_nothing},
    {"buffer_gl1_inv", &lower_nothing},
};

}  // namespace

std::span<const Row> control_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
