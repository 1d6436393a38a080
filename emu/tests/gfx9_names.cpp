#include "emu/tests/gfx9_names.h"

#include <map>
#include <set>

namespace emu::test {
namespace {

using Names = std::map<std::string, std::string>;

/// Part of a name, and the corresponding part of gfx9's name.
struct Part {
  const char* later;
  const char* gfx9;
};

std::string found(const Names& names, const std::string& name) {
  const auto it = names.find(name);
  return it == names.end() ? name : it->second;
}

std::string vector_name(const std::string& name) {
  static const Names kNames = {{"v_add_nc_u32", "v_add_u32"},
                               {"v_sub_nc_u32", "v_sub_u32"},
                               {"v_subrev_nc_u32", "v_subrev_u32"},
                               {"v_add_nc_i32", "v_add_i32"},
                               {"v_sub_nc_i32", "v_sub_i32"},
                               {"v_add_nc_u16", "v_add_u16"},
                               {"v_sub_nc_u16", "v_sub_u16"},
                               {"v_add_nc_i16", "v_add_i16"},
                               {"v_sub_nc_i16", "v_sub_i16"},
                               {"v_add_co_ci_u32", "v_addc_co_u32"},
                               {"v_sub_co_ci_u32", "v_subb_co_u32"},
                               {"v_subrev_co_ci_u32", "v_subbrev_co_u32"},
                               {"v_clz_i32_u32", "v_ffbh_u32"},
                               {"v_cls_i32", "v_ffbh_i32"},
                               {"v_ctz_i32_b32", "v_ffbl_b32"},
                               {"v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"},
                               {"v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"},
                               {"v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
                               {"v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"},
                               {"v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"},
                               {"v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_i16_f16"},
                               {"v_cvt_pk_norm_u16_f16", "v_cvt_pknorm_u16_f16"},
                               {"v_mul_dx9_zero_f32", "v_mul_legacy_f32"},
                               {"v_dot2acc_f32_f16", "v_dot2c_f32_f16"}};
  // gfx90a lacks 16-bit logic, constants within a fused multiply-add, clamping at two limits at
  // once, and dot products of mixed signs.
  static const std::set<std::string> kLater = {
      "v_and_b16",      "v_or_b16",         "v_xor_b16",
      "v_not_b16",      "v_cndmask_b16",    "v_cvt_i32_i16",
      "v_cvt_u32_u16",  "v_cvt_pk_i16_f32", "v_cvt_pk_u16_f32",
      "v_dot4_i32_iu8", "v_dot8_i32_iu4",   "v_fma_dx9_zero_f32",
      "v_fmaak_f16",    "v_fmaak_f32",      "v_fmamk_f16",
      "v_fmamk_f32",    "v_fmac_f16",       "v_fmac_dx9_zero_f32",
      "v_maxmin_f16",   "v_maxmin_f32",     "v_maxmin_i32",
      "v_maxmin_u32",   "v_minmax_f16",     "v_minmax_f32",
      "v_minmax_i32",   "v_minmax_u32",     "v_xor3_b32",
      "v_dot2_f16_f16", "v_dot2_f32_bf16",  "v_permlane64_b32"};
  return kLater.contains(name) ? "" : found(kNames, name);
}

std::string replaced(std::string name, const char* part, const char* by) {
  const size_t at = name.find(part);
  if (at != name.npos) name.replace(at, std::string(part).size(), by);
  return name;
}

std::string scalar_name(const std::string& name) {
  static const std::set<std::string> kLater = {"s_pack_hl_b32_b16", "s_code_end",
                                               "s_sendmsg_rtn_b64"};
  static constexpr Part kParts[] = {{"_and_not0_", "_andn1_"},
                                    {"_and_not1_", "_andn2_"},
                                    {"_or_not0_", "_orn1_"},
                                    {"_or_not1_", "_orn2_"},
                                    {"_ctz_", "_ff1_"},
                                    {"s_clz_i32_u32", "s_flbit_i32_b32"},
                                    {"s_clz_i32_u64", "s_flbit_i32_b64"},
                                    {"s_cls_i32", "s_flbit_i32"}};
  if (kLater.contains(name)) return "";
  std::string result = name;
  for (const Part& part : kParts) result = replaced(result, part.later, part.gfx9);
  return result;
}

/// Returns the end of a load's or store's name on gfx9. Loads into half of a register are excluded:
/// on gfx90a, whose registers have ECC, the other half is unspecified.
std::string memory_name(const std::string& name, size_t end_of_verb) {
  static const Names kTypes = {{"u8", "ubyte"},
                               {"i8", "sbyte"},
                               {"u16", "ushort"},
                               {"i16", "sshort"},
                               {"b8", "byte"},
                               {"b16", "short"},
                               {"b32", "dword"},
                               {"b64", "dwordx2"},
                               {"b96", "dwordx3"},
                               {"b128", "dwordx4"},
                               {"b256", "dwordx8"},
                               {"b512", "dwordx16"},
                               {"d16_u8", "ubyte_d16"},
                               {"d16_i8", "sbyte_d16"},
                               {"d16_b16", "short_d16"},
                               {"d16_hi_u8", "ubyte_d16_hi"},
                               {"d16_hi_i8", "sbyte_d16_hi"},
                               {"d16_hi_b8", "byte_d16_hi"},
                               {"d16_hi_b16", "short_d16_hi"}};
  return name.substr(0, end_of_verb) + found(kTypes, name.substr(end_of_verb));
}

std::string atomic_name(const std::string& name, size_t end_of_verb) {
  static const Names kOperations = {{"min_u32", "umin"},    {"min_i32", "smin"},
                                    {"max_u32", "umax"},    {"max_i32", "smax"},
                                    {"min_u64", "umin_x2"}, {"min_i64", "smin_x2"},
                                    {"max_u64", "umax_x2"}, {"max_i64", "smax_x2"}};
  const std::string operation = name.substr(end_of_verb), prefix = name.substr(0, end_of_verb);
  if (const auto it = kOperations.find(operation); it != kOperations.end()) {
    return prefix + it->second;
  }
  const size_t bar = operation.find('_');
  const std::string type = operation.substr(bar + 1), verb = operation.substr(0, bar);
  if (verb == "csub") return "";
  // Floats have sums, and 64-bit floats also minimum and maximum. Flat memory has them for 64-bit
  // floats only.
  if (type == "f32" && (verb != "add" || prefix.starts_with("flat"))) return "";
  if (type[0] == 'f') return name;
  return prefix + verb + (type.ends_with("64") ? "_x2" : "");
}

std::string lds_name(const std::string& name) {
  static constexpr Part kParts[] = {{"ds_load_2addr_stride64_", "ds_read2st64_"},
                                    {"ds_store_2addr_stride64_", "ds_write2st64_"},
                                    {"ds_load_2addr_", "ds_read2_"},
                                    {"ds_store_2addr_", "ds_write2_"},
                                    {"ds_load_", "ds_read_"},
                                    {"ds_storexchg_", "ds_wrxchg_"},
                                    {"ds_store_", "ds_write_"},
                                    {"ds_cmpstore_", "ds_cmpst_"}};
  for (const Part& part : kParts) {
    if (name.starts_with(part.later)) return replaced(name, part.later, part.gfx9);
  }
  return name;
}

std::string gfx9_name(const std::string& name) {
  if (name.starts_with("v_")) return vector_name(name);
  if (name.starts_with("ds_")) return lds_name(name);
  for (const char* verb : {"_load_", "_store_", "_atomic_"}) {
    const size_t at = name.find(verb);
    if (at == name.npos) continue;
    const size_t end = at + std::string(verb).size();
    return verb[1] == 'a' ? atomic_name(name, end) : memory_name(name, end);
  }
  return scalar_name(name);
}

}  // namespace

bool is_gfx9(const Target& target) { return target.arch.starts_with("gfx9"); }

std::string name_on(const Target& target, const std::string& name) {
  return is_gfx9(target) ? gfx9_name(name) : name;
}

}  // namespace emu::test
