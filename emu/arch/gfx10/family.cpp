// RDNA2.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "gfx1030",
     .full_name = "gfx1030",
     .product = "AMD Radeon RX 6900 XT (wick-emu)",
     .generation = 10,
     .major = 10,
     .minor = 3,
     .stepping = 0,
     .wave = 32,
     .processors = 40,
     .simds = 4,
     .waves_per_simd = 16,
     .vgprs = 1024,
     .vgpr_granule = 16,
     .max_vgprs = 256,
     .sgprs = 0,
     .lds_bytes = 65536,
     .processor_lds = 131072,
     .clock_khz = 2250000,
     .memory_clock_khz = 1000000,
     .bus_bits = 256,
     .l2_bytes = 4 << 20,
     .wgp = true},
};

}  // namespace

extern const Family gfx10_family = {{.generation = 10}, kArchitectures};

}  // namespace emu
