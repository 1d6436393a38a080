#pragma once

// What differs between the architectures that devices can have: their limits and their names.

#include <cstdint>
#include <string_view>

namespace emu {

struct Architecture {
  const char* name;          // gfx1100
  const char* full_name;     // with its features, as programs read it
  const char* product;
  int generation;            // 9, 10, 11, 12
  int major, minor, stepping;
  int wave;                  // lanes, as warpSize
  int processors;            // as multiProcessorCount: workgroup processors where there are
  int simds;                 // of a processor
  int waves_per_simd;
  int vgprs;                 // of a SIMD and lane (of 32-lane waves where both exist)
  int vgpr_granule;          // registers are handed out in these (32-lane waves)
  int max_vgprs;             // that one wave can have
  int sgprs;                 // of a SIMD; 0: as many as needed
  uint32_t lds_bytes;        // of a workgroup
  uint32_t processor_lds;    // of a processor
  int clock_khz, memory_clock_khz, bus_bits;
  int l2_bytes;
  bool wgp;                  // a processor is a pair of compute units
};

/// Null where the architecture isn't known.
const Architecture* find_architecture(std::string_view name);

}  // namespace emu
