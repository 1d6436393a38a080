#pragma once

// Whether the header of a line table can be given to LLVM's reader, which trusts in much of it.

#include "emu/object/bytes.h"

namespace emu {

/// `section`: .debug_line, `offset`: of a table in it.
bool sound_line_header(Bytes section, uint64_t offset);

}  // namespace emu
