// GCN 5 and CDNA: waves of 64, registers of 16-bit results zeroed above, accumulation registers.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "gfx90a",
     .full_name = "gfx90a:sramecc+:xnack-",
     .product = "AMD Instinct MI250X (wick-emu)",
     .generation = 9,
     .major = 9,
     .minor = 0,
     .stepping = 10,
     .wave = 64,
     .processors = 110,
     .simds = 4,
     .waves_per_simd = 8,
     .vgprs = 512,
     .vgpr_granule = 8,
     .max_vgprs = 512,
     .sgprs = 800,
     .lds_bytes = 65536,
     .processor_lds = 65536,
     .clock_khz = 1700000,
     .memory_clock_khz = 1600000,
     .bus_bits = 4096,
     .l2_bytes = 8 << 20,
     .wgp = false},
    {.name = "gfx942",
     .full_name = "gfx942:sramecc+:xnack-",
     .product = "AMD Instinct MI300X (wick-emu)",
     .generation = 9,
     .major = 9,
     .minor = 4,
     .stepping = 2,
     .wave = 64,
     .processors = 304,
     .simds = 4,
     .waves_per_simd = 8,
     .vgprs = 512,
     .vgpr_granule = 8,
     .max_vgprs = 512,
     .sgprs = 800,
     .lds_bytes = 65536,
     .processor_lds = 65536,
     .clock_khz = 2100000,
     .memory_clock_khz = 1300000,
     .bus_bits = 8192,
     .l2_bytes = 4 << 20,
     .wgp = false},
};

}  // namespace

extern const Family gfx9_family = {{.keep_high = false, .generation = 9}, kArchitectures};

}  // namespace emu
