#pragma once

// Validates the header of a line table before LLVM's reader gets it, which doesn't check all of it.

#include "emu/object/bytes.h"

namespace emu {

/// `section` is .debug_line; `offset` is the position of a table in it.
bool sound_line_header(Bytes section, uint64_t offset);

}  // namespace emu
