#pragma once

// Decodes scalar memory instructions from the fields of their encoding, SMEM.

#include <map>
#include <optional>
#include <span>

#include "emu/isa/disassembler.h"
#include "emu/isa/inst.h"

namespace emu {

/// Decodes instructions of one architecture. Names and operands of opcodes come from LLVM, as those
/// of ScalarDecoder do.
class ScalarMemoryDecoder {
 public:
  ScalarMemoryDecoder(const Disassembler& disassembler, int generation)
      : disassembler_(disassembler), generation_(generation) {}

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't a scalar memory
  /// instruction that LLVM knows. An offset is an operand if it comes from one field, and a
  /// register and the modifier `offset` if it comes from both. The instruction has no text. Throws
  /// std::runtime_error for reserved registers and for code that ends within an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  /// total: an offset of which the text has both fields in one operand and a modifier. offset,
  /// register_offset: one field. number: the field of the data, which names no register.
  enum class Field : uint8_t { none, data, base, total, offset, register_offset, number };
  struct Part {
    Field field = Field::none;
    Operand operand;
  };
  struct Opcode {
    std::string name;
    std::vector<Part> parts;
  };
  struct Offset {
    bool is_register = false;
    uint32_t reg = 0;  // its field
    int64_t value = 0;
  };

  uint32_t number_of(uint32_t word) const;
  const Opcode* find(uint32_t number);
  std::optional<Opcode> ask(uint32_t number) const;
  Offset offset_of(std::span<const uint32_t> words) const;
  Operand register_of(uint32_t number, const Operand& shape) const;
  void read_caching(uint32_t word, Inst& inst) const;

  const Disassembler& disassembler_;
  const int generation_;
  std::map<uint32_t, std::optional<Opcode>> known_;
};

}  // namespace emu
