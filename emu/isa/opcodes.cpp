#include "emu/isa/opcodes.h"

#include <algorithm>
#include <cstring>

namespace emu {
namespace {

constexpr uint32_t kConstant = 0x12345678;

Field field_of(const Operand& operand) {
  if (operand.kind == Kind::integer && operand.bits == kConstant) return Field::constant;
  if (operand.kind != Kind::vgpr && operand.kind != Kind::agpr && operand.kind != Kind::sgpr) {
    return Field::none;
  }
  switch (operand.reg) {
    case kVdst:
      return Field::vdst;
    case kSrc0:
      return Field::src0;
    case kSrc1:
      return Field::src1;
    case kSrc2:
      return Field::src2;
    case 0:
      return operand.kind == Kind::sgpr ? Field::sdst : Field::none;
    default:
      return Field::none;
  }
}

}  // namespace

Opcode opcode_of(const Inst& inst) {
  Opcode opcode;
  opcode.name = inst.name;
  for (const Operand& operand : inst.operands) {
    OperandShape& shape = opcode.operands.emplace_back();
    shape.field = field_of(operand);
    shape.operand.kind = operand.kind;
    shape.operand.dwords = operand.dwords;
    if (shape.field == Field::none) shape.operand = operand;
  }
  return opcode;
}

int Opcode::sources() const {
  return static_cast<int>(std::count_if(operands.begin(), operands.end(), [](const auto& shape) {
    return shape.field == Field::src0 || shape.field == Field::src1 || shape.field == Field::src2;
  }));
}

bool Opcode::has(Field wanted) const {
  return std::any_of(operands.begin(), operands.end(),
                     [wanted](const auto& shape) { return shape.field == wanted; });
}

const Opcode* Opcodes::find(const Encoding& encoding, uint32_t opcode) {
  auto [at, is_new] = known_.try_emplace({encoding.layout, opcode});
  if (is_new) at->second = ask(encoding, opcode);
  if (is_new && !at->second) {
    at->second = added_opcode(generation_, gfx950_, encoding.layout, opcode);
  }
  return at->second ? &*at->second : nullptr;
}

std::optional<Disassembly> Opcodes::read(Words words) const {
  uint8_t bytes[sizeof words];
  std::memcpy(bytes, words.data(), sizeof bytes);
  return disassembler_.read(bytes, 0);
}

std::optional<Opcode> Opcodes::ask_with(Words words) const {
  const auto found = read(words);
  if (!found) return std::nullopt;
  const Inst inst = parse_instruction(found->text).at(0);
  // Matrix instructions of gfx942 that use opcodes of VOP3P have other fields. Interpolation names
  // attributes, whose fields aren't those of sources.
  if (inst.name.starts_with("v_mfma") || inst.name.starts_with("v_smfmac")) return std::nullopt;
  for (const Operand& operand : inst.operands) {
    if (operand.kind == Kind::special) return std::nullopt;
  }
  return opcode_of(inst);
}

/// Finds out which kinds of sources LLVM accepts. `words` is an instruction of the opcode.
void Opcodes::ask_sources(const Encoding& encoding, Words words, Opcode& opcode) const {
  constexpr std::pair<uint32_t, Accepts> kChoices[] = {{129, kConstantSource},
                                                       {kLiteral, kLiteralSource}};
  const bool is_long =
      encoding.layout == FieldLayout::vop3 || encoding.layout == FieldLayout::vop3p;
  for (OperandShape& shape : opcode.operands) {
    const int i = static_cast<int>(shape.field) - static_cast<int>(Field::src0);
    if (i < 0 || i > 2 || (i > 0 && !is_long)) continue;  // VSRC1 names vector registers only
    const int at = 9 * i;
    const uint32_t registers = std::array{kSrc0, kSrc1, kSrc2}[static_cast<size_t>(i)];
    const auto accepts = [&](uint32_t bits) {
      Words asked = words;
      uint32_t& word = asked[is_long ? 1 : 0];
      word = (word & ~(0x1ffu << at)) | bits << at;
      return read(asked).has_value();
    };
    shape.accepts = accepts(kFirstVgpr | registers) ? kVectorSource : 0;
    if (accepts(registers)) shape.accepts |= kScalarSource;
    for (const auto& [bits, kind] : kChoices) {
      if (accepts(bits)) shape.accepts |= kind;
    }
  }
}

std::optional<Opcode> Opcodes::ask(const Encoding& encoding, uint32_t opcode) const {
  if (encoding.layout == FieldLayout::vinterp) return std::nullopt;  // see added.cpp
  if (encoding.layout == FieldLayout::vop3 || encoding.layout == FieldLayout::vop3p) {
    return ask_long(encoding, opcode);
  }
  const uint32_t first = encoding.bits | opcode << encoding.op_at;
  Words words = {first | kFirstVgpr | kSrc0};
  if (encoding.layout != FieldLayout::vopc) words[0] |= kVdst << 17;
  if (encoding.layout != FieldLayout::vop1) words[0] |= kSrc1 << 9;
  if (encoding.layout == FieldLayout::vop2) words[1] = kConstant;
  auto found = ask_with(words);
  if (found) ask_sources(encoding, words, *found);
  // v_nop has no operands.
  return found || encoding.layout != FieldLayout::vop1 ? found : ask_with({first});
}

/// Opcodes differ in the sources that they have, and in which of them may be vector registers. LLVM
/// knows an instruction only if its unused fields are 0.
std::optional<Opcode> Opcodes::ask_long(const Encoding& encoding, uint32_t number) const {
  constexpr uint32_t kExecLow = 126;
  const bool packed = encoding.layout == FieldLayout::vop3p;
  const uint32_t ends = packed ? 3u << 27 : 0;    // OP_SEL_HI of sources 0 and 1
  const uint32_t middle = packed ? 1u << 14 : 0;  // and of source 2
  const auto choices = [](uint32_t reg) { return std::array{kFirstVgpr | reg, reg, 0u}; };
  for (const uint32_t vdst : {kVdst, kExecLow, 0u}) {
    const uint32_t first = encoding.bits | number << encoding.op_at | middle | vdst;
    for (const uint32_t src0 : choices(kSrc0)) {
      for (const uint32_t src1 : choices(kSrc1)) {
        for (const uint32_t src2 : choices(kSrc2)) {
          const uint32_t second = ends | src2 << 18 | src1 << 9 | src0;
          auto found = ask_with({first, second});
          if (!found) continue;
          // Before gfx11, OPSEL applies to the opcodes with which the assembler writes it.
          constexpr uint32_t kOpSel = 1u << 11;
          const auto with_op_sel = read({first | kOpSel, second});
          found->selects_halves =
              generation_ >= 11 ||
              (with_op_sel && with_op_sel->text.find("op_sel") != std::string::npos);
          ask_sources(encoding, {first, second}, *found);
          return found;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace emu
