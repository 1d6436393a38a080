#pragma once

#include <string_view>

namespace emu {

/// What of an architecture the formats of its instructions depend on.
struct Chip {
  int generation = 0;                   // 9, 10, 11, 12
  bool gfx940 = false, gfx950 = false;  // the encodings and opcodes that these chips added
};

/// `architecture` is the compiler's name, such as gfx1100.
Chip chip_of(std::string_view architecture);

}  // namespace emu
