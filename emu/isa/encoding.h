#pragma once

// The encodings of vector ALU instructions. Each family has one table.

#include <cstdint>
#include <span>

namespace emu {

/// Formats that share a layout of fields.
enum class FieldLayout : uint8_t { vop1, vop2, vopc, vop3, vop3p, vopd, vinterp };

/// An instruction belongs to an encoding if its first dword, masked, equals `bits`.
struct Encoding {
  FieldLayout layout;
  uint32_t mask, bits;
  uint8_t op_at, op_bits;  // position and width of the opcode

  constexpr uint32_t opcode(uint32_t word) const { return word >> op_at & ((1u << op_bits) - 1); }
};

/// Returns the encoding of the instruction that begins with `word`, or null if it isn't a vector
/// ALU instruction whose fields this project decodes.
const Encoding* find_encoding(int generation, uint32_t word);

/// The bits `count` bits from bit `at` of a dword.
constexpr uint32_t field(uint32_t word, unsigned at, unsigned count) {
  return word >> at & ((1u << count) - 1);
}

// Values of the 9-bit field SRC0 that say that a dword of modifiers follows.
inline constexpr uint32_t kDpp8 = 233, kDpp8FetchInactive = 234, kSdwa = 249, kDpp16 = 250;
inline constexpr uint32_t kLiteral = 255, kFirstVgpr = 256;

}  // namespace emu
