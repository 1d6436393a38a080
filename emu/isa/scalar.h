#pragma once

// Decodes instructions of the scalar ALU and of program control from the fields of their encodings:
// SOP1, SOP2, SOPK, SOPC and SOPP.

#include "emu/isa/dictionary.h"

namespace emu {

/// Decodes instructions of one architecture. Fields that an opcode doesn't use are ignored, as the
/// hardware does.
class ScalarDecoder {
 public:
  ScalarDecoder(const Disassembler& disassembler, int generation)
      : disassembler_(disassembler), generation_(generation), dictionary_(disassembler) {}

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't a scalar
  /// instruction that LLVM knows. Immediates are operands, too: wait counts, messages, branches and
  /// the fields of hardware registers are their 16 bits. The instruction has no text. Throws
  /// std::runtime_error for reserved values of fields and for code that ends within an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  struct Layout;
  /// number: a source field that is a number and names no register, such as that of a message.
  enum class Field : uint8_t {
    none,
    result,
    source0,
    source1,
    immediate,
    number0,
    number1,
    literal
  };
  using Opcode = Dictionary<Field>::Opcode;
  using Part = Dictionary<Field>::Part;

  static const Layout* layout_of(uint32_t word);
  static Field field_of(const Layout& layout, const Operand& operand);
  const Opcode* find(const Layout& layout, uint32_t number);
  std::optional<Opcode> ask(const Layout& layout, uint32_t number) const;
  void ask_sources(Opcode& opcode) const;
  Operand operand_of(const Part& part, uint32_t word, uint32_t next, Inst& inst) const;

  const Disassembler& disassembler_;
  const int generation_;
  Dictionary<Field> dictionary_;
};

}  // namespace emu
