#include "emu/isa/memory/flat.h"

#include <stdexcept>

namespace emu {
namespace {

// The registers that stand for the fields in instructions whose operands are looked up.
constexpr uint32_t kAddress = 16, kData = 32, kBase = 48, kResult = 64;

// Values of the field of the scalar base that mean none.
constexpr uint32_t kNull = 124, kOldNull = 125, kExecHigh = 127;

/// Opcodes of gfx950 that LLVM 19 doesn't know.
struct Added {
  uint32_t opcode;
  const char* text;
};
constexpr Added kGfx950[] = {{0x7d, "global_load_lds_dwordx4 v16, s[48:49]"},
                             {0x7e, "global_load_lds_dwordx3 v16, s[48:49]"}};

}  // namespace

FlatDecoder::FlatDecoder(const Disassembler& disassembler, const Chip& chip)
    : chip_(chip), layout_(layout_of(chip)), dictionary_(disassembler) {}

FlatDecoder::Layout FlatDecoder::layout_of(const Chip& chip) {
  Layout l{};
  l.mask = 0xfc000000;
  l.bits = chip.generation >= 12 ? 0xec000000 : 0xdc000000;
  if (chip.generation >= 12) {
    l.dwords = 3;
    l.base = {0, 7}, l.opcode = {14, 8}, l.segment = {24, 2}, l.result = {32, 8};
    l.has_address = {49, 1}, l.data = {55, 8}, l.address = {64, 8}, l.offset = {72, 24};
    l.caches.scope = {50, 2}, l.caches.hint = {52, 3};
    return l;
  }
  l.dwords = 2;
  l.opcode = {18, 7}, l.segment = {14, 2}, l.offset = {0, 13};
  l.address = {32, 8}, l.data = {40, 8}, l.base = {48, 7}, l.result = {56, 8};
  if (chip.generation == 11) {
    l.segment = {16, 2}, l.has_address = {55, 1};
    l.caches.third = {13, 1}, l.caches.glc = {14, 1}, l.caches.slc = {15, 1};
    return l;
  }
  l.caches.glc = {16, 1}, l.caches.slc = {17, 1};
  if (chip.generation == 10) {
    l.offset = {0, 12}, l.lds = {13, 1}, l.caches.third = {12, 1};
    return l;
  }
  l.accumulation = {55, 1}, l.caches.third = {25, 1};
  (chip.gfx940 ? l.has_address : l.lds) = {13, 1};
  return l;
}

const FlatDecoder::Opcode* FlatDecoder::find(uint32_t segment, uint32_t number, bool lds) {
  const uint32_t key = segment << 16 | number << 1 | uint32_t{lds};
  return dictionary_.find(key, [&] { return ask(segment, number, lds); });
}

std::optional<FlatDecoder::Opcode> FlatDecoder::ask(uint32_t segment, uint32_t number,
                                                    bool lds) const {
  const auto field_of = [segment](const Inst&, const Operand& operand) {
    if (operand.kind == Kind::none) return segment == kScratch ? Field::address : Field::base;
    if (operand.kind == Kind::sgpr) return Field::base;
    return operand.reg == kAddress  ? Field::address
           : operand.reg == kData   ? Field::data
           : operand.reg == kResult ? Field::result
                                    : Field::none;
  };
  for (const Added& row : kGfx950) {
    if (chip_.gfx950 && segment == kGlobal && row.opcode == number) {
      return Dictionary<Field>::from_text(row.text, field_of);
    }
  }
  Probes probes;
  probes.words[0] = layout_.bits;
  layout_.opcode.put(probes.words, number);
  layout_.segment.put(probes.words, segment);
  layout_.lds.put(probes.words, lds);
  // Atomic operations have a result if it is asked for.
  probes.choices = {{return_field(layout_.caches), {1, 0}},
                    {layout_.base, {kBase, kNull, kOldNull, kExecHigh, 0}},
                    {layout_.result, {kResult, 0}},
                    {layout_.data, {kData, 0}},
                    {layout_.address, {kAddress, 0}}};
  auto opcode = dictionary_.ask(probes, field_of);
  // Until gfx940, the loads that write to LDS are forms of the others.
  if (opcode && lds) opcode->name.insert(opcode->name.find("_load_") + 5, "_lds");
  return opcode;
}

FlatDecoder::Address FlatDecoder::address_of(uint32_t segment,
                                             std::span<const uint32_t> words) const {
  const uint32_t base = layout_.base.of(words);
  Address address;
  if (segment == kFlat) return {false, 2};
  if (chip_.generation == 9) address.base = base != kExecHigh;
  if (chip_.generation == 10) address.base = base != kExecHigh && base != kOldNull;
  if (chip_.generation >= 11) address.base = base != kNull;
  if (segment == kGlobal) {
    address.registers = address.base ? 1 : 2;
  } else if (layout_.has_address.width != 0) {
    address.registers = layout_.has_address.of(words);
  } else {  // the field of the base says whether the instruction has a base, a register or neither
    address.registers = base == (chip_.generation == 9 ? kExecHigh : kOldNull) ? 1 : 0;
  }
  return address;
}

/// The base of global memory is a pair of registers, that of scratch is one register.
Operand FlatDecoder::base_of(std::span<const uint32_t> words, const Operand& shape) const {
  const uint32_t number = layout_.base.of(words);
  const bool old = chip_.generation <= 10, pair = shape.dwords > 1;
  // gfx9 has no null register, and M0 isn't a pair.
  if ((old && number == kOldNull) || (old && pair && number == kNull) || number == kExecHigh) {
    throw std::runtime_error("reserved operand");
  }
  return scalar_registers(chip_.generation, number, shape);
}

int64_t FlatDecoder::offset_of(uint32_t segment, std::span<const uint32_t> words) const {
  if (segment != kFlat || chip_.generation >= 12) return signed_value(layout_.offset, words);
  // Offsets of flat memory are positive; the highest bit is ignored.
  const Bits bits{layout_.offset.at, static_cast<uint8_t>(layout_.offset.width - 1)};
  return bits.of(words);
}

std::optional<Inst> FlatDecoder::decode(std::span<const uint32_t> words) {
  if (words.empty() || (words[0] & layout_.mask) != layout_.bits) return std::nullopt;
  const uint32_t segment = layout_.segment.of(words);
  if (segment == kReserved) return std::nullopt;
  const bool lds = layout_.lds.of(words) != 0;
  const Opcode* opcode = find(segment, layout_.opcode.of(words), lds);
  if (opcode == nullptr) return std::nullopt;
  need_words(words, layout_.dwords);
  Inst inst;
  inst.name = opcode->name;
  inst.size = static_cast<uint8_t>(4 * layout_.dwords);
  const bool accumulation = layout_.accumulation.of(words) != 0;
  const bool returns = !is_atomic(inst.name) || return_field(layout_.caches).of(words) != 0;
  const Address address = address_of(segment, words);
  for (const auto& part : opcode->parts) {
    Operand operand = part.operand;
    if (part.field == Field::result) {
      if (!returns) continue;
      operand = vector_registers(layout_.result.of(words), operand.dwords, accumulation);
    } else if (part.field == Field::data) {
      operand = vector_registers(layout_.data.of(words), operand.dwords, accumulation);
    } else if (part.field == Field::address) {
      operand = address.registers == 0
                    ? Operand()
                    : vector_registers(layout_.address.of(words), address.registers);
    } else if (part.field == Field::base) {
      operand = address.base ? base_of(words, operand) : Operand();
    }
    inst.operands.push_back(operand);
  }
  const int64_t offset = opcode->parts.empty() ? 0 : offset_of(segment, words);
  if (offset != 0) inst.modifiers.emplace_back("offset", offset);
  read_caching(chip_, layout_.caches, words, inst);
  return inst;
}

}  // namespace emu
