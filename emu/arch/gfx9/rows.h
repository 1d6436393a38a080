#pragma once

// The family's tables that exec/rows/rows.h doesn't declare.

#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {

std::span<const Row> gfx9_mfma_rows();
std::span<const Row> gfx9_smfmac_rows();
std::span<const Row> gfx9_float8_rows();
std::span<const Row> gfx9_to_lds_rows();
std::span<const Row> gfx950_rows();

}  // namespace emu::EMU_VARIANT
