#include "emu/isa/memory/scalar_memory.h"

#include "emu/isa/vector.h"

namespace emu {
namespace {

constexpr uint32_t kMask = 0xfc000000;
// gfx9: whether the offset's fields are a number and a register.
constexpr uint32_t kHasNumber = 1 << 17, kHasRegister = 1 << 14;
// The registers and the number that stand for the fields in instructions whose operands are looked
// up.
constexpr uint32_t kData = 16, kBase = 32, kRegister = 48, kNumber = 0x1230;
constexpr Bits kDataField{6, 7}, kBaseField{0, 6}, kRegisterField{57, 7};

uint32_t first_bits(int generation) { return generation <= 9 ? 0xc0000000 : 0xf4000000; }
/// The field of a register offset that means none.
uint32_t no_register(int generation) { return generation <= 10 ? 125 : 124; }

Operand number_operand(int64_t value) {
  Operand out;
  out.kind = Kind::integer;
  out.bits = static_cast<uint64_t>(value);
  return out;
}

}  // namespace

uint32_t ScalarMemoryDecoder::number_of(uint32_t word) const {
  return chip_.generation >= 12 ? field(word, 13, 6) : field(word, 18, 8);
}

CacheFields ScalarMemoryDecoder::caches_of(int generation) {
  CacheFields fields;
  if (generation >= 12) {
    fields.scope = {21, 2};
    return fields;
  }
  fields.glc = {static_cast<uint8_t>(generation == 11 ? 14 : 16), 1};
  if (generation >= 10) fields.third = {static_cast<uint8_t>(generation == 11 ? 13 : 14), 1};
  return fields;
}

const ScalarMemoryDecoder::Opcode* ScalarMemoryDecoder::find(uint32_t number) {
  return dictionary_.find(number, [&] { return ask(number); });
}

std::optional<ScalarMemoryDecoder::Opcode> ScalarMemoryDecoder::ask(uint32_t number) const {
  const auto field_of = [](const Inst& inst, const Operand& operand) {
    if (operand.kind == Kind::integer) {
      return operand.bits == kNumber ? Field::offset : Field::number;
    }
    if (operand.kind != Kind::sgpr) return Field::none;
    if (operand.reg == kRegister) return inst.has("offset") ? Field::total : Field::register_offset;
    return operand.reg == kData ? Field::data : operand.reg == kBase ? Field::base : Field::none;
  };
  struct Offsets {
    uint32_t flags, reg, number;
  };
  const Offsets both{kHasNumber | kHasRegister, kRegister, kNumber};
  const Offsets one{kHasNumber, no_register(chip_.generation), kNumber};
  for (const Offsets& offsets : {both, one, Offsets{0, 0, 0}}) {
    Probes probes;
    probes.words[0] = first_bits(chip_.generation) | number << (chip_.generation >= 12 ? 13 : 18);
    if (chip_.generation <= 9) probes.words[0] |= offsets.flags;
    probes.words[1] = offsets.number;
    kRegisterField.put(probes.words, offsets.reg);
    probes.choices = {{kBaseField, {kBase / 2, 0}}, {kDataField, {kData, 0}}};
    if (auto opcode = dictionary_.ask(probes, field_of)) return opcode;
  }
  return std::nullopt;
}

ScalarMemoryDecoder::Offset ScalarMemoryDecoder::offset_of(std::span<const uint32_t> words) const {
  Offset offset;
  offset.reg = kRegisterField.of(words);
  offset.value = signed_value({32, static_cast<uint8_t>(chip_.generation >= 12 ? 24 : 21)}, words);
  if (chip_.generation >= 10) {
    offset.is_register = offset.reg != no_register(chip_.generation);
    return offset;
  }
  offset.is_register = (words[0] & kHasRegister) != 0;
  if ((words[0] & kHasNumber) != 0) return offset;
  if (!offset.is_register) offset.reg = field(words[1], 0, 7);
  offset.is_register = true;
  offset.value = 0;
  return offset;
}

std::optional<Inst> ScalarMemoryDecoder::decode(std::span<const uint32_t> words) {
  if (words.empty() || (words[0] & kMask) != first_bits(chip_.generation)) return std::nullopt;
  const Opcode* opcode = find(number_of(words[0]));
  if (opcode == nullptr) return std::nullopt;
  need_words(words, 2);
  const Offset offset = offset_of(words);
  Operand scalar;
  scalar.kind = Kind::sgpr;
  Inst inst;
  inst.name = opcode->name;
  inst.size = 8;
  for (const auto& part : opcode->parts) {
    Operand operand = part.operand;
    if (part.field == Field::data) {
      operand = scalar_registers(chip_.generation, kDataField.of(words), part.operand);
    } else if (part.field == Field::base) {
      operand = scalar_registers(chip_.generation, 2 * kBaseField.of(words), part.operand);
    } else if (part.field == Field::number) {
      operand = number_operand(kDataField.of(words));
    } else if (part.field == Field::offset || (part.field == Field::total && !offset.is_register)) {
      operand = number_operand(offset.value);
    } else if (part.field == Field::total || part.field == Field::register_offset) {
      operand = result_register(chip_.generation, offset.reg, scalar);
      if (part.field == Field::total && offset.value != 0)
        inst.modifiers.emplace_back("offset", offset.value);
    }
    inst.operands.push_back(operand);
  }
  // Only accesses to memory have the modifiers of caches.
  if (opcode->has(Field::data) && opcode->has(Field::base)) {
    read_caching(chip_, caches_, words, inst);
  }
  return inst;
}

}  // namespace emu
