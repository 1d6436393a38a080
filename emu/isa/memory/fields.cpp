#include "emu/isa/memory/fields.h"

#include <stdexcept>

#include "emu/isa/vector.h"

namespace emu {

void read_caching(const Chip& chip, const CacheFields& fields, std::span<const uint32_t> words,
                  Inst& inst) {
  if (chip.generation >= 12) {
    constexpr const char* kScopes[] = {"SCOPE_CU", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS"};
    const uint32_t scope = fields.scope.of(words);
    if (scope != 0) inst.words.emplace_back("scope", kScopes[scope]);
    const bool returns = fields.hint.width != 0 && return_field(fields).of(words) != 0;
    if (returns && is_atomic(inst.name)) {
      inst.words.emplace_back("th", "TH_ATOMIC_RETURN");
    }
    return;
  }
  const auto add = [&](Bits bits, const char* name) {
    if (bits.of(words) != 0) inst.modifiers.emplace_back(name, 1);
  };
  add(fields.glc, chip.gfx940 ? "sc0" : "glc");
  add(fields.slc, chip.gfx940 ? "nt" : "slc");
  add(fields.third, chip.gfx940 ? "sc1" : chip.generation == 9 ? "scc" : "dlc");
}

void need_words(std::span<const uint32_t> words, size_t count) {
  if (words.size() < count) throw std::runtime_error("the code ends within an instruction");
}

Operand vector_registers(uint32_t number, unsigned count, bool accumulation) {
  constexpr uint32_t kRegisters = 256;
  if (number + count > kRegisters) throw std::runtime_error("reserved operand");
  Operand out;
  out.kind = accumulation ? Kind::agpr : Kind::vgpr;
  out.reg = static_cast<uint16_t>(number);
  out.dwords = static_cast<uint8_t>(count);
  return out;
}

Operand scalar_registers(int generation, uint32_t number, const Operand& shape) {
  constexpr uint32_t kFirstOfTraps = 108, kEndOfTraps = 124;
  const uint32_t general = generation <= 9 ? 102 : 106, end = number + shape.dwords;
  const bool wide = shape.dwords > 2;
  const bool apart = wide && ((number < general && end > general) ||
                              (number >= general && number < kFirstOfTraps) ||
                              (number >= kFirstOfTraps && end > kEndOfTraps));
  if (apart || (wide && number % 4 != 0)) throw std::runtime_error("reserved operand");
  return result_register(generation, number, shape);
}

}  // namespace emu
