#include "emu/isa/scalar.h"

#include <algorithm>
#include <stdexcept>

#include "emu/isa/vector.h"

namespace emu {

/// A format. All generations have the same ones; `fields` says which fields its opcodes may have.
struct ScalarDecoder::Layout {
  enum : uint8_t { kResult = 1, kSource0 = 2, kSource1 = 4, kImmediate = 8 };
  uint32_t mask, bits;
  uint8_t op_at, op_bits, fields;
};

namespace {

// The registers that stand for the fields in instructions whose operands are looked up. They are
// multiples of 16, because wide operands must be aligned.
constexpr uint32_t kResult = 16, kSource0 = 32, kSource1 = 48;
constexpr uint32_t kConstant = 0x12345678;
constexpr Bits kResultField{16, 7}, kSource0Field{0, 8}, kSource1Field{8, 8},
    kImmediateField{0, 16};

Operand number_operand(uint32_t bits, bool literal = false) {
  Operand out;
  out.kind = Kind::integer;
  out.literal = literal;
  out.bits = bits;
  return out;
}

}  // namespace

const ScalarDecoder::Layout* ScalarDecoder::layout_of(uint32_t word) {
  // The first matching row counts: the other formats use opcodes of SOPK, and SOPK uses those of
  // SOP2.
  static constexpr Layout kLayouts[] = {
      {0xff800000, 0xbf800000, 16, 7, Layout::kImmediate},                    // SOPP
      {0xff800000, 0xbf000000, 16, 7, Layout::kSource0 | Layout::kSource1},   // SOPC
      {0xff800000, 0xbe800000, 8, 8, Layout::kResult | Layout::kSource0},     // SOP1
      {0xf0000000, 0xb0000000, 23, 5, Layout::kResult | Layout::kImmediate},  // SOPK
      {0xc0000000, 0x80000000, 23, 7,
       Layout::kResult | Layout::kSource0 | Layout::kSource1},  // SOP2
  };
  for (const Layout& layout : kLayouts) {
    if ((word & layout.mask) == layout.bits) return &layout;
  }
  return nullptr;
}

ScalarDecoder::Field ScalarDecoder::field_of(const Layout& layout, const Operand& operand) {
  const bool is_register = operand.kind == Kind::sgpr;
  if (operand.kind == Kind::integer && operand.bits == kConstant) return Field::literal;
  if (is_register && operand.reg == kResult) return Field::result;
  if (is_register && operand.reg == kSource0) return Field::source0;
  if (is_register && operand.reg == kSource1) return Field::source1;
  // A barrier: all of them have numbers, or M0.
  if (operand.kind == Kind::integer && operand.bits == ~uint64_t{0}) return Field::source0;
  if (operand.kind != Kind::integer && operand.kind != Kind::special) return Field::none;
  return (layout.fields & Layout::kImmediate) != 0 ? Field::immediate
         : (layout.fields & Layout::kSource1) != 0 ? Field::number1
                                                   : Field::number0;
}

std::optional<ScalarDecoder::Opcode> ScalarDecoder::ask(const Layout& layout,
                                                        uint32_t number) const {
  constexpr uint32_t kNumber = 0x1234, kAll = 193;  // kAll: the constant -1
  Probes probes;
  probes.words = {layout.bits | number << layout.op_at, kConstant};
  const auto choose = [&](uint8_t has, Bits bits, std::vector<uint32_t> values) {
    if ((layout.fields & has) != 0) probes.choices.push_back({bits, std::move(values)});
  };
  choose(Layout::kResult, kResultField, {kResult, 0});
  choose(Layout::kSource0, kSource0Field, {kSource0, kAll, 1, 0});
  choose(Layout::kSource1, kSource1Field, {kSource1, 1, 0});
  choose(Layout::kImmediate, kImmediateField, {kNumber, 1, 0});
  auto opcode = dictionary_.ask(
      probes, [&layout](const Inst&, const Operand& operand) { return field_of(layout, operand); });
  if (opcode) ask_sources(*opcode);
  return opcode;
}

/// Finds out which kinds of sources LLVM accepts.
void ScalarDecoder::ask_sources(Opcode& opcode) const {
  for (Part& part : opcode.parts) {
    if (part.field != Field::source0 && part.field != Field::source1) continue;
    const Bits bits = part.field == Field::source1 ? kSource1Field : kSource0Field;
    const auto accepts = [&](uint32_t value) {
      Words words = opcode.answer.words;
      bits.put(words, value);
      return is_known(disassembler_, words);
    };
    part.accepts = kScalarSource;
    if (accepts(129)) part.accepts |= kConstantSource;
    if (accepts(kLiteral)) part.accepts |= kLiteralSource;
  }
}

const ScalarDecoder::Opcode* ScalarDecoder::find(const Layout& layout, uint32_t number) {
  // No two formats have the same bits, whose lower half is 0.
  return dictionary_.find(layout.bits | number, [&] { return ask(layout, number); });
}

Operand ScalarDecoder::operand_of(const Part& part, uint32_t word, uint32_t next,
                                  Inst& inst) const {
  const auto numbered = [&](uint32_t bits) {
    inst.immediate = inst.first_immediate = bits;
    return number_operand(bits);
  };
  switch (part.field) {
    case Field::result:
      return result_register(generation_, field(word, kResultField.at, 7), part.operand);
    case Field::source0:
    case Field::source1: {
      const uint32_t bits = field(word, part.field == Field::source1 ? kSource1Field.at : 0, 8);
      check_source(bits, part.accepts, true);
      Operand operand = source_operand(generation_, bits, part.operand, next);
      if (operand.name == "reserved") throw std::runtime_error("reserved operand");
      return operand;
    }
    case Field::immediate:
      return number_operand(word & 0xffff);
    case Field::number0:
      return numbered(field(word, 0, 8));
    case Field::number1:
      return numbered(field(word, kSource1Field.at, 8));
    case Field::literal:
      return number_operand(next, true);
    case Field::none:
      break;
  }
  return part.operand;
}

std::optional<Inst> ScalarDecoder::decode(std::span<const uint32_t> words) {
  const Layout* const layout = words.empty() ? nullptr : layout_of(words[0]);
  if (layout == nullptr) return std::nullopt;
  const uint32_t word = words[0];
  const Opcode* opcode = find(*layout, field(word, layout->op_at, layout->op_bits));
  if (opcode == nullptr) return std::nullopt;
  const bool literal = std::any_of(opcode->parts.begin(), opcode->parts.end(), [&](const Part& p) {
    return p.field == Field::literal ||
           (p.field == Field::source0 && field(word, 0, 8) == kLiteral) ||
           (p.field == Field::source1 && field(word, kSource1Field.at, 8) == kLiteral);
  });
  if (literal && words.size() < 2) throw std::runtime_error("the code ends within an instruction");
  Inst inst;
  inst.name = opcode->name;
  inst.size = literal ? 8 : 4;
  if ((layout->fields & Layout::kImmediate) != 0) {
    inst.immediate = inst.first_immediate = word & 0xffff;
  }
  for (const Part& part : opcode->parts) {
    inst.operands.push_back(operand_of(part, word, literal ? words[1] : 0, inst));
  }
  return inst;
}

}  // namespace emu
