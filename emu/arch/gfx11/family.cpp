// RDNA3.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "gfx1100",
     .full_name = "gfx1100",
     .product = "AMD Radeon RX 7900 XTX (wick-emu)",
     .generation = 11,
     .major = 11,
     .minor = 0,
     .stepping = 0,
     .wave = 32,
     .processors = 48,
     .simds = 4,
     .waves_per_simd = 16,
     .vgprs = 1536,
     .vgpr_granule = 24,
     .max_vgprs = 256,
     .sgprs = 0,
     .lds_bytes = 65536,
     .processor_lds = 131072,
     .clock_khz = 2482000,
     .memory_clock_khz = 1249000,
     .bus_bits = 384,
     .l2_bytes = 6 << 20,
     .wgp = true},
    {.name = "gfx1101",
     .full_name = "gfx1101",
     .product = "AMD Radeon RX 7800 XT (wick-emu)",
     .generation = 11,
     .major = 11,
     .minor = 0,
     .stepping = 1,
     .wave = 32,
     .processors = 30,
     .simds = 4,
     .waves_per_simd = 16,
     .vgprs = 1536,
     .vgpr_granule = 24,
     .max_vgprs = 256,
     .sgprs = 0,
     .lds_bytes = 65536,
     .processor_lds = 131072,
     .clock_khz = 2430000,
     .memory_clock_khz = 1218000,
     .bus_bits = 256,
     .l2_bytes = 4 << 20,
     .wgp = true},
};

}  // namespace

extern const Family gfx11_family = {{.generation = 11}, kArchitectures};

}  // namespace emu
