#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "emu/isa/disassembler.h"
#include "emu/isa/encoding.h"
#include "emu/isa/inst.h"

namespace emu {

/// The field of an encoding that an operand comes from. Operands like VCC have none.
enum class Field : uint8_t { none, vdst, sdst, src0, src1, src2, constant };

/// What a source may be. Each kind is one bit.
enum Accepts : uint8_t {
  kVectorSource = 1,
  kScalarSource = 2,
  kConstantSource = 4,
  kLiteralSource = 8
};

/// An operand as the assembler writes it: its field, kind and number of registers.
struct OperandShape {
  Field field = Field::none;
  Operand operand;  // without a field: the operand itself
  uint8_t accepts = kVectorSource;
};

/// What an opcode means: its name and its operands in the assembler's order.
struct Opcode {
  std::string name;
  std::vector<OperandShape> operands;  // destinations first
  bool selects_halves = false;         // VOP3: the field OPSEL applies

  int sources() const;
  bool has(Field field) const;
};

/// The registers that stand for the fields in instructions whose operands are looked up. They are
/// multiples of 16, because registers of wide operands must be aligned. s0 is the scalar result of
/// VOP3, whose field is 0 in these instructions.
inline constexpr uint32_t kVdst = 16, kSrc0 = 32, kSrc1 = 48, kSrc2 = 64;

/// Returns the opcode of an instruction whose operands are these registers.
Opcode opcode_of(const Inst& inst);

/// Returns an opcode that LLVM 19 doesn't know.
std::optional<Opcode> added_opcode(int generation, bool gfx950, FieldLayout layout,
                                   uint32_t number);

/// The vector ALU opcodes of one architecture. Names and numbers of operands come from LLVM: it
/// disassembles an instruction of each opcode whose fields are known, when the opcode is first
/// asked for. The fields of real instructions never go through LLVM.
class Opcodes {
 public:
  Opcodes(const Disassembler& disassembler, int generation, bool gfx950)
      : disassembler_(disassembler), generation_(generation), gfx950_(gfx950) {}

  /// Returns null if neither LLVM nor added.cpp knows the opcode.
  const Opcode* find(const Encoding& encoding, uint32_t opcode);

 private:
  using Words = std::array<uint32_t, 3>;

  std::optional<Disassembly> read(Words words) const;
  std::optional<Opcode> ask(const Encoding& encoding, uint32_t opcode) const;
  std::optional<Opcode> ask_long(const Encoding& encoding, uint32_t opcode) const;
  std::optional<Opcode> ask_with(Words words) const;
  void ask_sources(const Encoding& encoding, Words words, Opcode& opcode) const;

  const Disassembler& disassembler_;
  const int generation_;
  const bool gfx950_;
  std::map<std::pair<FieldLayout, uint32_t>, std::optional<Opcode>> known_;
};

}  // namespace emu
