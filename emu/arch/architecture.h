#pragma once

// Architectures: what differs between the devices of a family, and what families differ in. Each
// family has a folder here with its own instructions (rows.cpp) and the table of its devices.

#include <cstdint>
#include <span>
#include <string_view>

#include "emu/exec/lowering.h"

namespace emu {

struct Architecture {
  const char* name = nullptr;       // gfx1100
  const char* full_name = nullptr;  // with its features, as programs read it
  const char* product = nullptr;
  int generation = 0;  // 9, 10, 11, 12
  int major = 0, minor = 0, stepping = 0;
  int wave = 0;        // lanes, as warpSize
  int processors = 0;  // as multiProcessorCount: workgroup processors where there are
  int simds = 0;       // of a processor
  int waves_per_simd = 0;
  int vgprs = 0;               // of a SIMD and lane (of 32-lane waves where both exist)
  int vgpr_granule = 0;        // registers are handed out in these (32-lane waves)
  int max_vgprs = 0;           // that one wave can have
  int sgprs = 0;               // of a SIMD; 0: as many as needed
  uint32_t lds_bytes = 0;      // of a workgroup
  uint32_t processor_lds = 0;  // of a processor
  int clock_khz = 0, memory_clock_khz = 0, bus_bits = 0;
  int l2_bytes = 0;
  bool wgp = false;  // a processor is a pair of compute units
};

/// A copy of what a family's devices have in common, with what is one device's own. Clocks in kHz.
constexpr Architecture device(Architecture common, const char* name, const char* product,
                              int stepping, int processors, int clock, int memory_clock,
                              int bus_bits, int l2_bytes) {
  common.name = common.full_name = name;
  common.product = product;
  common.stepping = stepping;
  common.processors = processors;
  common.clock_khz = clock;
  common.memory_clock_khz = memory_clock;
  common.bus_bits = bus_bits;
  common.l2_bytes = l2_bytes;
  return common;
}

/// What RDNA's devices have in common: waves of 32 on pairs of compute units.
inline constexpr Architecture kRdna = {.wave = 32,
                                       .simds = 4,
                                       .waves_per_simd = 16,
                                       .vgprs = 1536,
                                       .vgpr_granule = 24,
                                       .max_vgprs = 256,
                                       .lds_bytes = 65536,
                                       .processor_lds = 131072,
                                       .wgp = true};

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
