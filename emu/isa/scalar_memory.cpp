#include "emu/isa/scalar_memory.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "emu/isa/vector.h"

namespace emu {
namespace {

constexpr uint32_t kMask = 0xfc000000;
// gfx9: whether the offset's fields are a number and a register.
constexpr uint32_t kHasNumber = 1 << 17, kHasRegister = 1 << 14;
// The registers and the number that stand for the fields in instructions whose operands are looked
// up.
constexpr uint32_t kData = 16, kBase = 32, kRegister = 48, kNumber = 0x1230;
constexpr unsigned kDataAt = 6, kRegisterAt = 25;

uint32_t first_bits(int generation) { return generation <= 9 ? 0xc0000000 : 0xf4000000; }
/// The field of a register offset that means none.
uint32_t no_register(int generation) { return generation <= 10 ? 125 : 124; }

int64_t sign_extended(uint32_t bits, unsigned count) {
  const auto top = int64_t{1} << (count - 1);
  return (int64_t{bits} ^ top) - top;
}

Operand number_operand(int64_t value) {
  Operand out;
  out.kind = Kind::integer;
  out.bits = static_cast<uint64_t>(value);
  return out;
}

}  // namespace

uint32_t ScalarMemoryDecoder::number_of(uint32_t word) const {
  return generation_ >= 12 ? field(word, 13, 6) : field(word, 18, 8);
}

/// Opcodes differ in the fields that they have. LLVM knows an instruction only if its unused fields
/// are 0, so the combination with the most fields is the opcode's.
std::optional<ScalarMemoryDecoder::Opcode> ScalarMemoryDecoder::ask(uint32_t number) const {
  const uint32_t opcode = first_bits(generation_) | number << (generation_ >= 12 ? 13 : 18);
  struct Offsets {
    uint32_t flags, bits;
  };
  const Offsets both{kHasNumber | kHasRegister, kRegister << kRegisterAt | kNumber};
  const Offsets one{kHasNumber, no_register(generation_) << kRegisterAt | kNumber};
  for (const Offsets& offsets : {both, one, Offsets{0, 0}}) {
    for (const uint32_t base : {kBase / 2, 0u}) {
      for (const uint32_t data : {kData << kDataAt, 0u}) {
        const uint32_t flags = generation_ <= 9 ? offsets.flags : 0;
        const uint32_t words[] = {opcode | flags | data | base, offsets.bits};
        uint8_t bytes[sizeof words];
        std::memcpy(bytes, words, sizeof words);
        const auto found = disassembler_.read(bytes, 0);
        if (!found) continue;
        const Inst inst = parse_instruction(found->text).at(0);
        Opcode known{inst.name, {}};
        for (const Operand& operand : inst.operands) {
          const bool is_register = operand.kind == Kind::sgpr;
          Field of = Field::none;
          if (is_register && operand.reg == kData) of = Field::data;
          if (is_register && operand.reg == kBase) of = Field::base;
          if (is_register && operand.reg == kRegister) {
            of = inst.has("offset") ? Field::total : Field::register_offset;
          }
          if (operand.kind == Kind::integer)
            of = operand.bits == kNumber ? Field::offset : Field::number;
          known.parts.push_back({of, operand});
        }
        return known;
      }
    }
  }
  return std::nullopt;
}

const ScalarMemoryDecoder::Opcode* ScalarMemoryDecoder::find(uint32_t number) {
  auto [at, is_new] = known_.try_emplace(number);
  if (is_new) at->second = ask(number);
  return at->second ? &*at->second : nullptr;
}

ScalarMemoryDecoder::Offset ScalarMemoryDecoder::offset_of(std::span<const uint32_t> words) const {
  Offset offset;
  offset.reg = field(words[1], kRegisterAt, 7);
  const unsigned bits = generation_ >= 12 ? 24 : 21;
  offset.value = sign_extended(field(words[1], 0, bits), bits);
  if (generation_ >= 10) {
    offset.is_register = offset.reg != no_register(generation_);
    return offset;
  }
  offset.is_register = (words[0] & kHasRegister) != 0;
  if ((words[0] & kHasNumber) != 0) return offset;
  if (!offset.is_register) offset.reg = field(words[1], 0, 7);
  offset.is_register = true;
  offset.value = 0;
  return offset;
}

/// Returns consecutive registers. Throws std::runtime_error if they aren't aligned, or reach beyond
/// the general registers or the trap handler's.
Operand ScalarMemoryDecoder::register_of(uint32_t number, const Operand& shape) const {
  const uint32_t general = generation_ <= 9 ? 102 : 106, end = number + shape.dwords;
  const bool apart =
      shape.dwords > 2 && ((number < general && end > general) ||
                           (number >= general && number < 108) || (number >= 108 && end > 124));
  const bool misaligned = shape.dwords > 2 && number % 4 != 0;
  if (apart || misaligned) throw std::runtime_error("reserved operand");
  return result_register(generation_, number, shape);
}

/// The modifiers of caches, which only accesses to memory have. The temporal hints of gfx12 change
/// nothing.
void ScalarMemoryDecoder::read_caching(uint32_t word, Inst& inst) const {
  if (generation_ >= 12) {
    constexpr const char* kScopes[] = {"SCOPE_CU", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS"};
    const uint32_t scope = field(word, 21, 2);
    if (scope != 0) inst.words.emplace_back("scope", kScopes[scope]);
    return;
  }
  if (field(word, generation_ == 11 ? 14 : 16, 1) != 0) inst.modifiers.emplace_back("glc", 1);
  if (generation_ >= 10 && field(word, generation_ == 11 ? 13 : 14, 1) != 0)
    inst.modifiers.emplace_back("dlc", 1);
}

std::optional<Inst> ScalarMemoryDecoder::decode(std::span<const uint32_t> words) {
  if (words.empty() || (words[0] & kMask) != first_bits(generation_)) return std::nullopt;
  const Opcode* opcode = find(number_of(words[0]));
  if (opcode == nullptr) return std::nullopt;
  if (words.size() < 2) throw std::runtime_error("the code ends within an instruction");
  const Offset offset = offset_of(words);
  Operand scalar;
  scalar.kind = Kind::sgpr;
  Inst inst;
  inst.name = opcode->name;
  inst.size = 8;
  for (const Part& part : opcode->parts) {
    Operand operand = part.operand;
    if (part.field == Field::data) {
      operand = register_of(field(words[0], kDataAt, 7), part.operand);
    } else if (part.field == Field::base) {
      operand = register_of(2 * field(words[0], 0, 6), part.operand);
    } else if (part.field == Field::number) {
      operand = number_operand(field(words[0], kDataAt, 7));
    } else if (part.field == Field::offset || (part.field == Field::total && !offset.is_register)) {
      operand = number_operand(offset.value);
    } else if (part.field == Field::total || part.field == Field::register_offset) {
      operand = result_register(generation_, offset.reg, scalar);
      if (part.field == Field::total && offset.value != 0)
        inst.modifiers.emplace_back("offset", offset.value);
    }
    inst.operands.push_back(operand);
  }
  const auto has = [&](Field wanted) {
    return std::any_of(opcode->parts.begin(), opcode->parts.end(),
                       [&](const Part& part) { return part.field == wanted; });
  };
  if (has(Field::data) && has(Field::base)) read_caching(words[0], inst);
  return inst;
}

}  // namespace emu
