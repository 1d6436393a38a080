#pragma once

// One text for every chip. Tests write gfx11's names and modifiers; these functions give the names
// and modifiers of another chip for the same instructions.

#include <string>
#include <vector>

#include "emu/tests/harness.h"

namespace emu::test {

/// 9, 10, 11 or 12.
int generation(const Target& target);
bool is_gfx9(const Target& target);
/// The mode of amdhsa kernels. gfx12 has no IEEE bit.
uint32_t default_mode(const Target& target);

/// Returns the target's name of an instruction. A name that the generations share, and a name of
/// another generation, stays as it is.
std::string name_on(const Target& target, const std::string& name);

/// Returns lines of assembly with the target's names, waits and cache modifiers.
std::string text_on(const Target& target, const std::string& text);

/// The mnemonics of lines of assembly, without suffixes of encodings.
std::vector<std::string> mnemonics_of(const std::string& text);

}  // namespace emu::test
