#pragma once

// Lowers instructions to operations. Every row of the tables uses these functions to place its
// operands.

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

/// How the constant of an operand is interpreted.
enum class Value : uint8_t { b16, f16, bf16, i16, pk_f16, b32, f32, b64, u64, f64 };

/// The properties of an architecture that change how a shared row works.
struct Traits {
  bool wave64 = false;
  bool keep_high = true;  // 16-bit results preserve the upper half of the register
  /// Loads into half a register clear the other half, as chips with ECC in their registers do.
  bool loads_clear = false;
  uint8_t generation = 11;  // 9, 10, 11, 12
  bool ocp_float8 = false;  // the 8-bit floats are those of OCP: see exec/float8.h
  /// Instructions whose 16-bit results preserve the upper half although keep_high is false.
  std::span<const std::string_view> keeping_high = {};
};

/// The fastest of a vector row's handlers that an instruction's operands allow.
enum class PlacedForm : uint8_t { full, quick, plain };
struct Placed {
  PlacedForm form;
  unsigned vectors;  // bit i: source i is a vector register
};

/// How the operands of a row correspond to the operands of an instruction.
struct OperandUse {
  size_t results = 1;
  bool accumulate = false;  // the first result is also the last source
  bool to_exec = false;     // the result is EXEC, which the instruction's text may omit
};

/// A range of consecutive registers that an instruction reads or writes. The upper dwords of 64-bit
/// integers have kinds of their own: if one is unknown, only the upper dword of the result is
/// unknown.
struct Access {
  enum class Kind : uint8_t { read, write, read_upper, write_upper };
  uint32_t offset, registers;  // the offset is relative to the wave
  Kind kind;
};

class Lowering {
 public:
  /// `constants`: the constants of the whole module, which are copied into every wave.
  Lowering(Traits traits, std::vector<uint64_t>& constants)
      : traits(traits), constants_(constants) {}

  const Traits traits;
  std::vector<Op> ops;
  std::deque<Extra> extras;  // a deque, so that addresses remain valid
  int vgprs = 0;             // one more than the highest register that was named

  /// Appends an operation and returns it to be filled in.
  Op& emit(Handler fn);

  /// Appends a vector operation without a handler. Its operands come in the order of `values`;
  /// extra() fills in the modifiers.
  Placed place_vector(const Inst& inst, OperandUse use, std::span<const Value> values);

  /// Appends a scalar operation without a handler.
  Op& place_scalar(const Inst& inst, OperandUse use, std::span<const Value> values);

  /// Returns the offset from the wave at which the operand's value is found.
  uint32_t source(const Operand& operand, Value value);
  /// Returns the offset from the wave of a register that is written.
  uint32_t destination(const Operand& operand);
  uint32_t constant(uint64_t bits);
  uint32_t constant_count() const { return static_cast<uint32_t>(constants_.size()); }
  /// Records what an instruction reads or writes, if it only computes, each lane by itself. Rows of
  /// such instructions call access() for all of their operands and only_computes() once.
  void access(uint32_t offset, uint32_t registers, Access::Kind kind) {
    accesses.push_back({offset, registers, kind});
  }
  void only_computes() { computes = true; }
  std::vector<Access> accesses;
  bool computes = false;

  /// For registers that are named relative to M0 (gfx9): the handler that adds the index, and the
  /// operands that it applies to. Bit i stands for source i, bit 3 for the result. The handler is
  /// null where no index applies.
  Handler index_with = nullptr;
  uint32_t indexed_operands = 0;
  /// Inserts that handler before the last operation, which `inst` was lowered to.
  void index_registers(const Inst& inst, size_t operations_before);

  int halves() const { return traits.wave64 ? 2 : 1; }

  /// Returns the operation's modifiers. `first` is the index of the first of `sources` source
  /// operands.
  Extra* extra(const Inst& inst, size_t first, size_t sources);

 private:
  std::vector<uint64_t>& constants_;
};

/// An instruction of the tables. Each table is in the namespace of a host instruction set.
struct Row {
  const char* name;
  void (*lower)(Lowering&, const Inst&);
};

/// The rows of one generation, or of all generations (0). Rows of a generation take precedence over
/// shared ones.
struct Table {
  int generation;
  std::span<const Row> rows;
};

/// Throws because an instruction's operands don't have the expected form.
[[noreturn]] void refuse_operands(const Inst& inst);

/// Thrown for an instruction, or a form of one, that the emulator doesn't implement.
struct NotImplemented : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace emu
