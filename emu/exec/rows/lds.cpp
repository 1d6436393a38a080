// LDS.

#include "emu/exec/memory.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr Row kRows[] = {{"ds_nop", nullptr}};

}  // namespace

std::span<const Row> lds_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
