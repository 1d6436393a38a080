// RDNA4.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture common() {
  Architecture a = kRdna;
  a.generation = a.major = 12;
  return a;
}

constexpr Architecture kArchitectures[] = {
    device(common(), "gfx1200", "AMD Radeon RX 9060 XT (wick-emu)", 0, 16, 3130000, 1258000, 128,
           4 << 20),
    device(common(), "gfx1201", "AMD Radeon RX 9070 XT (wick-emu)", 1, 32, 2970000, 1258000, 256,
           8 << 20),
};

/// "co" names carry-out, "nc" says that there is none, and "num" that NaN is ignored as in older
/// families without IEEE mode.
constexpr Renamed kRenamed[] = {
    {"s_add_co_u32", "s_add_u32"},         {"s_sub_co_u32", "s_sub_u32"},
    {"s_add_co_ci_u32", "s_addc_u32"},     {"s_sub_co_ci_u32", "s_subb_u32"},
    {"s_add_co_i32", "s_add_i32"},         {"s_sub_co_i32", "s_sub_i32"},
    {"s_addk_co_i32", "s_addk_i32"},       {"s_add_nc_u64", "s_add_u64"},
    {"s_sub_nc_u64", "s_sub_u64"},         {"v_mad_co_u64_u32", "v_mad_u64_u32"},
    {"v_mad_co_i64_i32", "v_mad_i64_i32"}, {"v_min_num_f16", "v_min_f16"},
    {"v_max_num_f16", "v_max_f16"},        {"v_min_num_f32", "v_min_f32"},
    {"v_max_num_f32", "v_max_f32"},        {"v_min_num_f64", "v_min_f64"},
    {"v_max_num_f64", "v_max_f64"},        {"v_min3_num_f16", "v_min3_f16"},
    {"v_max3_num_f16", "v_max3_f16"},      {"v_med3_num_f16", "v_med3_f16"},
    {"v_min3_num_f32", "v_min3_f32"},      {"v_max3_num_f32", "v_max3_f32"},
    {"v_med3_num_f32", "v_med3_f32"},      {"v_minmax_num_f16", "v_minmax_f16"},
    {"v_maxmin_num_f16", "v_maxmin_f16"},  {"v_minmax_num_f32", "v_minmax_f32"},
    {"v_maxmin_num_f32", "v_maxmin_f32"},  {"v_pk_min_num_f16", "v_pk_min_f16"},
    {"v_pk_max_num_f16", "v_pk_max_f16"},
};

}  // namespace

extern const Family gfx12_family = {{.generation = 12}, kArchitectures, kRenamed};

}  // namespace emu
