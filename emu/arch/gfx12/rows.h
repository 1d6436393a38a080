#pragma once

// The family's tables that exec/rows/rows.h doesn't declare.

#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {

std::span<const Row> gfx12_wmma_rows();
std::span<const Row> gfx12_swmmac_rows();
std::span<const Row> gfx12_float8_rows();

}  // namespace emu::EMU_VARIANT
