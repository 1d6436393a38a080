#pragma once

// The family's tables beside that which exec/rows/rows.h names.

#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {

std::span<const Row> gfx9_mfma_rows();

}  // namespace emu::EMU_VARIANT
