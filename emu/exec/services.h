#pragma once

// Functions that handlers call for everything but arithmetic. They are compiled once, for any host.

#include <cstdint>

#include "emu/exec/wave.h"

namespace emu {

/// Continues at an address of the device's memory. Returns the operation there, which the wave's
/// `next` points to as well. If there is no code, the launch fails and the result is null.
const Op* jump(Wave* w, const Op* op, uint64_t address);

/// Lets the host serve the launch. Returns false if the launch failed.
bool interrupt_host(Wave* w, const Op* op);

/// Reads a hardware register as s_getreg does, and writes one as s_setreg does.
uint32_t hardware_register(const Wave* w, uint32_t id);
void set_hardware_register(Wave* w, uint32_t id, uint32_t value);

/// Monotonic clocks: the core clock, and a clock of 100 MHz.
uint64_t core_clock();
uint64_t real_time();

}  // namespace emu
