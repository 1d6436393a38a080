#pragma once

// Checks the header of a line table before LLVM's reader gets it, which doesn't check all of it.

#include "emu/object/bytes.h"

namespace emu {

/// Throws ObjectError if LLVM's reader couldn't read the header. `section` is .debug_line; `offset`
/// is the position of a table in it. Returns the table's size.
uint64_t check_line_header(Bytes section, uint64_t offset);

}  // namespace emu
