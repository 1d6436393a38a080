#include "emu/exec/program.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <utility>

#include "emu/exec/flow.h"
#include "emu/exec/hex.h"
#include "emu/exec/launch.h"

namespace emu {
namespace {

uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

/// Runs if a function's instructions end without s_endpgm or a branch.
Stop fell_off(Wave* w, const Op* op) { return fail(w, op, "ran past the end of its function"); }

/// Runs where a function contains something that isn't a known instruction.
Stop unknown(Wave* w, const Op* op) {
  return fail(w, op, *static_cast<const std::string*>(op->data));
}

/// Runs before an instruction that may name more registers than the kernel has.
Stop check_registers(Wave* w, const Op* op) {
  if (static_cast<uint32_t>(op->imm) > w->vgprs) {
    return fail(w, op, "names more registers than the kernel has");
  }
  EMU_NEXT;
}

/// Returns whether the destination is also the last source.
bool accumulates(const Inst& inst) {
  return inst.name == "v_fmac_f32" || inst.name.starts_with("v_dot2acc");
}

/// These functions find registers that both halves of a dual instruction use.
bool reads(const Inst& inst, uint16_t reg) {
  return std::any_of(inst.operands.begin() + 1, inst.operands.end(),
                     [&](const Operand& operand) {
                       return operand.kind == Kind::vgpr && operand.reg == reg;
                     }) ||
         (accumulates(inst) && inst.operands[0].reg == reg);
}

Inst move(const Operand& to, const Operand& from, const Inst& whole) {
  Inst inst = whole;
  inst.name = "v_mov_b32";
  inst.operands = {to, from};
  return inst;
}

Operand zero() {
  Operand operand;
  operand.kind = Kind::integer;
  return operand;
}

/// Returns whether the result is zero for all values of the sources, as for v_xor_b32 v0, v1, v1.
/// Such a result is known even if nothing has written the source register.
bool gives_zero(const Inst& inst) {
  if (inst.form != Form::plain || inst.operands.size() != 3 || !inst.modifiers.empty())
    return false;
  const Operand &a = inst.operands[1], &b = inst.operands[2];
  return (inst.name == "v_xor_b32" || inst.name == "v_sub_u32" || inst.name == "v_sub_nc_u32") &&
         a.kind == Kind::vgpr && b.kind == Kind::vgpr && a.reg == b.reg;
}

/// Both halves of a dual instruction read before either writes. If neither order of the halves
/// gives this, the first result goes through a spare register.
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

Code::Code(const std::string& architecture, Traits traits, RowChoice rows,
           std::vector<uint8_t> text, uint64_t address, std::vector<Symbol> functions)
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
    throw std::runtime_error("there is no code");
  }
  const Symbol& function = *(after - 1);
  std::lock_guard lock(mutex_);
  std::unique_ptr<Program>& program = programs_[function.address];
  if (program == nullptr) {
    Symbol entered = function;
    entered.entries.push_back(address);
    program = lower(entered);
  }
  return *program;
}

namespace {

/// A word that isn't an instruction. It fails when a wave reaches it, since functions may contain
/// data and padding.
Inst not_an_instruction(uint64_t address, const char* why) {
  Inst inst;
  inst.address = address;
  inst.size = 4;
  inst.text = inst.error = why;
  return inst;
}

}  // namespace

std::vector<Inst> Code::decode(uint64_t begin, uint64_t end) {
  const size_t offset = begin - address_;
  const size_t bytes = std::min<size_t>(text_.size() - offset, end - begin);
  try {
    return decoder_.decode(std::span(text_).subspan(offset, bytes), begin);
  } catch (const std::runtime_error& error) {
    return {not_an_instruction(begin, error.what())};
  }
}

namespace {

/// Returns whether the instructions that follow may run a different number of times or under a
/// different EXEC.
bool ends_block(const Inst& inst) {
  const Class kind = class_of(inst.name);
  if (kind == Class::branch || inst.name == "s_barrier" || inst.name == "s_sleep") return true;
  return inst.name.find("exec") != std::string::npos || inst.name.starts_with("v_cmpx") ||
         (!inst.operands.empty() && inst.operands[0].kind == Kind::sgpr &&
          inst.operands[0].reg >= kExec);
}

/// Returns the addresses at which blocks start.
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

/// Lowers one function.
class FunctionLowering {
 public:
  FunctionLowering(const Symbol& function, const Listing& listing, Lowering lowering,
                   RowChoice rows, bool profiled)
      : insts_(listing.insts),
        reached_(listing.reached),
        rows_(rows),
        lowering_(std::move(lowering)),
        program_(std::make_unique<Program>()),
        profiled_(profiled) {
    program_->name = function.name;
    program_->begin = function.address;
    program_->end = function.address + function.size;
    program_->op_at.assign((function.size + 3) / 4, -1);
    for (const std::vector<Inst>& inst : insts_) boundaries_.insert(inst[0].address);
    if (profiled || rows.unchecked != nullptr) starts_ = block_starts(insts_);
  }

  std::unique_ptr<Program> run() {
    for (size_t i = 0; i < insts_.size();) {
      // Only jumps lead from reached instructions to others or back, and no jump leaves the
      // instructions whose registers are relative to an index.
      if (i > 0 && reached_[i] != reached_[i - 1]) lowering_.index_with = nullptr;
      if (profiled_ && starts(i)) count(i);
      const size_t end = rows_.unchecked == nullptr || !reached_[i] ? i : lower_stretch(i);
      if (end > i) {
        i = end;
      } else {
        lower_alone(i++);
      }
    }
    lowering_.index_with = nullptr;
    emit(&fell_off, {program_->end, "(end of the function)"});
    for (const Aside& aside : asides_) lower_aside(aside);
    program_->ops = std::move(lowering_.ops);
    program_->extras = std::move(lowering_.extras);
    program_->vgprs = lowering_.vgprs;
    program_->constants = lowering_.constant_count();
    for (const auto& [from, to] : jumps_) program_->ops[from].target = &program_->ops[to];
    for (const auto& [index, to] : branches_) {
      program_->ops[index].target = program_->find(to);
    }
    return std::move(program_);
  }

 private:
  /// The instructions of a stretch, whose checked operations are placed after the function's other
  /// operations.
  struct Aside {
    size_t first, last, head, resume;  // instructions; operations
  };
  // A shorter stretch costs more than it saves.
  static constexpr size_t kShortest = 2;

  bool starts(size_t i) const { return starts_.contains(insts_[i][0].address); }

  Op& emit(Handler fn, const Origin& origin) {
    Op& op = lowering_.emit(fn);
    program_->origins.resize(lowering_.ops.size(), origin);
    return op;
  }

  /// Emits the counter of the block that starts at this instruction.
  void count(size_t i) {
    mark(i);
    emit(&count_block, {insts_[i][0].address, insts_[i][0].text}).data =
        &program_->blocks.emplace_back();
  }

  /// Maps the instruction's address to the next operation, unless it is mapped already.
  void mark(size_t i) {
    int32_t& at = program_->op_at[(insts_[i][0].address - program_->begin) / 4];
    if (at < 0) at = static_cast<int32_t>(lowering_.ops.size());
  }
  void tally(size_t i) {
    if (!profiled_) return;
    Block& block = program_->blocks.back();
    ++block.instructions[static_cast<size_t>(class_of(insts_[i][0].name))];
    block.matrix_cycles += matrix_cycles(insts_[i][0].name);
  }

  void lower_alone(size_t i) {
    mark(i);
    tally(i);
    if (reached_[i]) {
      lower(i, rows_.rows);
    } else {
      lower_unsure(i);
    }
  }

  /// Lowers something that is an instruction only if a wave computes its address. If it isn't an
  /// instruction that the emulator implements, it fails when a wave reaches it. Since it may be
  /// data, it doesn't raise the number of registers that the function needs; a check of the wave's
  /// number of registers precedes it instead.
  void lower_unsure(size_t i) {
    const size_t operations = lowering_.ops.size(), branches = branches_.size();
    const int vgprs = lowering_.vgprs;
    emit(&check_registers, {insts_[i][0].address, insts_[i][0].text});
    try {
      lower_known(i, rows_.rows);
      lowering_.ops[operations].imm = lowering_.vgprs;
    } catch (const std::runtime_error& error) {
      shrink_to(operations, branches);
      lower_unknown(insts_[i][0], error.what());
    }
    lowering_.vgprs = vgprs;
  }

  /// Lowers an instruction, or both halves of a dual one. Returns true if it only computes; parts_
  /// then holds what it reads and writes.
  bool lower(size_t i, Rows rows) {
    try {
      return lower_known(i, rows);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + ": '" + insts_[i][0].text + "' at " +
                               hex(insts_[i][0].address) + " of " + program_->name);
    }
  }

  bool lower_known(size_t i, Rows rows) {
    const std::vector<Inst>& insts = insts_[i];
    if (!insts[0].error.empty()) throw std::runtime_error("isn't a known instruction");
    bool computes = true;
    parts_.clear();
    const auto lower_one = [&](const Inst& given) {
      const Inst inst = gives_zero(given) ? move(given.operands[0], zero(), given) : given;
      const Row* row = rows(inst.name);
      if (row == nullptr) throw NotImplemented("unknown instruction");
      lowering_.accesses.clear();
      lowering_.computes = false;
      const size_t operations = lowering_.ops.size();
      row->lower(lowering_, inst);
      lowering_.index_registers(inst, operations);
      computes &= lowering_.computes;
      parts_.push_back(lowering_.accesses);
      program_->origins.resize(lowering_.ops.size(), {inst.address, inst.text});
      if (is_branch(inst) && lowering_.index_with != nullptr) {
        throw NotImplemented("a branch between s_set_gpr_idx_on and _off");
      }
      if (is_branch(inst)) add_branch(branch_target(inst));
    };
    if (insts.size() == 1) {
      lower_one(insts[0]);
    } else {
      lower_dual(insts[0], insts[1], lower_one);
    }
    return computes;
  }

  void lower_unknown(const Inst& inst, const std::string& why) {
    emit(&unknown, {inst.address, inst.text}).data = &program_->reasons.emplace_back(why);
  }

  /// Makes the last operation jump to an address.
  void add_branch(uint64_t target) {
    if (!boundaries_.contains(target)) {
      throw std::runtime_error("branch out of the function: to " + hex(target));
    }
    branches_.emplace_back(lowering_.ops.size() - 1, target);
  }

  void shrink_to(size_t operations, size_t branches) {
    lowering_.ops.resize(operations);
    program_->origins.resize(operations);
    branches_.resize(branches);
  }

  /// Lowers the stretch that begins with instruction `first`. Returns the instruction after it, or
  /// `first` if no stretch that is worthwhile begins here.
  size_t lower_stretch(size_t first) {
    StretchBuilder stretch;
    const size_t head = lowering_.ops.size(), branches_before = branches_.size();
    size_t computing = 0;  // operations
    mark(first);
    emit(&enter_stretch, {insts_[first][0].address, insts_[first][0].text});
    // Instructions that are lowered only to find the stretch's end mustn't affect those that are
    // lowered next.
    const Handler index_with = lowering_.index_with;
    const uint32_t indexed_operands = lowering_.indexed_operands;
    size_t last = first;
    for (; last < insts_.size() && reached_[last] && (last == first || !starts(last)); ++last) {
      const size_t operations = lowering_.ops.size(), branches = branches_.size();
      if (lower(last, rows_.unchecked)) {
        computing += lowering_.ops.size() - operations;
        if (stretch.add(parts_)) continue;
        computing -= lowering_.ops.size() - operations;
        shrink_to(operations, branches);
        break;
      }
      shrink_to(operations, branches);
      lowering_.index_with = index_with;
      lowering_.indexed_operands = indexed_operands;
      if (last == first || !may_be_guest(insts_[last][0])) break;
      lower(last, rows_.rows);
      stretch.add_guest(insts_[last][0]);
    }
    if (computing < kShortest) {
      shrink_to(head, branches_before);
      return first;
    }
    for (size_t i = first; i < last; ++i) tally(i);
    lowering_.ops[head].data = &program_->stretches.emplace_back(stretch.finish());
    asides_.push_back({first, last, head, lowering_.ops.size()});
    return last;
  }

  void lower_aside(const Aside& aside) {
    jumps_.emplace_back(aside.head, lowering_.ops.size());
    for (size_t i = aside.first; i < aside.last; ++i) {
      mark(i);
      lower(i, rows_.rows);
    }
    emit(&leave_stretch, program_->origins[aside.resume]);
    jumps_.emplace_back(lowering_.ops.size() - 1, aside.resume);
  }

  const std::vector<std::vector<Inst>>& insts_;
  const std::vector<bool>& reached_;
  const RowChoice rows_;
  Lowering lowering_;
  std::unique_ptr<Program> program_;
  const bool profiled_;
  std::set<uint64_t> boundaries_;                      // where instructions start
  std::set<uint64_t> starts_;                          // where blocks start
  std::vector<std::pair<size_t, uint64_t>> branches_;  // operation, target's address
  std::vector<std::pair<size_t, size_t>> jumps_;       // operation, target
  std::vector<Aside> asides_;
  std::vector<std::vector<Access>> parts_;
};

}  // namespace

std::unique_ptr<Program> Code::lower(const Symbol& function) {
  const Listing listing = list_instructions(
      function, [this](uint64_t begin, uint64_t end) { return decode(begin, end); });
  return FunctionLowering(function, listing, Lowering(traits, constants_), rows_, profiled).run();
}

}  // namespace emu
