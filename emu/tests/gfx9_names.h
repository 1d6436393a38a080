#pragma once

// The tables of operations use gfx11's opcode names. gfx9 has most of these opcodes under older
// names.

#include <string>

#include "emu/tests/harness.h"

namespace emu::test {

/// Returns the target's name of a gfx11 opcode, or an empty string if the target has no such
/// opcode.
std::string name_on(const Target& target, const std::string& name);

/// Returns whether the target belongs to gfx9: waves of 64 lanes, carries in register pairs.
bool is_gfx9(const Target& target);

}  // namespace emu::test
