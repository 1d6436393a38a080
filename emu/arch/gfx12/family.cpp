// RDNA4.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "gfx1200",
     .full_name = "gfx1200",
     .product = "AMD Radeon RX 9060 XT (wick-emu)",
     .generation = 12,
     .major = 12,
     .minor = 0,
     .stepping = 0,
     .wave = 32,
     .processors = 16,
     .simds = 4,
     .waves_per_simd = 16,
     .vgprs = 1536,
     .vgpr_granule = 24,
     .max_vgprs = 256,
     .sgprs = 0,
     .lds_bytes = 65536,
     .processor_lds = 131072,
     .clock_khz = 3130000,
     .memory_clock_khz = 1258000,
     .bus_bits = 128,
     .l2_bytes = 4 << 20,
     .wgp = true},
};

}  // namespace

extern const Family gfx12_family = {{.generation = 12}, kArchitectures};

}  // namespace emu
