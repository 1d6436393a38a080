#pragma once

// Checks debug information before LLVM's reader gets it. LLVM's reader misbehaves for some forms of
// values, and where parts of the sections are shared, it reads them once for each use.

#include "emu/object/bytes.h"

namespace emu {

/// Sections of a code object. Those that it doesn't have are empty.
struct DebugSections {
  Bytes info, types, abbreviations, lines;
  Bytes ranges, range_lists;  // of DWARF 4 and of DWARF 5
};

/// Throws ObjectError if LLVM's reader couldn't read the sections, or if that might take much more
/// time or memory than their size.
void check_debug_info(const DebugSections& sections);

}  // namespace emu
