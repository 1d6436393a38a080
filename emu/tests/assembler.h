#pragma once

// LLVM's assembler as the authority on which chip has which instruction.

#include <string>

namespace emu::test {

/// The chip for which LLVM 19 compiles and assembles. It doesn't know gfx950, which runs gfx942's
/// code; tests write the opcodes that gfx942 lacks as numbers.
std::string assembled_as(const std::string& arch);

/// Whether a chip has an instruction. Names of other generations that LLVM accepts count, too.
bool has_instruction(const std::string& arch, const std::string& mnemonic);

}  // namespace emu::test
