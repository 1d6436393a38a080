#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "emu/exec/lowering.h"
#include "emu/exec/profile.h"
#include "emu/exec/stretch.h"
#include "emu/isa/decode.h"

namespace emu {

/// The instruction that an operation came from, for reports.
struct Origin {
  uint64_t address = 0;
  std::string text;
};

/// A function's lowered instructions.
struct Program {
  std::string name;
  uint64_t begin = 0, end = 0;  // addresses in the code object
  int vgprs = 0;
  uint32_t constants = 0;  // how many of the module's constants its operations use or precede
  std::vector<Op> ops;
  std::vector<Origin> origins;  // one for each operation
  std::vector<int32_t> op_at;   // indexed by (address - begin) / 4; -1 inside an instruction
  std::deque<Extra> extras;
  std::deque<Block> blocks;         // of a profiled program
  std::deque<Stretch> stretches;    // of checked code
  std::deque<std::string> reasons;  // why operations fail that stand for no known instruction

  /// Returns the operation at which an instruction starts, or null if none starts there.
  const Op* find(uint64_t address) const {
    if (address < begin || address >= end || (address - begin) % 4 != 0) return nullptr;
    const int32_t index = op_at[(address - begin) / 4];
    return index < 0 ? nullptr : &ops[static_cast<size_t>(index)];
  }
  /// Returns an empty origin if the operation belongs to another program.
  const Origin& origin(const Op* op) const {
    static const Origin none;
    const auto index = static_cast<size_t>(op - ops.data());
    return index < origins.size() ? origins[index] : none;
  }
};

/// A function of a code object, or a range of its text without a symbol.
struct Symbol {
  std::string name;
  uint64_t address = 0, size = 0;
  /// Addresses within the function at which a wave is known to enter it. Besides, waves may jump to
  /// addresses that they compute.
  std::vector<uint64_t> entries = {};
};

/// Finds a row by the instruction's name; returns null if there is none.
using Rows = const Row* (*)(std::string_view name);

/// The rows that lower code. Checked code also has unchecked rows, for its stretches.
struct RowChoice {
  Rows rows = nullptr, unchecked = nullptr;
};

/// The code of a module. A function is lowered when it is first run, by any thread.
class Code {
 public:
  /// `text` is located at `address` of the object; `functions` are sorted by address.
  Code(const std::string& architecture, Traits traits, RowChoice rows, std::vector<uint8_t> text,
       uint64_t address, std::vector<Symbol> functions);
  ~Code();

  /// Returns the program that contains the address. Throws std::runtime_error if there is no code,
  /// or if an entry of the function leads to an instruction that the emulator doesn't implement or
  /// to a word that isn't one; the message then names the instruction, the function and the
  /// address. Elsewhere, such instructions and words fail when a wave reaches them.
  const Program& at(uint64_t address);

  /// Whether functions that are lowered from now on count their instructions.
  bool profiled = false;
  /// Calls visit(program) for every function that has been lowered.
  template <class Visit>
  void each_program(const Visit& visit) {
    std::lock_guard lock(mutex_);
    for (const auto& [address, program] : programs_) visit(*program);
  }

  const Traits traits;
  /// Distinguishes modules that were loaded at the same address one after another; never 0.
  const uint64_t serial;
  /// Constants of all programs. They never move; each program knows how many of them it needs.
  const uint64_t* constants() const { return constants_.data(); }

 private:
  std::vector<Inst> decode(uint64_t begin, uint64_t end);
  std::unique_ptr<Program> lower(const Symbol& function);

  const RowChoice rows_;
  const std::vector<uint8_t> text_;
  const uint64_t address_;
  const std::vector<Symbol> functions_;
  std::mutex mutex_;
  Decoder decoder_;
  std::vector<uint64_t> constants_;
  std::map<uint64_t, std::unique_ptr<Program>> programs_;  // by first address
};

}  // namespace emu
