#pragma once

// The formats of memory instructions, written independently of the decoder's.

#include <string>
#include <vector>

#include "emu/isa/dictionary.h"

namespace emu::test {

/// A field, and the values of which some opcodes need one.
struct Usual {
  Bits bits;
  std::vector<uint32_t> values;
};

/// A format as AMD's manuals give it.
struct Format {
  const char* name = nullptr;
  uint32_t bits = 0, mask = 0;         // of the first dword
  Bits opcode = {}, opcode_high = {};  // the opcode's bits, and those above them
  size_t dwords = 2;
  Bits base = {};                      // a pair of scalar registers, or one register
  std::vector<Bits> descriptors = {};  // four or eight scalar registers
  Bits scalar = {};                    // a scalar register or constant
  std::vector<Bits> vectors = {};      // several vector registers
  std::vector<Usual> usual = {};
  /// Bits that make another instruction, or hints that some opcodes lack.
  std::vector<Bits> selectors = {};
  /// If not 0, the hardware ignores the offset's bits from this one on, although LLVM prints them.
  int64_t offset_limit = 0;
};

/// Returns the formats of an architecture.
std::vector<Format> formats_of(const std::string& arch);

}  // namespace emu::test
