#pragma once

// Which half of a wave of 64 accesses memory, for reports. Accesses know a lane's place within its
// half only.

#include "emu/exec/wave.h"

namespace emu {

/// Sets the half for this thread's next reports.
void begin_half(int half);

/// Returns the number within the wave of a lane of that half.
int lane_of_wave(const Wave* w, int lane);

}  // namespace emu
