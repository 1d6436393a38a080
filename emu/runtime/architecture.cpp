#include "emu/runtime/architecture.h"

namespace emu {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "gfx1100", .full_name = "gfx1100", .product = "AMD Radeon RX 7900 XTX (wick-emu)",
     .generation = 11, .major = 11, .minor = 0, .stepping = 0, .wave = 32, .processors = 48,
     .simds = 4, .waves_per_simd = 16, .vgprs = 1536, .vgpr_granule = 24, .max_vgprs = 256,
     .sgprs = 0, .lds_bytes = 65536, .processor_lds = 131072, .clock_khz = 2482000,
     .memory_clock_khz = 1249000, .bus_bits = 384, .l2_bytes = 6 << 20, .wgp = true},
    {.name = "gfx1101", .full_name = "gfx1101", .product = "AMD Radeon RX 7800 XT (wick-emu)",
     .generation = 11, .major = 11, .minor = 0, .stepping = 1, .wave = 32, .processors = 30,
     .simds = 4, .waves_per_simd = 16, .vgprs = 1536, .vgpr_granule = 24, .max_vgprs = 256,
     .sgprs = 0, .lds_bytes = 65536, .processor_lds = 131072, .clock_khz = 2430000,
     .memory_clock_khz = 1218000, .bus_bits = 256, .l2_bytes = 4 << 20, .wgp = true},
    {.name = "gfx1030", .full_name = "gfx1030", .product = "AMD Radeon RX 6900 XT (wick-emu)",
     .generation = 10, .major = 10, .minor = 3, .stepping = 0, .wave = 32, .processors = 40,
     .simds = 4, .waves_per_simd = 16, .vgprs = 1024, .vgpr_granule = 16, .max_vgprs = 256,
     .sgprs = 0, .lds_bytes = 65536, .processor_lds = 131072, .clock_khz = 2250000,
     .memory_clock_khz = 1000000, .bus_bits = 256, .l2_bytes = 4 << 20, .wgp = true},
    {.name = "gfx1200", .full_name = "gfx1200", .product = "AMD Radeon RX 9060 XT (wick-emu)",
     .generation = 12, .major = 12, .minor = 0, .stepping = 0, .wave = 32, .processors = 16,
     .simds = 4, .waves_per_simd = 16, .vgprs = 1536, .vgpr_granule = 24, .max_vgprs = 256,
     .sgprs = 0, .lds_bytes = 65536, .processor_lds = 131072, .clock_khz = 3130000,
     .memory_clock_khz = 1258000, .bus_bits = 128, .l2_bytes = 4 << 20, .wgp = true},
    {.name = "gfx90a", .full_name = "gfx90a:sramecc+:xnack-",
     .product = "AMD Instinct MI250X (wick-emu)",
     .generation = 9, .major = 9, .minor = 0, .stepping = 10, .wave = 64, .processors = 110,
     .simds = 4, .waves_per_simd = 8, .vgprs = 512, .vgpr_granule = 8, .max_vgprs = 512,
     .sgprs = 800, .lds_bytes = 65536, .processor_lds = 65536, .clock_khz = 1700000,
     .memory_clock_khz = 1600000, .bus_bits = 4096, .l2_bytes = 8 << 20, .wgp = false},
    {.name = "gfx942", .full_name = "gfx942:sramecc+:xnack-",
     .product = "AMD Instinct MI300X (wick-emu)",
     .generation = 9, .major = 9, .minor = 4, .stepping = 2, .wave = 64, .processors = 304,
     .simds = 4, .waves_per_simd = 8, .vgprs = 512, .vgpr_granule = 8, .max_vgprs = 512,
     .sgprs = 800, .lds_bytes = 65536, .processor_lds = 65536, .clock_khz = 2100000,
     .memory_clock_khz = 1300000, .bus_bits = 8192, .l2_bytes = 4 << 20, .wgp = false},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  name = name.substr(0, name.find(':'));
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return &architecture;
  }
  return nullptr;
}

}  // namespace emu
