#pragma once

// Properties of architectures and of their families. Each family has a folder here, which contains
// the table of its devices and its own instructions (rows.cpp).

#include <cstdint>
#include <span>
#include <string_view>

#include "emu/exec/lowering.h"

namespace emu {

struct Architecture {
  const char* name = nullptr;       // gfx1100
  const char* full_name = nullptr;  // with features, as programs read it
  const char* product = nullptr;
  int generation = 0;  // 9, 10, 11, 12
  int major = 0, minor = 0, stepping = 0;
  int wave = 0;  // lanes per wave, reported as warpSize
  // Reported as multiProcessorCount; counts workgroup processors if there are any.
  int processors = 0;
  int simds = 0;  // per multiprocessor
  int waves_per_simd = 0;
  int vgprs = 0;               // per SIMD and lane (for waves of 32 lanes if both sizes exist)
  int vgpr_granule = 0;        // allocation granularity (for waves of 32 lanes)
  int max_vgprs = 0;           // limit of one wave
  int sgprs = 0;               // per SIMD; 0: not limited
  uint32_t lds_bytes = 0;      // limit of a workgroup
  uint32_t processor_lds = 0;  // per multiprocessor
  int clock_khz = 0, memory_clock_khz = 0, bus_bits = 0;
  int l2_bytes = 0;
  bool wgp = false;  // a multiprocessor is a pair of compute units
};

/// Whether the emulator implements the generation's instructions for images. Of gfx9's chips here,
/// LLVM knows some for gfx90a; none is implemented.
constexpr bool has_images(int generation) { return generation >= 10; }

/// Copies the properties common to a family and sets those of one device. Clocks are in kHz.
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

/// The common properties of RDNA devices: waves of 32 lanes on pairs of compute units.
inline constexpr Architecture kRdna = {.wave = 32,
                                       .simds = 4,
                                       .waves_per_simd = 16,
                                       .vgprs = 1536,
                                       .vgpr_granule = 24,
                                       .max_vgprs = 256,
                                       .lds_bytes = 65536,
                                       .processor_lds = 131072,
                                       .wgp = true};

/// A family's name for an instruction that the tables have under another name.
struct Renamed {
  std::string_view name, row;
};

/// A family of architectures. emu/arch/NAME/family.cpp defines it and families.cpp lists it.
struct Family {
  Traits traits;  // traits of its waves; the kernel selects their width
  std::span<const Architecture> architectures;
  std::span<const Renamed> renamed = {};
};

/// Returns the name of the row for an instruction of a generation.
std::string_view row_name(int generation, std::string_view name);

/// Returns null if the architecture is unknown.
const Architecture* find_architecture(std::string_view name);

/// Returns the properties of an architecture's waves that lowering needs.
Traits traits_of(const Architecture& architecture, bool wave64);

}  // namespace emu
