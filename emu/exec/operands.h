#pragma once

// The rarer forms of operands and results, out of line and built once for each host instruction
// set: DPP, SDWA, output modifiers, 16-bit halves of a register.

#include "emu/exec/mode.h"
#include "emu/exec/values.h"

namespace emu::EMU_VARIANT {

/// What a dword holds, as far as output modifiers and halves of registers care.
enum class Shape : uint8_t { dword, f32, word, f16, packed, packed_f16 };

/// Source `index` of one half of the wave, without its sign modifiers.
void fetch(Wave* w, const Op* op, int index, int half, U32& out);
void fetch_wide(Wave* w, const Op* op, int index, int half, U64& out);

/// The lanes that a DPP instruction may write, of those that are on.
LaneMask dpp_enabled(Wave* w, const Op* op, int half);

void put(Wave* w, const Op* op, int half, LaneMask enabled, const U32& value, Shape shape);
void put_wide(Wave* w, const Op* op, int half, LaneMask enabled, const U64& value, bool is_float);

/// f16 denormals become zero where MODE has it so.
void flush_denormals(F16& value);

}  // namespace emu::EMU_VARIANT
