#pragma once

// Decodes gfx9's matrix instructions and moves of accumulation registers from the fields of their
// encoding, VOP3P-MAI.

#include <map>
#include <optional>
#include <span>

#include "emu/isa/disassembler.h"
#include "emu/isa/inst.h"

namespace emu {

class MatrixDecoder {
 public:
  /// `gfx950`: whether the chip has the opcodes that gfx950 added.
  MatrixDecoder(const Disassembler& disassembler, int generation, bool gfx950)
      : disassembler_(disassembler), generation_(generation), gfx950_(gfx950) {}

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't a matrix
  /// instruction. The instruction has no text. Throws std::runtime_error for reserved values of
  /// fields and for code that ends within an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  /// A matrix instruction's name and how many registers its operands have.
  struct Shape {
    std::string name;
    uint8_t result = 0, a = 0, b = 0, c = 0;
  };

  const Shape* find(uint32_t opcode);
  std::optional<Shape> ask(uint32_t opcode) const;
  Inst decode_plain(const Shape& shape, uint32_t low, uint32_t high) const;
  void read_scales(std::span<const uint32_t> words, Inst& inst) const;

  const Disassembler& disassembler_;
  const int generation_;
  const bool gfx950_;
  std::map<uint32_t, std::optional<Shape>> known_;
};

}  // namespace emu
