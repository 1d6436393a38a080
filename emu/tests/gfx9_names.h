#pragma once

// The tables of operations name opcodes as gfx11 does. gfx9 has most of them under older names.

#include <string>

#include "emu/tests/harness.h"

namespace emu::test {

/// What the target calls an opcode of gfx11; empty where it has none of the kind.
std::string name_on(const Target& target, const std::string& name);

/// Whether the target is of gfx9: waves of 64, carries in pairs of registers.
bool is_gfx9(const Target& target);

}  // namespace emu::test
