#pragma once

// Decodes scalar memory instructions from the fields of their encoding, SMEM.

#include "emu/isa/memory/fields.h"

namespace emu {

/// Decodes instructions of one architecture. Fields that an opcode doesn't use are ignored, as the
/// hardware does.
class ScalarMemoryDecoder {
 public:
  ScalarMemoryDecoder(const Disassembler& disassembler, int generation)
      : chip_{generation}, caches_(caches_of(generation)), dictionary_(disassembler) {}

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't a scalar memory
  /// instruction that LLVM knows. An offset is an operand if it comes from one field, and a
  /// register and the modifier `offset` if it comes from both. The instruction has no text. Throws
  /// std::runtime_error for reserved registers and for code that ends within an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  /// total: an offset of which the text has both fields in one operand and a modifier. offset,
  /// register_offset: one field. number: the field of the data, which names no register.
  enum class Field : uint8_t { none, data, base, total, offset, register_offset, number };
  using Opcode = Dictionary<Field>::Opcode;
  struct Offset {
    bool is_register = false;
    uint32_t reg = 0;  // its field
    int64_t value = 0;
  };

  static CacheFields caches_of(int generation);
  uint32_t number_of(uint32_t word) const;
  const Opcode* find(uint32_t number);
  std::optional<Opcode> ask(uint32_t number) const;
  Offset offset_of(std::span<const uint32_t> words) const;

  const Chip chip_;  // only its generation: gfx940 keeps the older names of the modifiers
  const CacheFields caches_;
  Dictionary<Field> dictionary_;
};

}  // namespace emu
