#pragma once

// The rarer forms of operands and results: DPP, SDWA, output modifiers and 16-bit halves of a
// register. They are out of line and compiled once for each host instruction set.

#include "emu/exec/mode.h"
#include "emu/exec/values.h"

namespace emu::EMU_VARIANT {

/// How output modifiers and register halves interpret a dword.
enum class Shape : uint8_t { dword, f32, word, f16, packed, packed_f16 };

/// Reads source `index` of one half of the wave without applying its sign modifiers.
void fetch(Wave* w, const Op* op, int index, int half, U32& out);
void fetch_wide(Wave* w, const Op* op, int index, int half, U64& out);

/// Returns the enabled lanes that a DPP instruction may write.
LaneMask dpp_enabled(Wave* w, const Op* op, int half);

void put(Wave* w, const Op* op, int half, LaneMask enabled, const U32& value, Shape shape);
void put_wide(Wave* w, const Op* op, int half, LaneMask enabled, const U64& value, bool is_float);

/// Replaces f16 denormals by zero if MODE says so.
void flush_denormals(F16& value);

}  // namespace emu::EMU_VARIANT
