#pragma once

// Which lanes of which registers hold a known value, and which registers wait for memory. Handlers
// say what they read and write; without EMU_CHECKED all of it is nothing.

#include "emu/exec/wave.h"

namespace emu {

#ifdef EMU_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

}  // namespace emu
