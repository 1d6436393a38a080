#pragma once

// What handlers need that isn't arithmetic: built once, for any host.

#include <cstdint>

#include "emu/exec/wave.h"

namespace emu {

/// Goes on at an address of the device's memory: where there is code, its operation, which the
/// wave's `next` names, too. Null where there is none; the launch has failed then.
const Op* jump(Wave* w, const Op* op, uint64_t address);

/// A hardware register as s_getreg reads it, and what s_setreg leaves in it.
uint32_t hardware_register(const Wave* w, uint32_t id);
void set_hardware_register(Wave* w, uint32_t id, uint32_t value);

/// Clocks that only go forward: of the core, and of 100 MHz.
uint64_t core_clock();
uint64_t real_time();

}  // namespace emu
