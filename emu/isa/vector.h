#pragma once

// Decodes vector ALU instructions from the fields of their encodings.

#include "emu/isa/opcodes.h"

namespace emu {

/// Decodes instructions of one architecture. Fields that an opcode doesn't use are ignored, as the
/// hardware does.
class VectorDecoder {
 public:
  /// `gfx950`: whether the chip has the opcodes that gfx950 added.
  VectorDecoder(const Disassembler& disassembler, int generation, bool wave64, bool gfx950)
      : opcodes_(disassembler, generation, gfx950), generation_(generation), wave64_(wave64) {}

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't a vector ALU
  /// instruction whose fields this class knows, and two instructions for a dual one. The
  /// instructions have no text. Throws std::runtime_error for reserved values of fields and for
  /// code that ends within an instruction.
  std::vector<Inst> decode(std::span<const uint32_t> words);

 private:
  Inst decode_short(const Opcode& opcode, FieldLayout layout, std::span<const uint32_t> words);
  Inst decode_long(const Opcode& opcode, FieldLayout layout, std::span<const uint32_t> words);
  std::vector<Inst> decode_dual(std::span<const uint32_t> words) const;

  Opcodes opcodes_;
  const int generation_;
  const bool wave64_;
};

/// Returns the operand that the 9 bits of a source field name. `shape` says how many registers it
/// has; `literal` is the dword that follows the instruction.
Operand source_operand(int generation, uint32_t bits, const Operand& shape, uint32_t literal);

/// Throws std::runtime_error for sources that an opcode can't have (`accepts`: see Accepts), and
/// for literals that no dword follows.
void check_source(uint32_t bits, unsigned accepts, bool has_literal);

/// Returns the scalar register that a result field names. Throws std::runtime_error for odd numbers
/// of pairs, and for the values with which a source field would name a constant.
Operand result_register(int generation, uint32_t bits, const Operand& shape);

/// Adds the modifiers of the dword that follows an instruction with DPP (`src0` says of which kind)
/// to the instruction. Throws std::runtime_error for controls that the generation reserves.
void read_dpp(int generation, uint32_t src0, uint32_t dword, Inst& inst);

/// Adds the modifiers of an SDWA dword. `first`: the index of source 0 among the operands.
void read_sdwa(int generation, uint32_t dword, bool compares, size_t first, Inst& inst);

/// Returns whether the result (-1) or source `i` of an opcode is 16 bits wide, so that instructions
/// of VOP1, VOP2 and VOPC can name the halves of registers on gfx11 and later.
bool is_half(std::string_view name, int i);

}  // namespace emu
