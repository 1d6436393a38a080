// Implements branches, barriers, waits, and ordering instructions that have no effect here because
// execution is in order.

#include "emu/exec/launch.h"
#include "emu/exec/mode.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/services.h"
#include "emu/exec/track.h"

namespace emu::EMU_VARIANT {
namespace {

enum class Of : uint8_t { exec, scc, vcc };

/// Handles a branch that depends on whether any lane of VCC is set.
EMU_INLINE void read_vcc(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    uint32_t unknown = 0, set = 0;
    for (uint32_t half = 0; half < w->lanes / 32; ++half) {
      const uint32_t known = known_bits(w, op, sgpr_offset(kVcc) + 4 * half);
      unknown |= ~known;
      set |= w->s[kVcc + half] & known;
    }
    if (unknown != 0 && set == 0) [[unlikely]]
      unknown_scalar(w, op, kVcc);
  }
}

template <auto kTaken, Of kOf>
Stop branch(Wave* w, const Op* op) {
  if (kOf == Of::scc) read_scc(w, op);
  if (kOf == Of::vcc) read_vcc(w, op);
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

template <auto kTaken, Of kOf>
void lower_branch(Lowering& l, const Inst&) {
  l.emit(&branch<kTaken, kOf>);  // the target is set when the whole function is lowered
}

template <auto kTaken, Of kOf = Of::exec>
constexpr Row branch_row(const char* name) {
  return {name, &lower_branch<kTaken, kOf>};
}

template <uint32_t kValue>
constexpr auto kOnScc = [](const Wave* w) { return w->scc == kValue; };

Stop barrier(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    check_barrier(w, op);
    arrive(w);
  }
  w->next = op + 1;
  return Stop::barrier;
}

/// After this instruction the workgroup may read what other workgroups wrote.
Stop invalidate(Wave* w, const Op* op) {
  if constexpr (kChecked) w->group->synchronised = true;
  EMU_NEXT;
}

Stop end(Wave* w, const Op* op) {
  if constexpr (kChecked) arrive(w);
  w->next = op;
  return Stop::end;
}

template <Handler kHandler>
void lower_to(Lowering& l, const Inst&) {
  l.emit(kHandler);
}

/// `buffer_inv sc0` of gfx942 only orders the waves of a workgroup.
void lower_invalidate(Lowering& l, const Inst& inst) {
  if (inst.has("sc0") && !inst.has("sc1")) return l.only_computes();
  l.emit(&invalidate);
}

Stop nothing(Wave* w, const Op* op) { EMU_NEXT; }

/// Emits no operation.
void lower_nothing(Lowering& l, const Inst&) { l.only_computes(); }

constexpr uint32_t kNotAsked = 1000;

uint64_t vcc(const Wave* w) { return uint64_t{w->s[kVcc + 1]} << 32 | w->s[kVcc]; }
// In a wave of 32, the upper half of a mask doesn't stand for lanes.
uint64_t live(const Wave* w, uint64_t mask) { return w->lanes == 64 ? mask : mask & 0xffffffff; }

/// s_waitcnt gives, for each counter, how many instructions may stay outstanding.
Stop wait(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    wait_for_vmem(w, op->a);
    wait_for_lds_and_smem(w, op->b);
  }
  EMU_NEXT;
}

/// Decodes the immediate of s_waitcnt. gfx11: vmcnt 15:10, lgkmcnt 9:4, expcnt 2:0; gfx9 and gfx10:
/// vmcnt 15:14 and 3:0, expcnt 6:4, lgkmcnt 11:8 (gfx10: 13:8).
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

/// The waits of gfx10 and gfx11 for one counter, such as `s_waitcnt_vmcnt null, 0x0`. A named
/// register is added to the immediate.
template <auto kWaitFor>
Stop wait_one(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    read_scalar(w, op, op->c, 1);
    const uint32_t left = op->imm2 + at<uint32_t>(w, op->c);
    kWaitFor(w, left);
  }
  EMU_NEXT;
}

/// Waits for everything that is outstanding.
Stop wait_for_all(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    wait_for_vmem(w, 0);
    wait_for_lds_and_smem(w, 0);
    wait_for_stores(w, 0);
  }
  EMU_NEXT;
}

template <auto kWaitFor>
void lower_wait_one(Lowering& l, const Inst& inst) {
  if (inst.operands.empty()) refuse_operands(inst);
  Op& op = l.emit(&wait_one<kWaitFor>);
  op.c = l.source(inst.operands[0], Value::b32);
  op.imm2 = static_cast<uint32_t>(inst.immediate);
}

// ---- The program counter as a value. Addresses are those of the device's memory.

uint64_t pair_of(Wave* w, uint32_t offset) {
  return uint64_t{at<uint32_t>(w, offset + 4)} << 32 | at<uint32_t>(w, offset);
}
void put_pair(Wave* w, uint32_t offset, uint64_t value) {
  at<uint32_t>(w, offset) = static_cast<uint32_t>(value);
  at<uint32_t>(w, offset + 4) = static_cast<uint32_t>(value >> 32);
}

/// Returns the address of the following instruction.
uint64_t next_address(Wave* w, const Op* op) { return w->launch->base + at<uint64_t>(w, op->b); }

Stop getpc(Wave* w, const Op* op) {
  write_scalar(w, op, op->dst, 2);
  put_pair(w, op->dst, next_address(w, op));
  EMU_NEXT;
}

/// kCall: the destination receives the address of the next instruction.
template <bool kCall>
Stop setpc(Wave* w, const Op* op) {
  const uint64_t target = pair_of(w, op->a);
  read_scalar(w, op, op->a, 2);
  if (kCall) {
    write_scalar(w, op, op->dst, 2);
    put_pair(w, op->dst, next_address(w, op));
  }
  const Op* to = jump(w, op, target);
  if (to == nullptr) [[unlikely]]
    return Stop::fault;
  if (--w->budget < 0) [[unlikely]]
    return Stop::yield;
  [[clang::musttail]] return to->fn(w, to);
}

Stop call(Wave* w, const Op* op) {
  write_scalar(w, op, op->dst, 2);
  put_pair(w, op->dst, next_address(w, op));
  const Op* to = op->target;
  if (--w->budget < 0) [[unlikely]] {
    w->next = to;
    return Stop::yield;
  }
  [[clang::musttail]] return to->fn(w, to);
}

template <Handler kHandler, bool kResult, bool kSource>
void lower_pc(Lowering& l, const Inst& inst) {
  if (inst.operands.empty()) refuse_operands(inst);
  Op& op = l.emit(kHandler);
  if (kResult) op.dst = l.destination(inst.operands.front());
  if (kSource) op.a = l.source(inst.operands.back(), Value::u64);
  op.b = l.constant(inst.address + inst.size);
}

// ---- Hardware registers.

/// The register field that s_getreg and s_setreg name in 16 bits.
struct HardwareField {
  explicit HardwareField(uint32_t bits)
      : id(bits & 63), shift(bits >> 6 & 31), mask((~uint32_t{0} >> (31 - (bits >> 11 & 31)))) {}
  uint32_t id, shift, mask;
};

Stop getreg(Wave* w, const Op* op) {
  const HardwareField field(op->imm2);
  write_scalar(w, op, op->dst, 1);
  at<uint32_t>(w, op->dst) = hardware_register(w, field.id) >> field.shift & field.mask;
  EMU_NEXT;
}

Stop setreg(Wave* w, const Op* op) {
  const HardwareField field(op->imm2);
  const uint32_t mask = field.mask << field.shift;
  read_scalar(w, op, op->a, 1);
  const uint32_t value = at<uint32_t>(w, op->a) << field.shift;
  const uint32_t old = hardware_register(w, field.id);
  set_hardware_register(w, field.id, (old & ~mask) | (value & mask));
  EMU_NEXT;
}

/// Sets four bits of MODE: rounding or denormals.
template <int kShift>
Stop set_mode(Wave* w, const Op* op) {
  constexpr uint32_t kModeRegister = 1;
  const uint32_t mode = (w->mode & ~(15u << kShift)) | (op->imm2 & 15) << kShift;
  set_hardware_register(w, kModeRegister, mode);
  EMU_NEXT;
}

void lower_getreg(Lowering& l, const Inst& inst) {
  if (inst.operands.empty()) refuse_operands(inst);
  Op& op = l.emit(&getreg);
  op.dst = l.destination(inst.operands[0]);
  op.imm2 = static_cast<uint32_t>(inst.immediate);
}

void lower_setreg(Lowering& l, const Inst& inst) {
  if (inst.operands.size() < 2) refuse_operands(inst);
  Op& op = l.emit(&setreg);
  op.a = l.source(inst.operands[1], Value::b32);
  op.imm2 = static_cast<uint32_t>(inst.immediate);
}

template <int kShift>
void lower_mode(Lowering& l, const Inst& inst) {
  l.emit(&set_mode<kShift>).imm2 = static_cast<uint32_t>(inst.immediate);
}

// ---- Clocks, and yielding to other waves.

template <auto kClock>
Stop clock(Wave* w, const Op* op) {
  write_scalar(w, op, op->dst, 2);
  put_pair(w, op->dst, kClock());
  EMU_NEXT;
}

constexpr int64_t kRealTimeMessage = 0x83;

Stop no_message(Wave* w, const Op* op) {
  write_scalar(w, op, op->dst, op->imm != 0 ? 2 : 1);
  at<uint32_t>(w, op->dst) = 0;
  if (op->imm != 0) at<uint32_t>(w, op->dst + 4) = 0;
  EMU_NEXT;
}

template <auto kClock>
void lower_clock(Lowering& l, const Inst& inst) {
  l.emit(&clock<kClock>).dst = l.destination(inst.operands.at(0));
}

void lower_message(Lowering& l, const Inst& inst) {
  if (inst.operands.empty()) refuse_operands(inst);
  const bool wide = inst.operands[0].dwords == 2;
  const bool time = wide && (inst.immediate & 0xff) == kRealTimeMessage;
  Op& op = l.emit(time ? Handler(&clock<&real_time>) : Handler(&no_message));
  op.dst = l.destination(inst.operands[0]);
  op.imm = wide;
}

/// A sleeping wave may wait for the host, so the host serves it first.
Stop sleep(Wave* w, const Op* op) {
  if (!interrupt_host(w, op)) [[unlikely]]
    return Stop::fault;
  w->next = op + 1;
  return Stop::yield;
}

Stop interrupt(Wave* w, const Op* op) {
  if (!interrupt_host(w, op)) [[unlikely]]
    return Stop::fault;
  EMU_NEXT;
}

void lower_send(Lowering& l, const Inst& inst) {
  constexpr int64_t kInterrupt = 1;  // graphics uses the other messages
  const int64_t mask = l.traits.generation >= 11 ? 0xff : 0xf;
  if ((inst.immediate & mask) != kInterrupt) return lower_nothing(l, inst);
  l.emit(&interrupt);
}

Stop halted(Wave* w, const Op* op) { return fail(w, op, "the wave halted"); }
Stop trapped(Wave* w, const Op* op) { return fail(w, op, "trap"); }

void lower_trap(Lowering& l, const Inst& inst) {
  constexpr int64_t kDebugTrap = 3;  // there is no debugger
  l.emit((inst.immediate & 0xff) == kDebugTrap ? Handler(&nothing) : Handler(&trapped));
}

void lower_halt(Lowering& l, const Inst& inst) {
  l.emit((inst.immediate & 1) != 0 ? Handler(&halted) : Handler(&nothing));
}

constexpr Row kRows[] = {
    branch_row<[](const Wave*) { return true; }>("s_branch"),
    branch_row<kOnScc<0>, Of::scc>("s_cbranch_scc0"),
    branch_row<kOnScc<1>, Of::scc>("s_cbranch_scc1"),
    branch_row<[](const Wave* w) { return live(w, vcc(w)) == 0; }, Of::vcc>("s_cbranch_vccz"),
    branch_row<[](const Wave* w) { return live(w, vcc(w)) != 0; }, Of::vcc>("s_cbranch_vccnz"),
    branch_row<[](const Wave* w) { return live(w, w->exec()) == 0; }>("s_cbranch_execz"),
    branch_row<[](const Wave* w) { return live(w, w->exec()) != 0; }>("s_cbranch_execnz"),
    branch_row<[](const Wave*) { return false; }>("s_cbranch_cdbgsys"),
    branch_row<[](const Wave*) { return false; }>("s_cbranch_cdbguser"),
    branch_row<[](const Wave*) { return false; }>("s_cbranch_cdbgsys_or_user"),
    branch_row<[](const Wave*) { return false; }>("s_cbranch_cdbgsys_and_user"),
    {"s_getpc_b64", &lower_pc<&getpc, true, false>},
    {"s_setpc_b64", &lower_pc<&setpc<false>, false, true>},
    {"s_swappc_b64", &lower_pc<&setpc<true>, true, true>},
    {"s_call_b64", &lower_pc<&call, true, false>},
    {"s_getreg_b32", &lower_getreg},
    {"s_setreg_b32", &lower_setreg},
    {"s_setreg_imm32_b32", &lower_setreg},
    {"s_round_mode", &lower_mode<0>},
    {"s_denorm_mode", &lower_mode<4>},
    {"s_memtime", &lower_clock<&core_clock>},
    {"s_memrealtime", &lower_clock<&real_time>},
    {"s_sendmsg_rtn_b32", &lower_message},
    {"s_sendmsg_rtn_b64", &lower_message},
    {"s_sleep", &lower_to<&sleep>},
    {"s_sethalt", &lower_halt},
    {"s_sendmsghalt", &lower_to<&halted>},
    {"s_trap", &lower_trap},
    {"s_barrier", &lower_to<&barrier>},
    {"s_endpgm", &lower_to<&end>},
    {"s_nop", &lower_nothing},
    {"s_clause", &lower_nothing},
    {"s_delay_alu", &lower_nothing},
    {"s_waitcnt", &lower_wait},
    {"s_waitcnt_vscnt", &lower_wait_one<&wait_for_stores>},
    {"s_waitcnt_depctr", &lower_nothing},
    {"s_sendmsg", &lower_send},
    {"s_set_inst_prefetch_distance", &lower_nothing},
    {"s_code_end", &lower_nothing},
    {"buffer_gl0_inv", &lower_nothing},
    {"buffer_gl1_inv", &lower_to<&invalidate>},
    {"buffer_inv", &lower_invalidate},
    {"s_setprio", &lower_nothing},
    {"s_wakeup", &lower_nothing},  // sleeping waves wake up by themselves
    {"s_setkill", &lower_nothing},
    {"s_version", &lower_nothing},
    {"s_incperflevel", &lower_nothing},
    {"s_decperflevel", &lower_nothing},
    {"s_ttracedata", &lower_nothing},
    {"s_ttracedata_imm", &lower_nothing},
    {"s_wait_idle", &lower_to<&wait_for_all>},
    {"s_wait_event", &lower_nothing},
    {"s_waitcnt_vmcnt", &lower_wait_one<&wait_for_vmem>},
    {"s_waitcnt_expcnt", &lower_nothing},
    {"s_waitcnt_lgkmcnt", &lower_wait_one<&wait_for_lds_and_smem>},
    {"s_icache_inv", &lower_nothing},
    {"s_dcache_inv", &lower_nothing},
    {"s_dcache_wb", &lower_nothing},
    {"s_gl1_inv", &lower_nothing},
    {"s_inst_prefetch", &lower_nothing},
    {"v_nop", &lower_nothing},
    {"v_pipeflush", &lower_nothing},
    {"v_clrexcp", &lower_nothing},
    {"buffer_wbinvl1", &lower_nothing},
    {"buffer_wbinvl1_vol", &lower_nothing},
    {"buffer_invl2", &lower_nothing},
    {"buffer_wbl2", &lower_nothing},
};

}  // namespace

std::span<const Row> control_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
