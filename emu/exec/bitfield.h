#pragma once

#include <cstdint>

namespace emu {

struct Program;

/// Returns whether the load at the address only serves to replace bits of a dword in memory: what
/// it loads is combined by bit operations alone and stored at the same address. Compilers write
/// bitfields that way, and the neighbouring bits needn't be initialized.
bool replaces_bits(const Program& program, uint64_t address);

}  // namespace emu
