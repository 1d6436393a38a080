#pragma once

// The meanings of opcodes: LLVM disassembles instructions whose fields are known, which gives the
// names and operands of their opcodes. The fields of real instructions never go through LLVM.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/isa/disassembler.h"
#include "emu/isa/inst.h"

namespace emu {

/// The dwords of an instruction.
using Words = std::array<uint32_t, 4>;

/// A field of an encoding: its lowest bit, counted from the first one of the instruction, and its
/// width. The width of a field that a format lacks is 0, and so is its value.
struct Bits {
  uint8_t at = 0, width = 0;

  /// The field must lie within `words`.
  uint32_t of(std::span<const uint32_t> words) const;
  void put(Words& words, uint32_t value) const;
};

/// Returns a field's value as a number in two's complement.
int64_t signed_value(Bits bits, std::span<const uint32_t> words);

/// The instructions with which LLVM is asked about an opcode: one for each combination of values.
struct Probes {
  struct Choice {
    Bits bits;
    std::vector<uint32_t> values;
  };
  Words words{};                // the encoding, the opcode, and fields that all probes share
  std::vector<Choice> choices;  // the values of the last one change first
};

/// The first probe that LLVM knows.
struct Answer {
  Words words{};
  Inst inst;
};

std::optional<Answer> ask(const Disassembler& disassembler, const Probes& probes);
bool is_known(const Disassembler& disassembler, const Words& words);

/// The opcodes of one format or of several. `Field` names the fields that operands come from, with
/// `none` for operands that an opcode implies.
template <class Field>
class Dictionary {
 public:
  /// An operand as the assembler writes it: its field, kind and number of registers.
  struct Part {
    Field field = Field::none;
    Operand operand;  // without a field: the operand itself
    uint8_t accepts = 0;
  };
  /// What an opcode means. The operands are in the assembler's order.
  struct Opcode {
    std::string name;
    std::vector<Part> parts;
    Answer answer;  // the probe and what LLVM says about it

    bool has(Field wanted) const {
      return std::any_of(parts.begin(), parts.end(),
                         [wanted](const Part& part) { return part.field == wanted; });
    }
  };

  explicit Dictionary(const Disassembler& disassembler) : disassembler_(disassembler) {}

  /// Returns an opcode's meaning, or null if it has none. `ask` returns it, and is called once.
  template <class Ask>
  const Opcode* find(uint32_t number, const Ask& ask) {
    auto [at, is_new] = known_.try_emplace(number);
    if (is_new) at->second = ask();
    return at->second ? &*at->second : nullptr;
  }

  /// Opcodes differ in the fields that they have, and LLVM knows an instruction only if its unused
  /// fields are 0. The first values of the probes are therefore those of opcodes with most fields.
  /// `field_of` returns the field of an operand of the probe, and may change the operand.
  template <class FieldOf>
  std::optional<Opcode> ask(const Probes& probes, const FieldOf& field_of) const {
    auto answer = emu::ask(disassembler_, probes);
    if (!answer) return std::nullopt;
    return opcode_of(std::move(*answer), field_of);
  }

  /// Returns the meaning of an opcode that LLVM 19 doesn't know, as the text of a probe.
  template <class FieldOf>
  static Opcode from_text(std::string_view text, const FieldOf& field_of) {
    return opcode_of({{}, parse_instruction(text).at(0)}, field_of);
  }

 private:
  template <class FieldOf>
  static Opcode opcode_of(Answer answer, const FieldOf& field_of) {
    Opcode opcode{answer.inst.name, {}, std::move(answer)};
    for (const Operand& operand : opcode.answer.inst.operands) {
      Part& part = opcode.parts.emplace_back();
      part.operand = operand;
      part.field = field_of(opcode.answer.inst, part.operand);
    }
    return opcode;
  }

  const Disassembler& disassembler_;
  std::map<uint32_t, std::optional<Opcode>> known_;
};

}  // namespace emu
