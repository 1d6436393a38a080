#include "wick/io/file_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace wick::io {
namespace {

using Mix = FileType::Mix;

// In the order of their sizes.
constexpr std::array kFileTypes = {
    FileType{"f32", DType::f32, 0},
    FileType{"f16", DType::f16, 1},
    FileType{"bf16", DType::bf16, 32},
    FileType{"q8_0", DType::q8_0, 7},
    FileType{"q6_k", DType::q6_k, 18},
    FileType{"q5_1", DType::q5_1, 9},
    FileType{"q5_0", DType::q5_0, 8},
    FileType{"q5_k_m", DType::q5_k, 17, Mix::q5_k_m},
    FileType{"q5_k_s", DType::q5_k, 16, Mix::plain},
    FileType{"q5_k", DType::q5_k, 16},
    FileType{"q4_1", DType::q4_1, 3},
    FileType{"q4_0", DType::q4_0, 2},
    FileType{"q4_k_m", DType::q4_k, 15, Mix::q4_k_m},
    FileType{"q4_k_s", DType::q4_k, 14, Mix::q4_k_s},
    FileType{"q4_k", DType::q4_k, 14},
    FileType{"iq4_nl", DType::iq4_nl, 25, Mix::iq4},
    FileType{"iq4_xs", DType::iq4_xs, 30, Mix::iq4},
    FileType{"nvfp4", DType::nvfp4, 39},
    FileType{"mxfp4", DType::mxfp4, 38, Mix::mxfp4_moe},
    FileType{"q3_k_l", DType::q3_k, 13, Mix::q3_k_l},
    FileType{"q3_k_m", DType::q3_k, 12, Mix::q3_k_m},
    FileType{"q3_k_s", DType::q3_k, 11, Mix::plain},
    FileType{"q3_k", DType::q3_k, 11},
    FileType{"iq3_m", DType::iq3_s, 27, Mix::iq3_m},
    FileType{"iq3_s", DType::iq3_s, 26, Mix::iq3_s},
    FileType{"iq3_xs", DType::iq3_s, 22, Mix::iq3_xs},
    FileType{"iq3_xxs", DType::iq3_xxs, 23, Mix::iq3_xxs},
    FileType{"q2_k", DType::q2_k, 10, Mix::q2_k},
    FileType{"q2_k_s", DType::q2_k, 21, Mix::q2_k_s},
    FileType{"iq2_m", DType::iq2_s, 29, Mix::iq2_m},
    FileType{"iq2_s", DType::iq2_xs, 28, Mix::iq2_m},
    FileType{"iq2_xs", DType::iq2_xs, 20, Mix::iq2_xs},
    FileType{"q2_0", DType::q2_0, 41, Mix::few_levels},
    FileType{"tq2_0", DType::tq2_0, 37, Mix::few_levels},
    FileType{"iq2_xxs", DType::iq2_xxs, 19, Mix::iq2_xs},
    FileType{"iq1_m", DType::iq1_m, 31, Mix::iq1},
    FileType{"tq1_0", DType::tq1_0, 36, Mix::few_levels},
    FileType{"iq1_s", DType::iq1_s, 24, Mix::iq1},
    FileType{"q1_0", DType::q1_0, 40},
};

bool same_word(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == y;
  });
}

/// Whether every dtype of dtypes::kWeightFiles, and no other, has a file type of its name. Most
/// weights of iq2_s are iq2_xs, as in llama.cpp.
constexpr bool complete() {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const bool found = std::any_of(kFileTypes.begin(), kFileTypes.end(), [&](const FileType& t) {
      return t.name == name(dtype) && (t.dtype == dtype || dtype == DType::iq2_s);
    });
    if (found != dtypes::kWeightFiles.contains(dtype)) return false;
  }
  return true;
}
static_assert(complete());

/// Tensors of no layer come before those of the first one.
int64_t layer_or_none(std::string_view name) { return layer_of(name).value_or(-1); }

/// Whether a weight makes values of attention, alone or with queries and keys.
bool is_value(std::string_view name) {
  return name.find("attn_v.weight") != std::string_view::npos ||
         name.find("attn_qkv.weight") != std::string_view::npos ||
         name.find("attn_kv_b.weight") != std::string_view::npos;
}

/// Whether it's the second matrix of an MLP, alone or of experts. llama.cpp counts no biases.
bool is_down(std::string_view name) {
  return name.find("ffn_down") != std::string_view::npos && name.ends_with(".weight");
}

/// The first and the last eighth of n, and every third in between.
bool gets_more_bits(int64_t i, int64_t n) {
  return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

/// An integer under the architecture's prefix, or the largest of an array; 0 if there is none.
int64_t count_of(const ModelFile& model, const char* key) {
  const GgufValue* const architecture = model.find("general.architecture");
  const auto name = architecture == nullptr ? std::nullopt : architecture->as_string();
  const GgufValue* const value = name ? model.find(fmt::format("{}.{}", *name, key)) : nullptr;
  if (value == nullptr) return 0;
  if (!value->is_array()) return value->as_i64().value_or(0);
  int64_t largest = 0;
  for (const GgufValue& v : value->elements(4096)) {
    largest = std::max(largest, v.as_i64().value_or(0));
  }
  return largest;
}

}  // namespace

std::optional<FileType> find_file_type(std::string_view name) {
  for (const FileType& type : kFileTypes) {
    if (same_word(name, type.name)) return type;
  }
  return std::nullopt;
}

std::span<const FileType> file_types() { return kFileTypes; }

std::string file_type_names() {
  std::string text;
  for (size_t i = 0; i < kFileTypes.size(); ++i) {
    if (i > 0) text += i + 1 == kFileTypes.size() ? " or " : ", ";
    text += kFileTypes[i].name;
  }
  return text;
}

std::optional<FileType> file_type_of(DType dtype) {
  std::optional<FileType> found = find_file_type(name(dtype));
  if (found) {
    found->dtype = dtype;
    found->mix = Mix::none;
  }
  return found;
}

Mixture::Mixture(const ModelFile& model, const FileType& type, bool has_importance)
    : type_(type),
      has_importance_(has_importance),
      tied_(model.find_tensor("output.weight") == nullptr) {
  layers_ = count_of(model, "block_count");
  for (const GgufTensor& t : model.tensors()) {
    const int64_t layer = layer_or_none(t.name);
    layers_ = std::max(layers_, layer + 1);
    if (is_value(t.name)) value_layers_.push_back(layer);
    if (is_down(t.name)) downs_.emplace_back(layer, t.name);
  }
  std::sort(value_layers_.begin(), value_layers_.end());
  std::sort(downs_.begin(), downs_.end());
  layers_ = std::clamp<int64_t>(layers_, 0, 1 << 20);  // hostile files have any number
  experts_ = count_of(model, "expert_count");
  const int64_t queries = count_of(model, "attention.head_count");
  int64_t values = count_of(model, "attention.head_count_kv");
  if (values <= 0) values = queries;  // files without the key
  if (queries > 0 && values > 0) queries_per_value_ = queries / values;
  const GgufValue* const architecture = model.find("general.architecture");
  const auto name = architecture == nullptr ? std::nullopt : architecture->as_string();
  is_70b_ = layers_ == 80 && ((name == "llama" && queries != values) || name == "qwen2");
}

Mixture::Role Mixture::role_of(std::string_view name) const {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (name == "output.weight" || (tied_ && name == "token_embd.weight")) return Role::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Role::embedding;
  if (is_value(name)) return Role::value;
  if (has("attn_k.weight")) return Role::key;
  if (has("attn_q.weight")) return Role::query;
  if (has("attn_output.weight")) return Role::attention_output;
  if (has("ffn_up") || has("ffn_gate")) return Role::gate_or_up;
  if (has("ffn_down")) return Role::down;
  return Role::other;
}

/// Mixtures of one or two bits, in which few weights get more bits.
bool Mixture::is_low_bits() const {
  return type_.mix == Mix::iq1 || type_.mix == Mix::iq2_xs || type_.mix == Mix::iq2_m;
}

/// The output matrix has more bits, because its errors affect the logits directly.
DType Mixture::of_output(int64_t k) const {
  if (is_low_bits() || type_.mix == Mix::iq3_xxs) {
    return k % info(type_.dtype).block_elems == 0 ? DType::q5_k : DType::q8_0;
  }
  switch (type_.dtype) {
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1:
    case DType::q8_0:
    case DType::mxfp4:
      return DType::q8_0;
    default:
      return is_block(type_.dtype) ? DType::q6_k : type_.dtype;
  }
}

DType Mixture::of_embedding() const {
  switch (type_.mix) {
    case Mix::iq1:
    case Mix::iq2_xs:
      return DType::q2_k;
    case Mix::iq2_m:
    case Mix::iq3_xxs:
      return DType::iq3_s;
    case Mix::few_levels:
      return DType::q4_k;
    case Mix::mxfp4_moe:
      return DType::q8_0;
    default:
      return type_.dtype;
  }
}

DType Mixture::of_values(std::string_view name) const {
  if (is_low_bits()) {
    if (queries_per_value_ >= 4 || experts_ >= 4) return DType::q4_k;
    return type_.mix == Mix::iq2_m ? DType::iq3_s : DType::q2_k;
  }
  // The position among the layers that have values.
  const auto before =
      std::lower_bound(value_layers_.begin(), value_layers_.end(), layer_or_none(name));
  const int64_t at = before - value_layers_.begin();
  const auto count = static_cast<int64_t>(value_layers_.size());
  const bool shared = queries_per_value_ >= 4;
  DType dtype = type_.dtype;
  switch (type_.mix) {
    case Mix::q2_k:
      dtype = shared ? DType::q4_k : DType::q3_k;
      break;
    case Mix::q2_k_s:
      if (shared) dtype = DType::q4_k;
      break;
    case Mix::q3_k_m:
      dtype = at < 2 ? DType::q5_k : DType::q4_k;
      break;
    case Mix::q3_k_l:
      dtype = DType::q5_k;
      break;
    case Mix::q4_k_s:
      if (at < 4) dtype = DType::q5_k;
      break;
    case Mix::q4_k_m:
    case Mix::q5_k_m:
      if (gets_more_bits(at, count)) dtype = DType::q6_k;
      break;
    case Mix::iq4:
      if (shared) dtype = DType::q5_k;
      break;
    case Mix::iq3_xxs:
      if (!has_importance_) dtype = DType::iq3_s;
      if (shared) dtype = DType::q4_k;
      break;
    case Mix::iq3_xs:
    case Mix::iq3_s:
      if (shared) dtype = DType::q4_k;
      break;
    case Mix::iq3_m:
      dtype = DType::q4_k;
      break;
    default:
      break;
  }
  if (is_70b_ && (dtype == DType::q3_k || dtype == DType::q4_k)) dtype = DType::q5_k;
  return experts_ == 8 ? DType::q8_0 : dtype;
}

DType Mixture::of_keys() const {
  if (is_low_bits()) return experts_ == 8 ? DType::q4_k : type_.dtype;
  return experts_ == 8 ? DType::q8_0 : of_queries();
}

DType Mixture::of_queries() const {
  switch (type_.mix) {
    case Mix::iq3_xs:
      return DType::iq3_xxs;
    case Mix::iq3_xxs:
      return DType::iq2_s;
    default:
      return type_.dtype;
  }
}

DType Mixture::of_gate_or_up(int64_t layer) const {
  const bool middle = layer >= layers_ / 8 && layer < 7 * layers_ / 8;
  return type_.mix == Mix::iq3_xs && middle ? DType::iq3_xxs : type_.dtype;
}

DType Mixture::of_down(std::string_view name) const {
  const int64_t layer = layer_or_none(name);
  if (is_low_bits()) {
    // llama.cpp counts all these weights for these types, also if a layer has several.
    const auto at = std::lower_bound(downs_.begin(), downs_.end(),
                                     std::pair<int64_t, std::string>(layer, name));
    if (at - downs_.begin() >= layers_ / 8) return type_.dtype;
    return type_.mix == Mix::iq2_m ? DType::iq3_s : DType::q2_k;
  }
  const bool first_eighth = layer < layers_ / 8;
  switch (type_.mix) {
    case Mix::q2_k:
      return DType::q3_k;
    case Mix::q2_k_s:
      return first_eighth ? DType::q4_k : type_.dtype;
    case Mix::q3_k_m:
      return layer < layers_ / 16 ? DType::q5_k : DType::q4_k;
    case Mix::q3_k_l:
      return DType::q5_k;
    case Mix::q4_k_s:
      return first_eighth ? DType::q5_k : type_.dtype;
    case Mix::q4_k_m:
    case Mix::q5_k_m:
      return gets_more_bits(layer, layers_) ? DType::q6_k : type_.dtype;
    case Mix::iq4:
      return first_eighth && !has_importance_ ? DType::q5_k : type_.dtype;
    case Mix::iq3_xxs:
      if (has_importance_) return type_.dtype;
      return first_eighth ? DType::q4_k : DType::q3_k;
    case Mix::iq3_m:
      if (experts_ == 8 && gets_more_bits(layer, layers_)) return DType::q4_k;
      return first_eighth ? DType::q4_k : type_.dtype;
    default:
      return type_.dtype;
  }
}

DType Mixture::of_attention_output() const {
  if (experts_ == 8) {
    const bool as_others = type_.dtype == DType::q5_k || type_.mix == Mix::q3_k_l ||
                           type_.mix == Mix::q2_k_s || type_.mix == Mix::few_levels;
    return as_others ? type_.dtype : DType::q5_k;
  }
  switch (type_.mix) {
    case Mix::iq1:
      return DType::iq2_xxs;
    case Mix::iq2_m:
    case Mix::iq3_xxs:
      return DType::iq3_s;
    case Mix::iq3_m:
      return DType::q4_k;
    case Mix::q2_k:
      return DType::q3_k;
    case Mix::q3_k_m:
      return DType::q4_k;
    case Mix::q3_k_l:
      return DType::q5_k;
    default:
      return type_.dtype;
  }
}

DType Mixture::dtype_of(const GgufTensor& weight) const {
  const Role role = role_of(weight.name);
  if (role == Role::output) return of_output(weight.shape.back());
  if (role == Role::embedding) return of_embedding();
  if (type_.mix == Mix::none) return type_.dtype;
  if (type_.mix == Mix::mxfp4_moe) {
    const bool experts = weight.name.find("_exps.") != std::string_view::npos;
    return experts && weight.shape.rank() > 2 ? DType::mxfp4 : DType::q8_0;
  }
  switch (role) {
    case Role::value:
      return of_values(weight.name);
    case Role::down:
      return of_down(weight.name);
    case Role::key:
      return of_keys();
    case Role::query:
      return of_queries();
    case Role::gate_or_up:
      return of_gate_or_up(layer_or_none(weight.name));
    case Role::attention_output:
      return of_attention_output();
    default:
      return type_.dtype;
  }
}

}  // namespace wick::io
