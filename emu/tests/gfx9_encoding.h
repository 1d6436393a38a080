#pragma once

// The words of gfx9's matrix instructions, for opcodes that the assembler doesn't know.

#include <cstdint>
#include <cstdio>
#include <string>

namespace emu::test {

/// The fields of VOP3P-MAI. Registers are numbers of vector registers; a negative `c` is the
/// number of a constant less 256.
struct Mai {
  uint32_t opcode = 0;
  int d = 0, a = 0, b = 0, c = 0;
  bool acc_d = false, acc_a = false, acc_b = false;
  uint32_t cbsz = 0, abid = 0, blgp = 0;
};

/// Returns directives of the assembler with the instruction's two words.
inline std::string mai_words(const Mai& m) {
  const auto field = [](int reg) { return static_cast<uint32_t>(256 + reg); };
  const uint32_t low = 0xd3800000 | m.opcode << 16 | uint32_t{m.acc_d} << 15 | m.abid << 11 |
                       m.cbsz << 8 | static_cast<uint32_t>(m.d);
  const uint32_t high = m.blgp << 29 | uint32_t{m.acc_b} << 28 | uint32_t{m.acc_a} << 27 |
                        field(m.c) << 18 | field(m.b) << 9 | field(m.a);
  char text[64];
  std::snprintf(text, sizeof text, ".long 0x%08x\n.long 0x%08x", low, high);
  return text;
}

}  // namespace emu::test
