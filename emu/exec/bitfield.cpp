#include "emu/exec/bitfield.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>

#include "emu/exec/flow.h"
#include "emu/exec/program.h"
#include "emu/isa/inst.h"

namespace emu {
namespace {

bool is_access(std::string_view name, std::string_view kind) {
  return (name.starts_with("global_") || name.starts_with("flat_")) &&
         name.find(kind) != std::string_view::npos;
}

bool is_bit_operation(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "v_and_b32", "v_or_b32",      "v_bfi_b32",     "v_and_or_b32",  "v_or3_b32",
      "v_mov_b32", "v_perm_b32",    "v_lshl_or_b32", "v_and_b16",     "v_or_b16",
      "v_not_b32", "v_lshlrev_b32", "v_lshrrev_b32", "v_lshlrev_b16", "v_lshrrev_b16",
      "v_bfe_u32", "v_mov_b16"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// Numbers of registers; scalar registers follow the vector registers.
class Registers {
 public:
  void add(const Operand& operand) {
    each(operand, [&](int reg) { all_.insert(reg); });
  }
  void remove(const Operand& operand) {
    each(operand, [&](int reg) { all_.erase(reg); });
  }
  bool meet(const Operand& operand) const {
    bool any = false;
    each(operand, [&](int reg) { any |= all_.contains(reg); });
    return any;
  }
  bool empty() const { return all_.empty(); }

 private:
  template <class Use>
  static void each(const Operand& operand, const Use& use) {
    if (operand.kind != Kind::vgpr && operand.kind != Kind::sgpr) return;
    const int first = operand.reg + (operand.kind == Kind::sgpr ? 1000 : 0);
    for (int i = 0; i < operand.dwords; ++i) use(first + i);
  }
  std::set<int> all_;
};

bool same_operand(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.reg == b.reg && a.dwords == b.dwords;
}

/// Returns whether a store has the address of a load. The load's result precedes the address, the
/// store's data follow it.
bool same_place(const Inst& load, const Inst& store) {
  return load.name.substr(0, 4) == store.name.substr(0, 4) &&
         load.operands.size() == store.operands.size() &&
         load.modifier("offset") == store.modifier("offset") &&
         same_operand(load.operands[1], store.operands[0]) &&
         (load.operands.size() < 3 || same_operand(load.operands[2], store.operands[2]));
}

/// Follows the value of a load through the instructions after it.
class Follower {
 public:
  explicit Follower(const Inst& load) : load_(load) {
    values_.add(load.operands[0]);
    for (size_t i = 1; i < load.operands.size(); ++i) address_.add(load.operands[i]);
  }

  enum class Step { goes_on, stored, lost };
  Step follow(const Inst& inst) {
    if (is_branch(inst) || inst.name == "s_endpgm") return Step::lost;
    const std::vector<Operand>& operands = inst.operands;
    if (operands.empty()) return Step::goes_on;
    const bool store = is_access(inst.name, "_store");
    bool uses = false;
    for (size_t i = store ? 0 : 1; i < operands.size(); ++i) uses |= values_.meet(operands[i]);
    if (store) {
      if (!uses) return Step::goes_on;
      return !values_.meet(operands[0]) && same_place(load_, inst) ? Step::stored : Step::lost;
    }
    if ((uses && !is_bit_operation(inst.name)) || address_.meet(operands[0])) return Step::lost;
    uses ? values_.add(operands[0]) : values_.remove(operands[0]);
    return values_.empty() ? Step::lost : Step::goes_on;
  }

 private:
  const Inst& load_;
  Registers values_, address_;
};

/// Returns the instruction at an address, or both halves of a dual one; none if there is none.
std::vector<Inst> instruction_at(const Program& program, uint64_t address) {
  const Op* op = program.find(address);
  if (op == nullptr) return {};
  try {
    return parse_instruction(program.origin(op).text);
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace

bool replaces_bits(const Program& program, uint64_t address) {
  constexpr uint64_t kFar = 400;  // bytes of code between the load and the store
  const std::vector<Inst> load = instruction_at(program, address);
  if (load.size() != 1 || !is_access(load[0].name, "_load") || load[0].operands.size() < 2) {
    return false;
  }
  Follower follower(load[0]);
  const uint64_t end = std::min(program.end, address + kFar);
  for (uint64_t at = address + 4; at < end; at += 4) {
    for (const Inst& inst : instruction_at(program, at)) {
      const Follower::Step step = follower.follow(inst);
      if (step != Follower::Step::goes_on) return step == Follower::Step::stored;
    }
  }
  return false;
}

}  // namespace emu
