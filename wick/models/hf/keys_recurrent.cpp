// The keys of models with recurrent layers, besides those of keys.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "wick/models/hf/keys.h"

namespace wick::models::hf {
namespace {

/// Steps of a scan aren't limited. Infinity is {"__float__": "Infinity"} or, in a file of Python's
/// json, a word that Config::read() replaces by null.
void require_no_step_limit(const Config& c) {
  const char* const name = "time_step_limit";
  if (!c.has({name})) return;
  const auto& limit = c.json().at(name);
  const auto is_infinite = [](const nlohmann::json& value) {
    return value.is_null() || (value.is_object() && value.value("__float__", "") == "Infinity");
  };
  if (limit.is_array() && limit.size() == 2 && limit[0] == 0.0 && is_infinite(limit[1])) return;
  c.unsupported(name, "need [0, Infinity]");
}

/// The width of a scan's heads together.
int64_t require_whole_heads(const Config& c, const char* name, int64_t inner, int64_t size) {
  if (size < 1 || inner < 1 || inner % size != 0) {
    c.invalid(name, fmt::format("a divisor of the scan's {} elements", inner));
  }
  return inner / size;
}

}  // namespace

void mamba2_keys(const Config& c, Keys& k) {
  require_no_step_limit(c);
  const int64_t inner = c.integer({"expand"}).value_or(2) * c.require_integer({"hidden_size"});
  const int64_t heads =
      require_whole_heads(c, "head_dim", inner, c.integer({"head_dim"}).value_or(64));
  if (c.integer({"num_heads"}).value_or(heads) != heads) {
    c.invalid("num_heads", fmt::format("{}, the heads of head_dim elements", heads));
  }
  k.remove("attention.key_length");
  k.remove("attention.value_length");
  k.remove("attention.layer_norm_epsilon");
  k.set("attention.layer_norm_rms_epsilon",
        c.number({"layer_norm_epsilon", "rms_norm_eps"}).value_or(1e-5));
  k.set("feed_forward_length", int64_t{0});
  k.set("ssm.conv_kernel", c.integer({"conv_kernel"}).value_or(4));
  k.set("ssm.inner_size", inner);
  k.set("ssm.state_size", c.integer({"state_size"}).value_or(128));
  k.set("ssm.time_step_rank", heads);
  k.set("ssm.group_count", c.integer({"n_groups"}).value_or(1));
}

void falcon_h1_keys(const Config& c, Keys& k) {
  require_no_step_limit(c);
  if (c.flag("mamba_rms_norm", false) && c.flag("mamba_norm_before_gate", true)) {
    c.unsupported("mamba_norm_before_gate", "need false");
  }
  if (!c.flag("mamba_use_mlp", true)) c.unsupported("mamba_use_mlp", "need true");
  const int64_t inner =
      c.integer({"mamba_d_ssm"})
          .value_or(c.integer({"mamba_expand"}).value_or(2) * c.require_integer({"hidden_size"}));
  k.set("ssm.conv_kernel", c.integer({"mamba_d_conv"}).value_or(4));
  k.set("ssm.inner_size", inner);
  k.set("ssm.state_size", c.integer({"mamba_d_state"}).value_or(256));
  k.set("ssm.time_step_rank",
        require_whole_heads(c, "mamba_d_head", inner, c.integer({"mamba_d_head"}).value_or(64)));
  k.set("ssm.group_count", c.integer({"mamba_n_groups"}).value_or(1));
}

std::vector<RowFactor> falcon_h1_factors(const Config& c, std::string_view tensor) {
  const bool bias = tensor.ends_with(".bias");
  const std::string_view stem = tensor.substr(0, tensor.rfind('.'));
  const auto one = [&](const char* name) { return c.number({name}).value_or(1.0); };
  // What multiplies a matrix's input doesn't multiply its bias.
  const auto input = [&](const char* name) { return bias ? 1.0 : one(name); };
  const auto listed = [&](const char* name, size_t index, size_t count) {
    const std::vector<double> all = c.numbers(name);
    if (!all.empty() && all.size() != count) c.invalid(name, fmt::format("{} numbers", count));
    return all.empty() ? 1.0 : all[index];
  };
  double factor = 1.0;
  if (stem == "token_embd") factor = one("embedding_multiplier");
  if (stem == "output") factor = one("lm_head_multiplier");
  if (stem == "attn_q" || stem == "attn_v") factor = input("attention_in_multiplier");
  if (stem == "attn_k") factor = input("attention_in_multiplier") * one("key_multiplier");
  if (stem == "attn_output") factor = one("attention_out_multiplier");
  if (stem == "ffn_gate") factor = listed("mlp_multipliers", 0, 2);
  if (stem == "ffn_down") factor = listed("mlp_multipliers", 1, 2);
  if (stem == "ssm_out") factor = one("ssm_out_multiplier");
  std::vector<RowFactor> factors = {{0, factor}};
  if (stem == "ssm_in") {  // the gate, x, b, c and the steps
    const int64_t inner =
        c.integer({"mamba_d_ssm"})
            .value_or(c.integer({"mamba_expand"}).value_or(2) * c.require_integer({"hidden_size"}));
    const int64_t shared =
        c.integer({"mamba_n_groups"}).value_or(1) * c.integer({"mamba_d_state"}).value_or(256);
    factors = {{inner, 1.0}, {inner, 1.0}, {shared, 1.0}, {shared, 1.0}, {0, 1.0}};
    for (size_t i = 0; i < factors.size(); ++i) {
      factors[i].factor = listed("ssm_multipliers", i, 5) * input("ssm_in_multiplier");
    }
  }
  if (std::all_of(factors.begin(), factors.end(), [](auto& f) { return f.factor == 1.0; })) {
    return {};
  }
  return factors;
}

void lfm2_keys(const Config& c, Keys& k) {
  const int64_t layers = c.require_integer({"num_hidden_layers"});
  const int64_t kv_heads = c.require_integer({"num_key_value_heads"});
  std::vector<int64_t> heads(static_cast<size_t>(layers), 0);
  if (c.has({"layer_types"})) {
    const std::vector<std::string> types = c.texts("layer_types");
    if (types.size() != heads.size()) {
      c.invalid("layer_types", "one type for each of num_hidden_layers");
    }
    for (size_t i = 0; i < heads.size(); ++i) {
      if (types[i] != "conv" && types[i] != "full_attention") {
        c.unsupported("layer_types", "this version supports conv and full_attention");
      }
      heads[i] = types[i] == "conv" ? 0 : kv_heads;
    }
  } else {
    for (const int64_t layer : c.integers("full_attn_idxs")) {
      if (layer >= layers) c.invalid("full_attn_idxs", "layers of the model");
      heads[static_cast<size_t>(layer)] = kv_heads;
    }
  }
  k.set_integers("attention.head_count_kv", heads);
  k.set("attention.layer_norm_rms_epsilon", c.number({"norm_eps", "block_norm_eps"}));
  k.set("shortconv.l_cache", c.require_integer({"conv_L_cache"}));
  int64_t width = c.require_integer({"block_ff_dim", "intermediate_size"});
  if (c.flag("block_auto_adjust_ff_dim", true)) {
    width = 2 * width / 3;
    const double factor = c.number({"block_ffn_dim_multiplier"}).value_or(1.0);
    const int64_t multiple = c.integer({"block_multiple_of"}).value_or(256);
    if (!(factor > 0 && factor < 64)) c.invalid("block_ffn_dim_multiplier", "0 to 64");
    if (multiple < 1) c.invalid("block_multiple_of", "at least 1");
    width = static_cast<int64_t>(factor * static_cast<double>(width));
    width = (width + multiple - 1) / multiple * multiple;
  }
  k.set("feed_forward_length", width);
}

void qwen3_next_keys(const Config& c, Keys& k) {
  qwen_keys(c, k);
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty()) {
    if (static_cast<int64_t>(types.size()) != c.require_integer({"num_hidden_layers"})) {
      c.invalid("layer_types", "one type for each of num_hidden_layers");
    }
    std::vector<bool> recurrent;
    for (const std::string& type : types) {
      if (type != "linear_attention" && type != "full_attention") {
        c.unsupported("layer_types", "this version supports linear_attention and full_attention");
      }
      recurrent.push_back(type == "linear_attention");
    }
    k.set_flags("attention.recurrent_layers", recurrent);
  }
  k.set("full_attention_interval", c.integer({"full_attention_interval"}).value_or(4));
  const int64_t heads = c.require_integer({"linear_num_value_heads"});
  k.set("ssm.conv_kernel", c.require_integer({"linear_conv_kernel_dim"}));
  k.set("ssm.state_size", c.require_integer({"linear_key_head_dim"}));
  k.set("ssm.group_count", c.require_integer({"linear_num_key_heads"}));
  k.set("ssm.time_step_rank", heads);
  k.set("ssm.inner_size", heads * c.require_integer({"linear_value_head_dim"}));
}

}  // namespace wick::models::hf
