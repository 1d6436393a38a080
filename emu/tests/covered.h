#pragma once

// Which opcodes have a directed test on which chip, and tests that no chip lacks one of them.

#include <string>
#include <vector>

#include "emu/tests/harness.h"

namespace emu::test {

/// Returns a suite's name on a target.
std::string suite_on(const std::string& suite, const Target& target);

/// Returns whether a target has a case's instructions, whose mnemonics are the target's. If it has
/// them, records that the case covers `opcodes`, whose names may be gfx11's.
bool note_case(const std::string& suite, const std::string& name, const Target& target,
               const std::vector<std::string>& mnemonics, const std::vector<std::string>& opcodes);

/// Fails the test if a case's machine code lacks one of the mnemonics.
void expect_covered(const Batch& batch, int id, const std::vector<std::string>& mnemonics);

/// Registers the tests of what all suites have recorded. Call it after them.
void register_covered();

/// Whether a chip has an instruction under this name, which isn't that of other chips only.
bool has_under_name(const std::string& arch, const std::string& name);

/// Prints all opcodes with a directed test, one "architecture mnemonic" per line.
void print_tested();

}  // namespace emu::test
