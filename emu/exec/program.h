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

/// What is known of an operation for reports: the instruction it came from.
struct Origin {
  uint64_t address = 0;
  std::string text;
};

/// A function's instructions, ready to run.
struct Program {
  std::string name;
  uint64_t begin = 0, end = 0;  // addresses in the code object
  int vgprs = 0;
  uint32_t constants = 0;  // of the module, as many as are named so far
  std::vector<Op> ops;
  std::vector<Origin> origins;  // of each operation
  std::vector<int32_t> op_at;   // by (address - begin) / 4; -1 within an instruction
  std::deque<Extra> extras;
  std::deque<Block> blocks;       // where instructions are counted
  std::deque<Stretch> stretches;  // of checked code

  /// The operation of an instruction, null where none starts.
  const Op* find(uint64_t address) const {
    if (address < begin || address >= end || (address - begin) % 4 != 0) return nullptr;
    const int32_t index = op_at[(address - begin) / 4];
    return index < 0 ? nullptr : &ops[static_cast<size_t>(index)];
  }
  /// An empty one where the operation is of another program.
  const Origin& origin(const Op* op) const {
    static const Origin none;
    const auto index = static_cast<size_t>(op - ops.data());
    return index < origins.size() ? origins[index] : none;
  }
};

/// A function of a code object.
struct Symbol {
  std::string name;
  uint64_t address = 0, size = 0;
};

/// Finds a row by the instruction's name, null where there is none.
using Rows = const Row* (*)(std::string_view name);

/// The rows that lower code. Checked code has unchecked ones, too, for its stretches.
struct RowChoice {
  Rows rows = nullptr, unchecked = nullptr;
};

/// The code of a module. Functions are lowered when they are first run, by any thread.
class Code {
 public:
  /// `text` lies at `address` of the object; functions sorted by address.
  Code(const std::string& architecture, Traits traits, RowChoice rows, std::vector<uint8_t> text,
       uint64_t address, std::vector<Symbol> functions);
  ~Code();

  /// The program that holds the address. Throws std::runtime_error where there is no code, or an
  /// instruction is unknown: the message names it, the function and the address.
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
  /// Tells apart what lay at one address one after the other; never 0.
  const uint64_t serial;
  /// Constants of all programs. They never move; a program knows how many there are for it.
  const uint64_t* constants() const { return constants_.data(); }

 private:
  std::vector<std::vector<Inst>> decode(const Symbol& function);
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
