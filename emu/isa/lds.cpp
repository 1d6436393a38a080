#include "emu/isa/lds.h"

#include <cstring>
#include <stdexcept>

#include "emu/isa/encoding.h"

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

LdsDecoder::Opcode LdsDecoder::opcode_of(const Inst& inst) {
  Opcode opcode;
  opcode.name = inst.name;
  for (const Operand& operand : inst.operands) {
    Part& part = opcode.parts.emplace_back();
    part.operand = operand;
    if (operand.kind != Kind::vgpr) continue;
    part.field = operand.reg == kAddress ? Field::address
                 : operand.reg == kData0 ? Field::data0
                 : operand.reg == kData1 ? Field::data1
                                         : Field::result;
  }
  opcode.two_offsets = inst.has("offset0") || inst.has("offset1");
  return opcode;
}

std::optional<Inst> LdsDecoder::decode(std::span<const uint32_t> words) {
  if (words.empty() || (words[0] & kMask) != kBits) return std::nullopt;
  const Opcode* opcode = find(field(words[0], op_at(), 8));
  if (opcode == nullptr) return std::nullopt;
  if (words.size() < 2) throw std::runtime_error("the code ends within an instruction");
  Inst inst;
  inst.name = opcode->name;
  inst.size = 8;
  // Data and results may be in accumulation registers on chips that share them with the others.
  const bool accumulation = generation_ == 9 && field(words[0], 25, 1) != 0;
  for (const Part& part : opcode->parts) {
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
  if (opcode->two_offsets) {
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
  auto [at, is_new] = known_.try_emplace(number);
  if (is_new) at->second = ask(number);
  return at->second ? &*at->second : nullptr;
}

/// Opcodes differ in the fields that they have. LLVM knows an instruction only if its unused fields
/// are 0, so the combination with the most fields is the opcode's.
std::optional<LdsDecoder::Opcode> LdsDecoder::ask(uint32_t number) const {
  for (const Added& row : kAdded) {
    if (row.opcode == number && row.generation == generation_ && (!row.gfx950 || gfx950_)) {
      return opcode_of(parse_instruction(row.text).at(0));
    }
  }
  for (int fields = 15; fields >= 0; --fields) {
    const uint32_t words[] = {kBits | number << op_at() | 0x0201,  // both offsets
                              (fields & 8 ? kAddress : 0) | (fields & 4 ? kData0 << 8 : 0) |
                                  (fields & 2 ? kData1 << 16 : 0) |
                                  (fields & 1 ? kResult << 24 : 0)};
    uint8_t bytes[sizeof words];
    std::memcpy(bytes, words, sizeof words);
    const auto found = disassembler_.read(bytes, 0);
    if (!found) continue;
    return opcode_of(parse_instruction(found->text).at(0));
  }
  return std::nullopt;
}

}  // namespace emu
