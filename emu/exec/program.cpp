#include "emu/exec/program.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>

#include "emu/exec/launch.h"

namespace emu {
namespace {

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

/// Runs where a function's instructions end without an end of the program.
Stop fell_off(Wave* w, const Op* op) { return fail(w, op, "ran past the end of its function"); }

/// Whether the destination is also the last source.
bool accumulates(const Inst& inst) {
  return inst.name == "v_fmac_f32" || inst.name.starts_with("v_dot2acc");
}

/// Vector registers of one and the other half of a dual instruction, as far as they clash.
bool reads(const Inst& inst, uint16_t reg) {
  return std::any_of(inst.operands.begin() + 1, inst.operands.end(), [&](const Operand& operand) {
    return operand.kind == Kind::vgpr && operand.reg == reg;
  }) || (accumulates(inst) && inst.operands[0].reg == reg);
}

Inst move(const Operand& to, const Operand& from, const Inst& whole) {
  Inst inst = whole;
  inst.name = "v_mov_b32";
  inst.operands = {to, from};
  return inst;
}

/// Both halves read before either writes: where neither order gives that, through a spare register.
template <class LowerOne>
void lower_dual(const Inst& x, const Inst& y, const LowerOne& lower_one) {
  if (!reads(y, x.operands[0].reg)) {
    lower_one(x);
    lower_one(y);
  } else if (!reads(x, y.operands[0].reg)) {
    lower_one(y);
    lower_one(x);
  } else {
    Inst first = x;
    Operand& spare = first.operands[0];
    spare.reg = kSpareVgpr;
    if (accumulates(x)) lower_one(move(spare, x.operands[0], x));
    lower_one(first);
    lower_one(y);
    lower_one(move(x.operands[0], spare, x));
  }
}

}  // namespace

Code::Code(const std::string& architecture, Traits traits, Rows rows, std::vector<uint8_t> text,
           uint64_t address, std::vector<Symbol> functions)
    : traits(traits),
      serial(next_serial()),
      rows_(rows),
      text_(std::move(text)),
      address_(address),
      functions_(std::move(functions)),
      decoder_(architecture, traits.wave64) {
  constants_.reserve(kConstants);
}

Code::~Code() = default;

const Program& Code::at(uint64_t address) {
  const auto after =
      std::upper_bound(functions_.begin(), functions_.end(), address,
                       [](uint64_t a, const Symbol& symbol) { return a < symbol.address; });
  if (after == functions_.begin() || address >= (after - 1)->address + (after - 1)->size) {
    throw std::runtime_error("no code at " + hex(address));
  }
  const Symbol& function = *(after - 1);
  std::lock_guard lock(mutex_);
  std::unique_ptr<Program>& program = programs_[function.address];
  if (program == nullptr) program = lower(function);
  return *program;
}

std::vector<std::vector<Inst>> Code::decode(const Symbol& function) {
  std::vector<std::vector<Inst>> all;
  for (uint64_t at = function.address, end = at + function.size; at < end;) {
    const size_t offset = at - address_;
    const size_t bytes = std::min<size_t>(text_.size() - offset, end - at);
    try {
      all.push_back(decoder_.decode(std::span(text_).subspan(offset, bytes), at));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + " of " + function.name);
    }
    at += all.back()[0].size;
  }
  return all;
}

namespace {

bool is_branch(const Inst& inst) {
  return inst.name.starts_with("s_cbranch") || inst.name == "s_branch" || inst.name == "s_call_b64";
}

uint64_t branch_target(const Inst& inst) {
  const auto words = static_cast<int16_t>(inst.immediate);
  return inst.address + inst.size + static_cast<uint64_t>(int64_t{words} * 4);
}

/// Whether what follows the instruction may run another number of times or with another EXEC.
bool ends_block(const Inst& inst) {
  const Class kind = class_of(inst.name);
  if (kind == Class::branch || inst.name == "s_barrier" || inst.name == "s_sleep") return true;
  return inst.name.find("exec") != std::string::npos || inst.name.starts_with("v_cmpx") ||
         (!inst.operands.empty() && inst.operands[0].kind == Kind::sgpr &&
          inst.operands[0].reg >= kExec);
}

/// The addresses at which counting starts anew.
std::set<uint64_t> block_starts(const std::vector<std::vector<Inst>>& all) {
  std::set<uint64_t> starts;
  bool next = true;
  for (const std::vector<Inst>& insts : all) {
    const Inst& inst = insts[0];
    if (next) starts.insert(inst.address);
    next = ends_block(inst);
    if (is_branch(inst)) starts.insert(branch_target(inst));
  }
  return starts;
}

}  // namespace

std::unique_ptr<Program> Code::lower(const Symbol& function) {
  auto program = std::make_unique<Program>();
  program->name = function.name;
  program->begin = function.address;
  program->end = function.address + function.size;
  program->op_at.assign((function.size + 3) / 4, -1);
  Lowering lowering(traits, constants_);
  std::vector<std::pair<size_t, uint64_t>> branches;  // operation, target

  const auto lower_one = [&](const Inst& inst) {
    const Row* row = rows_(inst.name);
    if (row == nullptr) throw NotImplemented("unknown instruction");
    row->lower(lowering, inst);
    program->origins.resize(lowering.ops.size(), {inst.address, inst.text});
    if (is_branch(inst)) branches.emplace_back(lowering.ops.size() - 1, branch_target(inst));
  };

  const std::vector<std::vector<Inst>> all = decode(function);
  const std::set<uint64_t> starts = profiled ? block_starts(all) : std::set<uint64_t>();
  for (const std::vector<Inst>& insts : all) {
    const Inst& inst = insts[0];
    program->op_at[(inst.address - program->begin) / 4] = static_cast<int32_t>(lowering.ops.size());
    if (starts.contains(inst.address)) {
      lowering.emit(&count_block).data = &program->blocks.emplace_back();
      program->origins.resize(lowering.ops.size(), {inst.address, inst.text});
    }
    if (profiled) ++program->blocks.back().instructions[static_cast<size_t>(class_of(inst.name))];
    try {
      if (insts.size() == 1) {
        lower_one(inst);
      } else {
        lower_dual(inst, insts[1], lower_one);
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + ": '" + inst.text + "' at " +
                               hex(inst.address) + " of " + function.name);
    }
  }
  lowering.emit(&fell_off);
  program->origins.push_back({program->end, "(end of the function)"});
  program->ops = std::move(lowering.ops);
  program->extras = std::move(lowering.extras);
  program->vgprs = lowering.vgprs;
  program->constants = static_cast<uint32_t>(constants_.size());
  for (const auto& [index, address] : branches) {
    const Op* target = program->find(address);
    if (target == nullptr) {
      throw std::runtime_error("branch out of the function: to " + hex(address) + " of " +
                               function.name);
    }
    program->ops[index].target = target;
  }
  return program;
}

}  // namespace emu
