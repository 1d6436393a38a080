#pragma once

// Architectures: what differs between the devices of a family, and what families differ in. Each
// family has a folder here with its own instructions (rows.cpp) and the table of its devices.

#include <cstdint>
#include <span>
#include <string_view>

#include "emu/exec/lowering.h"

namespace emu {

struct Architecture {
  const char* name;       // gfx1100
  const char* full_name;  // with its features, as programs read it
  const char* product;
  int generation;  // 9, 10, 11, 12
  int major, minor, stepping;
  int wave;        // lanes, as warpSize
  int processors;  // as multiProcessorCount: workgroup processors where there are
  int simds;       // of a processor
  int waves_per_simd;
  int vgprs;               // of a SIMD and lane (of 32-lane waves where both exist)
  int vgpr_granule;        // registers are handed out in these (32-lane waves)
  int max_vgprs;           // that one wave can have
  int sgprs;               // of a SIMD; 0: as many as needed
  uint32_t lds_bytes;      // of a workgroup
  uint32_t processor_lds;  // of a processor
  int clock_khz, memory_clock_khz, bus_bits;
  int l2_bytes;
  bool wgp;  // a processor is a pair of compute units
};

/// A family's registration: emu/arch/NAME/family.cpp defines it, families.cpp lists it.
struct Family {
  Traits traits;  // of its waves; how many lanes they have is a kernel's choice
  std::span<const Architecture> architectures;
};

/// Null where the architecture isn't known.
const Architecture* find_architecture(std::string_view name);

/// What lowering needs to know of an architecture's waves.
Traits traits_of(const Architecture& architecture, bool wave64);

}  // namespace emu
