#pragma once

// From instructions to operations: what every row of the tables uses to place its operands.

#include <deque>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emu/exec/wave.h"
#include "emu/isa/inst.h"

namespace emu {

/// What an operand's constant means.
enum class Value : uint8_t { b16, f16, bf16, i16, pk_f16, b32, f32, b64, u64, f64 };

/// What differs between architectures for one and the same row.
struct Traits {
  bool wave64 = false;
  bool keep_high = true;    // 16-bit results leave the upper half of the register alone
  uint8_t generation = 11;  // 9, 10, 11, 12
  /// Instructions whose results do so where others' don't.
  std::span<const std::string_view> keeping_high = {};
};

/// Which of a vector row's handlers an instruction's operands allow.
enum class PlacedForm : uint8_t { full, quick, plain };
struct Placed {
  PlacedForm form;
  unsigned vectors;  // bit i: source i is a vector register
};

/// How a row's operands lie in an instruction.
struct OperandUse {
  size_t results = 1;
  bool accumulate = false;  // the first result is the last source, too
  bool to_exec = false;     // the result is EXEC, which the instruction may leave out
};

/// A register operand that an instruction reads or writes; more than one follow each other. Upper
/// dwords of 64-bit integers may be unknown: then that of the result is, and nothing else.
struct Access {
  enum class Kind : uint8_t { read, write, read_upper, write_upper };
  uint32_t offset, registers;  // from the wave
  Kind kind;
};

class Lowering {
 public:
  /// `constants`: of the whole module, laid into every wave.
  Lowering(Traits traits, std::vector<uint64_t>& constants)
      : traits(traits), constants_(constants) {}

  const Traits traits;
  std::vector<Op> ops;
  std::deque<Extra> extras;  // addresses stay
  int vgprs = 0;             // registers that were named, from the first on

  /// Appends an operation and gives it back to be filled in.
  Op& emit(Handler fn);

  /// Appends a vector operation without its handler: operands in the order of `values`, then what
  /// extra() finds.
  Placed place_vector(const Inst& inst, OperandUse use, std::span<const Value> values);

  /// Appends a scalar operation without its handler.
  Op& place_scalar(const Inst& inst, OperandUse use, std::span<const Value> values);

  /// Where the operand's value is found, seen from the wave.
  uint32_t source(const Operand& operand, Value value);
  /// Where a register to be written is.
  uint32_t destination(const Operand& operand);
  uint32_t constant(uint64_t bits);
  uint32_t constant_count() const { return static_cast<uint32_t>(constants_.size()); }
  /// Of an instruction that only computes, lane by lane: what it reads and writes, and nothing
  /// else. Rows that say so call access() for all of their operands, and only_computes() once.
  void access(uint32_t offset, uint32_t registers, Access::Kind kind) {
    accesses.push_back({offset, registers, kind});
  }
  void only_computes() { computes = true; }
  std::vector<Access> accesses;
  bool computes = false;

  /// Registers named relative to M0 (gfx9): the handler that puts the index in, and which operands
  /// it is for: bit i source i, bit 3 the result. Null outside of such code.
  Handler index_with = nullptr;
  uint32_t indexed_operands = 0;
  /// Puts that handler before the operation that `inst` became, the last one.
  void index_registers(const Inst& inst, size_t operations_before);

  int halves() const { return traits.wave64 ? 2 : 1; }

  /// The operation's modifiers; `sources` operands from `first` on.
  Extra* extra(const Inst& inst, size_t first, size_t sources);

 private:
  std::vector<uint64_t>& constants_;
};

/// An instruction of the tables. A table lives in a namespace of its host instruction set.
struct Row {
  const char* name;
  void (*lower)(Lowering&, const Inst&);
};

/// Rows of one generation, or (0) of all: a generation's own come before those.
struct Table {
  int generation;
  std::span<const Row> rows;
};

/// Refuses an instruction whose operands aren't as they should be.
[[noreturn]] void refuse_operands(const Inst& inst);

/// The instruction isn't one that is known, or not in this form.
struct NotImplemented : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace emu
