#pragma once

// Fields that the formats of memory instructions share.

#include "emu/isa/chip.h"
#include "emu/isa/dictionary.h"

namespace emu {

/// Where a format says how an access uses the caches. gfx12 has a scope and a hint; other chips
/// have three bits, whose names differ.
struct CacheFields {
  Bits glc;    // sc0 on gfx940
  Bits slc;    // nt on gfx940
  Bits third;  // scc on gfx90a, sc1 on gfx940, dlc on gfx10 and gfx11
  Bits scope, hint;
};

/// Adds the modifiers of caches. gfx12's hints change nothing, but for the one of atomic operations
/// that asks for the old value.
void read_caching(const Chip& chip, const CacheFields& fields, std::span<const uint32_t> words,
                  Inst& inst);

/// Returns the field whose lowest bit says that an atomic operation returns the old value.
inline Bits return_field(const CacheFields& fields) {
  return {fields.hint.width != 0 ? fields.hint.at : fields.glc.at, 1};
}

/// Returns the layout whose encoding the words begin with; null if there is none.
template <class Layout>
const Layout* find_layout(const std::vector<Layout>& layouts, std::span<const uint32_t> words) {
  for (const Layout& one : layouts) {
    if (!words.empty() && (words[0] & one.mask) == one.bits) return &one;
  }
  return nullptr;
}

/// The number of an opcode whose highest bits have a field of their own.
template <class Layout>
uint32_t opcode_of(const Layout& layout, std::span<const uint32_t> words) {
  return layout.opcode.of(words) | layout.opcode_high.of(words) << layout.opcode.width;
}
template <class Layout>
void put_opcode(const Layout& layout, Words& words, uint32_t number) {
  layout.opcode.put(words, number);
  if (layout.opcode_high.width != 0) {
    layout.opcode_high.put(words, number >> layout.opcode.width);
  }
}

inline bool is_atomic(std::string_view name) { return name.find("_atomic_") != name.npos; }

/// Throws std::runtime_error if the code ends before `count` dwords.
void need_words(std::span<const uint32_t> words, size_t count);

/// Returns `count` vector registers. Throws std::runtime_error if the last one doesn't exist.
Operand vector_registers(uint32_t number, unsigned count, bool accumulation = false);

/// Returns consecutive scalar registers. Throws std::runtime_error if they aren't aligned, or reach
/// beyond the general registers or the trap handler's.
Operand scalar_registers(int generation, uint32_t number, const Operand& shape);

}  // namespace emu
