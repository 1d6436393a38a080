#pragma once

// Decodes LDS instructions from the fields of their encoding, DS.

#include "emu/isa/dictionary.h"

namespace emu {

/// Fields that an opcode doesn't use are ignored, as the hardware does.
class LdsDecoder {
 public:
  /// `gfx950`: whether the chip has the opcodes that gfx950 added.
  LdsDecoder(const Disassembler& disassembler, int generation, bool gfx950)
      : generation_(generation), gfx950_(gfx950), dictionary_(disassembler) {}

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't an LDS
  /// instruction. The instruction has no text. Throws std::runtime_error for code that ends within
  /// an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  enum class Field : uint8_t { none, address, data0, data1, result };
  using Opcode = Dictionary<Field>::Opcode;

  const Opcode* find(uint32_t number);
  std::optional<Opcode> ask(uint32_t number) const;
  unsigned op_at() const { return generation_ <= 9 ? 17 : 18; }

  const int generation_;
  const bool gfx950_;
  Dictionary<Field> dictionary_;
};

}  // namespace emu
