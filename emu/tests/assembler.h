#pragma once

// LLVM's assembler as the authority on which chip has which instruction.

#include <string>

namespace emu::test {

/// The name by which LLVM 19 assembles for a chip. It doesn't know gfx950, whose tests write the
/// opcodes that gfx942 lacks as numbers.
std::string assembled_as(const std::string& arch);

/// Whether a chip has an instruction. Names of other generations that LLVM accepts count, too.
bool has_instruction(const std::string& arch, const std::string& mnemonic);

}  // namespace emu::test
