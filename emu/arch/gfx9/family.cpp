// GCN 5 and CDNA: waves of 64 lanes, 16-bit results that clear the upper half of their register,
// accumulation registers.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture cdna(const char* full_name, int minor, Architecture a) {
  a.full_name = full_name;
  a.minor = minor;
  return a;
}

constexpr Architecture kCommon = {.generation = 9,
                                  .major = 9,
                                  .wave = 64,
                                  .simds = 4,
                                  .waves_per_simd = 8,
                                  .vgprs = 512,
                                  .vgpr_granule = 8,
                                  .max_vgprs = 512,
                                  .sgprs = 800,
                                  .lds_bytes = 65536,
                                  .processor_lds = 65536};

constexpr Architecture gfx950() {
  Architecture a = kCommon;
  a.lds_bytes = a.processor_lds = 160 << 10;
  return a;
}
constexpr Architecture kGfx950 = gfx950();

constexpr Architecture kArchitectures[] = {
    cdna("gfx90a:sramecc+:xnack-", 0,
         device(kCommon, "gfx90a", "AMD Instinct MI250X (wick-emu)", 10, 110, 1700000, 1600000,
                4096, 8 << 20)),
    cdna("gfx942:sramecc+:xnack-", 4,
         device(kCommon, "gfx942", "AMD Instinct MI300X (wick-emu)", 2, 304, 2100000, 1300000, 8192,
                4 << 20)),
    cdna("gfx950:sramecc+:xnack-", 5,
         device(kGfx950, "gfx950", "AMD Instinct MI350X (wick-emu)", 0, 256, 2200000, 2000000, 8192,
                4 << 20)),
};

/// 16-bit instructions with three operands, and two others, can read register halves and preserve
/// the other half of their result, as all 16-bit instructions of later generations do.
constexpr std::string_view kKeeping[] = {
    "v_mad_f16",  "v_mad_u16",  "v_mad_i16",  "v_fma_f16",  "v_div_fixup_f16", "v_add_i16",
    "v_sub_i16",  "v_min3_f16", "v_min3_u16", "v_min3_i16", "v_max3_f16",      "v_max3_u16",
    "v_max3_i16", "v_med3_f16", "v_med3_u16", "v_med3_i16"};

}  // namespace

extern const Family gfx9_family = {
    {.keep_high = false, .loads_clear = true, .generation = 9, .keeping_high = kKeeping},
    kArchitectures};

}  // namespace emu
