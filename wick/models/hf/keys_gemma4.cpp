// The keys of Gemma 4, whose layers with and without a window have heads of their own.
#include <optional>
#include <string>

#include "wick/models/hf/keys.h"

namespace wick::models::hf {
namespace {

/// An integer of the layers without a window: of `name` in per_layer_config. Errors: they differ,
/// or a layer with a window has another one than the model.
std::optional<int64_t> of_full_layers(const Config& c, const char* name) {
  const Config layers = c.object("per_layer_config");
  const std::vector<std::string> types = c.texts("layer_types");
  std::optional<int64_t> found;
  for (size_t i = 0; i < types.size(); ++i) {
    const Config layer = layers.object(std::to_string(i).c_str());
    const std::optional<int64_t> value = layer.integer({name});
    if (!value) continue;
    if (types[i] != "full_attention" ? value != c.integer({name}) : found && value != found) {
      layer.unsupported(name, "layers of one type must have one value");
    }
    if (types[i] == "full_attention") found = value;
  }
  return found;
}

}  // namespace

int64_t gemma4_head_size(const Config& c) {
  constexpr int64_t kMost = 65536;
  const char* const name = c.has({"global_head_dim"}) ? "global_head_dim" : "head_dim";
  std::optional<int64_t> size = c.integer({"global_head_dim"});
  if (!size) size = of_full_layers(c, "head_dim");
  if (!size) size = c.require_integer({"head_dim"});
  if (*size < 1 || *size > kMost) c.invalid(name, "1 to 65536");
  return *size;
}

void gemma4_keys(const Config& c, Keys& k) {
  const std::vector<std::string> types = c.texts("layer_types");
  if (types.empty()) c.invalid("layer_types", "one type for each of num_hidden_layers");
  if (c.has({"use_bidirectional_attention"})) {
    const auto& value = c.json().at("use_bidirectional_attention");
    // "vision": images only.
    if (value != false && value != "vision") {
      c.unsupported("use_bidirectional_attention", "need null, false or vision");
    }
  }
  window_key(c, k);
  window_pattern_key(c, k);
  k.set("final_logit_softcapping", c.number({"final_logit_softcapping"}));
  k.set("attention.shared_kv_layers", c.integer({"num_kv_shared_layers"}).value_or(0));
  k.set("embedding_length_per_layer_input", c.integer({"hidden_size_per_layer_input"}).value_or(0));
  const int64_t full = gemma4_head_size(c), local = c.require_integer({"head_dim"});
  k.set("attention.key_length", full);
  k.set("attention.value_length", full);
  k.set("attention.key_length_swa", local);
  k.set("attention.value_length_swa", local);
  k.set("rope.dimension_count", full);
  const double part = c.object("rope_parameters")
                          .object("sliding_attention")
                          .number({"partial_rotary_factor"})
                          .value_or(1.0);
  k.set("rope.dimension_count_swa", static_cast<int64_t>(part * static_cast<double>(local)));
  std::optional<int64_t> kv_heads = c.integer({"num_global_key_value_heads"});
  if (!kv_heads) kv_heads = of_full_layers(c, "num_key_value_heads");
  const int64_t local_heads = c.require_integer({"num_key_value_heads"});
  if (kv_heads) {
    std::vector<int64_t> all;
    for (const std::string& type : types) {
      all.push_back(type == "full_attention" ? *kv_heads : local_heads);
    }
    k.set_integers("attention.head_count_kv", all);
  }
  if (c.flag("use_double_wide_mlp", false)) {
    const int64_t width = c.require_integer({"intermediate_size"});
    const size_t shared = static_cast<size_t>(c.integer({"num_kv_shared_layers"}).value_or(0));
    std::vector<int64_t> widths(types.size(), width);
    for (size_t i = 0; i < widths.size(); ++i) {
      if (i + shared >= widths.size()) widths[i] = 2 * width;
    }
    k.set_integers("feed_forward_length", widths);
  }
  if (!c.flag("enable_moe_block", false)) {
    k.remove("expert_count");
    return;
  }
  k.set("expert_used_count", c.require_integer({"top_k_experts"}));
  k.set("expert_feed_forward_length",
        c.require_integer({"moe_intermediate_size", "expert_intermediate_size"}));
}

}  // namespace wick::models::hf
