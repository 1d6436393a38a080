#include "emu/isa/memory/lds.h"

#include "emu/isa/encoding.h"
#include "emu/isa/memory/fields.h"

namespace emu {
namespace {

constexpr uint32_t kMask = 0xfc000000, kBits = 0xd8000000;
// The registers that stand for the fields in instructions whose operands are looked up.
constexpr uint32_t kAddress = 16, kData0 = 32, kData1 = 48, kResult = 64;

/// Opcodes that LLVM 19 doesn't know.
struct Added {
  int generation;
  bool gfx950;  // of gfx950 only
  uint32_t opcode;
  const char* text;
};
constexpr Added kAdded[] = {
    {12, false, 0xcd, "ds_bpermute_fi_b32 v64, v16, v32"},
    {9, true, 0xe0, "ds_read_b64_tr_b4 v[64:65], v16"},
    {9, true, 0xe1, "ds_read_b96_tr_b6 v[64:66], v16"},
    {9, true, 0xe2, "ds_read_b64_tr_b8 v[64:65], v16"},
    {9, true, 0xe3, "ds_read_b64_tr_b16 v[64:65], v16"},
};

}  // namespace

std::optional<Inst> LdsDecoder::decode(std::span<const uint32_t> words) {
  if (words.empty() || (words[0] & kMask) != kBits) return std::nullopt;
  const Opcode* opcode = find(field(words[0], op_at(), 8));
  if (opcode == nullptr) return std::nullopt;
  need_words(words, 2);
  Inst inst;
  inst.name = opcode->name;
  inst.size = 8;
  // Data and results may be in accumulation registers on chips that share them with the others.
  const bool accumulation = generation_ == 9 && field(words[0], 25, 1) != 0;
  for (const auto& part : opcode->parts) {
    Operand operand = part.operand;
    if (part.field != Field::none) {
      const unsigned at = 8 * (static_cast<unsigned>(part.field) - 1);
      operand.reg = static_cast<uint16_t>(field(words[1], at, 8));
      if (accumulation && part.field != Field::address) operand.kind = Kind::agpr;
    }
    inst.operands.push_back(operand);
  }
  const uint32_t offset = words[0] & 0xffff;
  inst.immediate = inst.first_immediate = offset;
  const Inst& probe = opcode->answer.inst;
  if (probe.has("offset0") || probe.has("offset1")) {
    if ((offset & 0xff) != 0) inst.modifiers.emplace_back("offset0", offset & 0xff);
    if (offset >> 8 != 0) inst.modifiers.emplace_back("offset1", offset >> 8);
  } else if (offset != 0) {
    inst.modifiers.emplace_back("offset", offset);
  }
  if (generation_ <= 11 && field(words[0], op_at() - 1, 1) != 0)
    inst.modifiers.emplace_back("gds", 1);
  return inst;
}

const LdsDecoder::Opcode* LdsDecoder::find(uint32_t number) {
  return dictionary_.find(number, [&] { return ask(number); });
}

std::optional<LdsDecoder::Opcode> LdsDecoder::ask(uint32_t number) const {
  const auto field_of = [](const Inst&, const Operand& operand) {
    if (operand.kind != Kind::vgpr) return Field::none;
    return operand.reg == kAddress ? Field::address
           : operand.reg == kData0 ? Field::data0
           : operand.reg == kData1 ? Field::data1
                                   : Field::result;
  };
  for (const Added& row : kAdded) {
    if (row.opcode == number && row.generation == generation_ && (!row.gfx950 || gfx950_)) {
      return Dictionary<Field>::from_text(row.text, field_of);
    }
  }
  constexpr uint32_t kBothOffsets = 0x0201;
  Probes probes;
  probes.words[0] = kBits | number << op_at() | kBothOffsets;
  probes.choices = {{{32, 8}, {kAddress, 0}},
                    {{40, 8}, {kData0, 0}},
                    {{48, 8}, {kData1, 0}},
                    {{56, 8}, {kResult, 0}}};
  return dictionary_.ask(probes, field_of);
}

}  // namespace emu
