#pragma once

// Decodes instructions of the scalar ALU and of program control from the fields of their encodings:
// SOP1, SOP2, SOPK, SOPC and SOPP.

#include <map>
#include <optional>
#include <span>

#include "emu/isa/disassembler.h"
#include "emu/isa/inst.h"

namespace emu {

/// Decodes instructions of one architecture. Names and operands of opcodes come from LLVM: it
/// disassembles an instruction of each opcode whose fields are known, when the opcode is first
/// asked for. Fields that an opcode doesn't use are ignored, as the hardware does.
class ScalarDecoder {
 public:
  ScalarDecoder(const Disassembler& disassembler, int generation)
      : disassembler_(disassembler), generation_(generation) {}

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
  struct Part {
    Field field = Field::none;
    Operand operand;      // without a field: the operand itself
    uint8_t accepts = 0;  // sources: which kinds
  };
  /// What an opcode means: its name, and its operands in the assembler's order.
  struct Opcode {
    std::string name;
    std::vector<Part> parts;
  };

  static const Layout* layout_of(uint32_t word);
  static Part part_of(const Layout& layout, const Operand& operand);
  const Opcode* find(const Layout& layout, uint32_t number);
  std::optional<Opcode> ask(const Layout& layout, uint32_t number) const;
  void ask_sources(uint32_t word, Opcode& opcode) const;
  std::optional<Disassembly> read(uint32_t word) const;
  Operand operand_of(const Part& part, uint32_t word, uint32_t next, Inst& inst) const;

  const Disassembler& disassembler_;
  const int generation_;
  std::map<std::pair<const Layout*, uint32_t>, std::optional<Opcode>> known_;
};

}  // namespace emu
