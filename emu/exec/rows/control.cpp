// Branches, barriers, waits, and instructions that order what is in order here anyway.

#include "emu/exec/launch.h"
#include "emu/exec/rows/rows.h"

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

uint64_t vcc(const Wave* w) { return uint64_t{w->s[kVcc + 1]} << 32 | w->s[kVcc]; }
// In a wave of 32 the upper halves aren't lanes.
uint64_t live(const Wave* w, uint64_t mask) { return w->lanes == 64 ? mask : mask & 0xffffffff; }

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
    {"s_waitcnt", &lower_nothing},
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
