#include "emu/tests/names.h"

#include <map>
#include <sstream>

namespace emu::test {
namespace {

using Names = std::map<std::string, std::string>;

/// Part of a name on gfx11, and the corresponding part before it.
struct Part {
  const char* later;
  const char* earlier;
};

std::string found(const Names& names, const std::string& name) {
  const auto it = names.find(name);
  return it == names.end() ? name : it->second;
}

std::string replaced(std::string name, const char* part, const char* by) {
  const size_t at = name.find(part);
  if (at != name.npos) name.replace(at, std::string(part).size(), by);
  return name;
}

std::string vector_name(int generation, const std::string& name) {
  static const Names kGfx9 = {
      {"v_add_nc_u32", "v_add_u32"},        {"v_sub_nc_u32", "v_sub_u32"},
      {"v_subrev_nc_u32", "v_subrev_u32"},  {"v_add_nc_i32", "v_add_i32"},
      {"v_sub_nc_i32", "v_sub_i32"},        {"v_add_nc_u16", "v_add_u16"},
      {"v_sub_nc_u16", "v_sub_u16"},        {"v_add_nc_i16", "v_add_i16"},
      {"v_sub_nc_i16", "v_sub_i16"},        {"v_add_co_ci_u32", "v_addc_co_u32"},
      {"v_sub_co_ci_u32", "v_subb_co_u32"}, {"v_subrev_co_ci_u32", "v_subbrev_co_u32"}};
  static const Names kBeforeGfx11 = {{"v_clz_i32_u32", "v_ffbh_u32"},
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
                                     {"v_fma_dx9_zero_f32", "v_fma_legacy_f32"},
                                     {"v_fmac_dx9_zero_f32", "v_fmac_legacy_f32"},
                                     {"v_dot2acc_f32_f16", "v_dot2c_f32_f16"}};
  std::string earlier = found(kBeforeGfx11, name);
  for (const char* compare : {"v_cmp_t_f", "v_cmpx_t_f"}) {
    if (name.starts_with(compare)) earlier = replaced(name, "_t_f", "_tru_f");
  }
  return generation == 9 ? found(kGfx9, earlier) : earlier;
}

std::string scalar_name(const std::string& name) {
  static constexpr Part kParts[] = {
      {"_and_not0_", "_andn1_"},
      {"_and_not1_", "_andn2_"},
      {"_or_not0_", "_orn1_"},
      {"_or_not1_", "_orn2_"},
      {"_ctz_", "_ff1_"},
      {"s_clz_i32_u32", "s_flbit_i32_b32"},
      {"s_clz_i32_u64", "s_flbit_i32_b64"},
      {"s_cls_i32", "s_flbit_i32"},
      {"s_set_inst_prefetch_distance", "s_inst_prefetch"},
  };
  std::string result = name;
  for (const Part& part : kParts) result = replaced(result, part.later, part.earlier);
  return result;
}

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
                               {"d16_hi_b16", "short_d16_hi"},
                               {"d16_format_x", "format_d16_x"},
                               {"d16_format_xy", "format_d16_xy"},
                               {"d16_format_xyz", "format_d16_xyz"},
                               {"d16_format_xyzw", "format_d16_xyzw"},
                               {"d16_hi_format_x", "format_d16_hi_x"}};
  return name.substr(0, end_of_verb) + found(kTypes, name.substr(end_of_verb));
}

std::string atomic_name(int generation, const std::string& name, size_t end_of_verb) {
  static const Names kOperations = {{"min_u32", "umin"},    {"min_i32", "smin"},
                                    {"max_u32", "umax"},    {"max_i32", "smax"},
                                    {"min_u64", "umin_x2"}, {"min_i64", "smin_x2"},
                                    {"max_u64", "umax_x2"}, {"max_i64", "smax_x2"}};
  static const Names kGfx10 = {{"min_f32", "fmin"},         {"max_f32", "fmax"},
                               {"min_f64", "fmin_x2"},      {"max_f64", "fmax_x2"},
                               {"cmpswap_f32", "fcmpswap"}, {"cmpswap_f64", "fcmpswap_x2"}};
  const std::string operation = name.substr(end_of_verb), prefix = name.substr(0, end_of_verb);
  for (const Names* names : {&kOperations, &kGfx10}) {
    if (names == &kGfx10 && generation != 10) continue;
    if (const auto it = names->find(operation); it != names->end()) return prefix + it->second;
  }
  const size_t bar = operation.rfind('_');
  const std::string type = bar == operation.npos ? "" : operation.substr(bar + 1);
  if (type == "u32" || type == "b32") return prefix + operation.substr(0, bar);
  if (type == "u64" || type == "b64") return prefix + operation.substr(0, bar) + "_x2";
  return name;
}

std::string lds_name(const std::string& name) {
  static constexpr Part kParts[] = {
      {"ds_load_2addr_stride64_", "ds_read2st64_"},
      {"ds_store_2addr_stride64_", "ds_write2st64_"},
      {"ds_storexchg_2addr_stride64_", "ds_wrxchg2st64_"},
      {"ds_load_2addr_", "ds_read2_"},
      {"ds_store_2addr_", "ds_write2_"},
      {"ds_storexchg_2addr_", "ds_wrxchg2_"},
      {"ds_load_", "ds_read_"},
      {"ds_storexchg_", "ds_wrxchg_"},
      {"ds_store_", "ds_write_"},
      {"ds_cmpstore_", "ds_cmpst_"},
  };
  for (const Part& part : kParts) {
    if (name.starts_with(part.later)) return replaced(name, part.later, part.earlier);
  }
  return name;
}

std::string name_before_gfx11(int generation, const std::string& name) {
  if (name.starts_with("v_")) return vector_name(generation, name);
  if (name.starts_with("ds_")) return lds_name(name);
  for (const char* verb : {"_load_", "_store_", "_atomic_"}) {
    const size_t at = name.find(verb);
    if (at == name.npos) continue;
    const size_t end = at + std::string(verb).size();
    return verb[1] == 'a' ? atomic_name(generation, name, end) : memory_name(name, end);
  }
  return scalar_name(name);
}

/// gfx12 says which minimum, which carry and which subtraction it means.
std::string name_on_gfx12(const std::string& name) {
  static const Names kNames = {
      {"s_add_u32", "s_add_co_u32"},         {"s_sub_u32", "s_sub_co_u32"},
      {"s_addc_u32", "s_add_co_ci_u32"},     {"s_subb_u32", "s_sub_co_ci_u32"},
      {"s_add_i32", "s_add_co_i32"},         {"s_sub_i32", "s_sub_co_i32"},
      {"s_addk_i32", "s_addk_co_i32"},       {"s_waitcnt_depctr", "s_wait_alu"},
      {"v_mad_u64_u32", "v_mad_co_u64_u32"}, {"v_mad_i64_i32", "v_mad_co_i64_i32"}};
  if (const auto it = kNames.find(name); it != kNames.end()) return it->second;
  const size_t type = name.rfind("_f");
  const bool is_float = type != name.npos && type + 4 == name.size();
  for (const char* kind : {"_minmax", "_maxmin", "_min", "_max", "_min3", "_max3", "_med3"}) {
    for (const char* returned : {"", "_rtn"}) {
      const std::string end = std::string(kind) + returned;
      if (!is_float || !name.substr(0, type).ends_with(end)) continue;
      return name.substr(0, type - std::string(returned).size()) + "_num" + returned +
             name.substr(type);
    }
  }
  return replaced(name, "_atomic_csub_", "_atomic_sub_clamp_");
}

/// Between gfx90a and gfx942, matrix instructions of several blocks got the number of blocks.
std::string matrix_name(const std::string& name) {
  static const Names kNames = {
      {"v_mfma_f32_32x32x1f32", "v_mfma_f32_32x32x1_2b_f32"},
      {"v_mfma_f32_16x16x1f32", "v_mfma_f32_16x16x1_4b_f32"},
      {"v_mfma_f32_4x4x1f32", "v_mfma_f32_4x4x1_16b_f32"},
      {"v_mfma_f32_32x32x2f32", "v_mfma_f32_32x32x2_f32"},
      {"v_mfma_f32_16x16x4f32", "v_mfma_f32_16x16x4_f32"},
      {"v_mfma_f32_32x32x4f16", "v_mfma_f32_32x32x4_2b_f16"},
      {"v_mfma_f32_16x16x4f16", "v_mfma_f32_16x16x4_4b_f16"},
      {"v_mfma_f32_4x4x4f16", "v_mfma_f32_4x4x4_16b_f16"},
      {"v_mfma_f32_32x32x8f16", "v_mfma_f32_32x32x8_f16"},
      {"v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x16_f16"},
      {"v_mfma_f32_32x32x4bf16_1k", "v_mfma_f32_32x32x4_2b_bf16"},
      {"v_mfma_f32_16x16x4bf16_1k", "v_mfma_f32_16x16x4_4b_bf16"},
      {"v_mfma_f32_4x4x4bf16_1k", "v_mfma_f32_4x4x4_16b_bf16"},
      {"v_mfma_f32_32x32x8bf16_1k", "v_mfma_f32_32x32x8_bf16"},
      {"v_mfma_f32_16x16x16bf16_1k", "v_mfma_f32_16x16x16_bf16"},
      {"v_mfma_i32_32x32x4i8", "v_mfma_i32_32x32x4_2b_i8"},
      {"v_mfma_i32_16x16x4i8", "v_mfma_i32_16x16x4_4b_i8"},
      {"v_mfma_i32_4x4x4i8", "v_mfma_i32_4x4x4_16b_i8"},
      {"v_mfma_f64_16x16x4f64", "v_mfma_f64_16x16x4_f64"},
      {"v_mfma_f64_4x4x4f64", "v_mfma_f64_4x4x4_4b_f64"},
  };
  return found(kNames, name);
}

bool is_gfx940(const Target& target) { return target.arch == "gfx942" || target.arch == "gfx950"; }

/// A line's instruction from `at` on, up to the next part of a dual instruction.
struct Piece {
  size_t at, end;
};
std::vector<Piece> pieces(const std::string& line) {
  std::vector<Piece> all;
  for (size_t from = 0; from < line.size();) {
    size_t bar = line.find("::", from);
    if (bar == line.npos) bar = line.size();
    const size_t at = line.find_first_not_of(" \t", from);
    if (at < bar) all.push_back({at, std::min(line.find_first_of(" \t", at), bar)});
    from = bar + 2;
  }
  return all;
}

/// The length of a mnemonic without the suffix that names its encoding.
size_t without_suffix(const std::string& word) {
  for (const char* suffix : {"_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"}) {
    if (word.ends_with(suffix)) return word.size() - std::string(suffix).size();
  }
  return word.size();
}

/// Whether a word is an instruction, rather than a label, a directive or a comment.
bool is_mnemonic(const std::string& word) {
  return word[0] >= 'a' && word[0] <= 'z' && word.back() != ':';
}

bool is_wait(const std::string& line) {
  return line.starts_with("s_waitcnt vm") || line.starts_with("s_waitcnt lgkm") ||
         line.starts_with("s_waitcnt_vscnt");
}

/// gfx9 waits for stores as for loads. gfx12 has a counter for each kind of access.
std::string wait_on(const Target& target, const std::string& line) {
  const int chip = generation(target);
  if (chip == 9 && line.starts_with("s_waitcnt_vscnt")) return "s_waitcnt vmcnt(0)";
  if (chip != 12) return line;
  if (line.starts_with("s_waitcnt_vscnt")) return "s_wait_storecnt 0x0";
  std::string waits;
  if (line.find("vmcnt(0)") != line.npos) waits = "s_wait_loadcnt 0x0";
  if (line.find("lgkmcnt(0)") != line.npos) {
    waits += std::string(waits.empty() ? "" : "\n") + "s_wait_dscnt 0x0\ns_wait_kmcnt 0x0";
  }
  return waits;
}

std::string instruction_on(const Target& target, std::string line) {
  const int chip = generation(target);
  const std::vector<Piece> all = pieces(line);
  for (auto piece = all.rbegin(); piece != all.rend(); ++piece) {
    const std::string word = line.substr(piece->at, piece->end - piece->at);
    if (!is_mnemonic(word)) continue;
    const size_t end = without_suffix(word);
    const std::string name = name_on(target, word.substr(0, end)) + word.substr(end);
    line.replace(piece->at, word.size(), name);
  }
  if (line.ends_with(" glc") && (is_gfx940(target) || chip == 12)) {
    line = replaced(line, " glc", chip == 12 ? " th:TH_ATOMIC_RETURN" : " sc0");
  }
  if (chip == 12 && line.starts_with("buffer_")) line = replaced(line, "], 0 ", "], null ");
  return line;
}

}  // namespace

int generation(const Target& target) {
  return target.arch.size() == 6 ? target.arch[3] - '0' : std::stoi(target.arch.substr(3, 2));
}

bool is_gfx9(const Target& target) { return generation(target) == 9; }

uint32_t default_mode(const Target& target) {
  return generation(target) == 12 ? kDefaultMode & ~kModeIeee : kDefaultMode;
}

std::string name_on(const Target& target, const std::string& name) {
  const int chip = generation(target);
  if (name.starts_with("v_dual_")) {
    return "v_dual_" + name_on(target, "v_" + name.substr(7)).substr(2);
  }
  if (is_gfx940(target) && name.starts_with("v_mfma_")) return matrix_name(name);
  if (chip < 11) return name_before_gfx11(chip, name);
  return chip == 12 ? name_on_gfx12(name) : name;
}

std::string text_on(const Target& target, const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const bool first = result.empty();
    // A wait that comes first is what a case tests.
    result += first ? instruction_on(target, line)
                    : "\n" + (is_wait(line) ? wait_on(target, line) : instruction_on(target, line));
  }
  return result;
}

std::vector<std::string> mnemonics_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    for (const Piece& piece : pieces(line)) {
      const std::string word = line.substr(piece.at, piece.end - piece.at);
      if (is_mnemonic(word)) all.push_back(word.substr(0, without_suffix(word)));
    }
  }
  return all;
}

}  // namespace emu::test
