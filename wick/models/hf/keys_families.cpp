// What the keys of each family have besides those of keys.cpp. Values that a DecoderConfig has no
// field for are compared with what the family assumes.
#include <algorithm>
#include <cmath>

#include "wick/math/scalar.h"
#include "wick/models/hf/keys.h"

namespace wick::models::hf {
namespace {

int64_t layers_of(const Config& c) { return c.require_integer({"num_hidden_layers"}); }

void refuse_windows(const Config& c) {
  if (!c.flag("use_sliding_window", false) || !c.has({"sliding_window"})) return;
  const std::vector<std::string> types = c.texts("layer_types");
  const bool all_layers_full =
      !types.empty() &&
      std::all_of(types.begin(), types.end(), [](auto& t) { return t == "full_attention"; });
  if (!all_layers_full) c.unsupported("use_sliding_window", "need false");
}

/// Layers without rope: every fourth.
void require_every_fourth_without_rope(const Config& c) {
  if (c.has({"no_rope_layers"})) {
    const std::vector<int64_t> rotates = c.integers("no_rope_layers");  // 1: with rope
    for (size_t i = 0; i < rotates.size(); ++i) {
      if ((rotates[i] == 0) != ((i + 1) % 4 == 0)) {
        c.unsupported("no_rope_layers", "this version supports 0 for every fourth layer");
      }
    }
  } else if (c.integer({"no_rope_layer_interval"}).value_or(4) != 4) {
    c.unsupported("no_rope_layer_interval", "need 4");
  }
}

/// Layers with an MLP instead of experts (Qwen).
void dense_layers_keys(const Config& c, Keys& k) {
  const int64_t step = c.integer({"decoder_sparse_step"}).value_or(1);
  if (step != 1) k.set("interleave_moe_layer_step", step);
  std::vector<int64_t> dense = c.integers("mlp_only_layers");
  std::sort(dense.begin(), dense.end());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (dense[i] != static_cast<int64_t>(i)) {
      c.unsupported("mlp_only_layers", "this version supports the first layers");
    }
  }
  if (!dense.empty()) k.set("leading_dense_block_count", static_cast<int64_t>(dense.size()));
}

/// A flag that Python reads by its truth: files have false, true or a number.
bool truth_of(const Config& c, const char* name, bool or_else) {
  if (!c.has({name})) return or_else;
  const auto& value = c.json().at(name);
  if (value.is_number_integer()) return value != 0;
  return c.flag(name, or_else);
}

void normalize_key(const Config& c, Keys& k) {
  if (c.has({"norm_topk_prob"})) k.set_flag("expert_weights_norm", c.flag("norm_topk_prob", false));
}

}  // namespace

void window_key(const Config& c, Keys& k) {
  k.set("attention.sliding_window", c.integer({"sliding_window"}));
}

void window_pattern_key(const Config& c, Keys& k) {
  if (!c.has({"layer_types"})) return;
  std::vector<bool> local;
  for (const std::string& type : c.texts("layer_types")) {
    if (type != "sliding_attention" && type != "full_attention") {
      c.unsupported("layer_types", "this version supports sliding_attention and full_attention");
    }
    local.push_back(type == "sliding_attention");
  }
  if (static_cast<int64_t>(local.size()) != layers_of(c)) {
    c.invalid("layer_types", "one type for each of num_hidden_layers");
  }
  k.set_flags("attention.sliding_window_pattern", local);
}

void no_keys(const Config&, Keys&) {}

void llama_keys(const Config& c, Keys& k) { window_key(c, k); }

void llama4_keys(const Config& c, Keys& k) {
  // intermediate_size is that of experts.
  k.set("feed_forward_length", c.require_integer({"intermediate_size_mlp"}));
  k.set("expert_feed_forward_length", c.require_integer({"intermediate_size"}));
  k.set("interleave_moe_layer_step", c.integer({"interleave_moe_layer_step"}));
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty() && std::all_of(types.begin(), types.end(),
                                    [](const auto& type) { return type == "full_attention"; })) {
    k.set("attention.sliding_window", int64_t{0});
    return;
  }
  require_every_fourth_without_rope(c);
  for (size_t i = 0; i < types.size(); ++i) {
    if ((types[i] == "chunked_attention") != ((i + 1) % 4 != 0)) {
      c.unsupported("layer_types", "need full_attention for every fourth layer");
    }
  }
  k.set("attention.chunk_size", c.integer({"attention_chunk_size"}));
  // GGUF files have no keys for these.
  if (c.number({"floor_scale"}).value_or(8192) != 8192) c.unsupported("floor_scale", "need 8192");
  if (std::fabs(c.number({"attn_scale"}).value_or(0.1) - 0.1) > 1e-6) {
    c.unsupported("attn_scale", "need 0.1");
  }
  constexpr int64_t kExpertsWithoutNorm = 128;
  const bool normed = c.integer({"num_local_experts"}) != kExpertsWithoutNorm;
  if (c.flag("use_qk_norm", normed) != normed) {
    c.unsupported("use_qk_norm", "need true, or false for 128 experts");
  }
  if (!truth_of(c, "attn_temperature_tuning", true)) k.set("attention.temperature_scale", 0.0);
}

void mistral3_keys(const Config& c, Keys& k) {
  window_key(c, k);
  const Config rope = rope_of(c);
  k.set("rope.scaling.yarn_log_multiplier", rope.number({"mscale_all_dim"}));
  k.set("attention.temperature_scale", rope.number({"llama_4_scaling_beta"}));
}

void qwen_keys(const Config& c, Keys& k) {
  refuse_windows(c);
  if (!c.has({"num_experts_per_tok"})) return;
  k.set("expert_feed_forward_length", c.integer({"moe_intermediate_size"}));
  k.set("expert_shared_feed_forward_length", c.integer({"shared_expert_intermediate_size"}));
  dense_layers_keys(c, k);
  normalize_key(c, k);
}

void gemma_keys(const Config& c, Keys& k) {
  if (const auto size = c.number({"query_pre_attn_scalar"})) {
    if (!(*size > 0)) c.invalid("query_pre_attn_scalar", "more than 0");
    k.set("attention.scale", 1.0 / std::sqrt(*size));
  }
  k.set("attn_logit_softcapping", c.number({"attn_logit_softcapping"}));
  k.set("final_logit_softcapping", c.number({"final_logit_softcapping"}));
  window_key(c, k);
  k.set("attention.sliding_window_pattern", c.integer({"sliding_window_pattern"}));
  window_pattern_key(c, k);
}

void phi2_keys(const Config& c, Keys&) {
  if (c.flag("qk_layernorm", false)) c.unsupported("qk_layernorm", "need false");
}

void phi3_keys(const Config& c, Keys& k) {
  window_key(c, k);
  const Config rope = rope_of(c);
  const std::optional<double> original = rope.number({"original_max_position_embeddings"});
  k.set("rope.scaling.original_context_length", rope.integer({"original_max_position_embeddings"}));
  if (!rope.has({"long_factor"})) return;
  const double most = c.require_number({"max_position_embeddings"});
  if (!original || !(*original > 1)) {
    rope.invalid("original_max_position_embeddings", "more than 1");
  }
  const double scale = most / *original;
  k.set("rope.scaling.attn_factor",
        scale > 1 ? std::sqrt(1 + math::log(scale) / math::log(*original)) : 1.0);
}

void gpt2_keys(const Config& c, Keys& k) {
  if (!c.has({"n_inner"})) k.set("feed_forward_length", 4 * c.require_integer({"n_embd"}));
}

void gptneox_keys(const Config& c, Keys& k) {
  k.set_flag("use_parallel_residual", c.flag("use_parallel_residual", true));
}

void stablelm_keys(const Config& c, Keys& k) {
  k.set_flag("use_parallel_residual", c.flag("use_parallel_residual", false));
}

void partial_rope_keys(const Config& c, Keys& k) {
  k.set("attention.layer_norm_epsilon", c.number({"norm_eps", "layer_norm_eps"}));
  if (const auto factor = c.number({"factor"})) {
    k.set("rope.scaling.type", "linear");
    k.set("rope.scaling.factor", factor);
  }
}

void olmoe_keys(const Config& c, Keys& k) {
  normalize_key(c, k);
  if (c.has({"clip_qkv"})) c.unsupported("clip_qkv", "need null");
}

void granite_keys(const Config& c, Keys& k) {
  k.set("attention.scale", c.number({"attention_multiplier"}));
  k.set("embedding_scale", c.number({"embedding_multiplier"}));
  k.set("residual_scale", c.number({"residual_multiplier"}));
  k.set("logit_scale", c.number({"logits_scaling"}));
  k.set("expert_shared_feed_forward_length", c.integer({"shared_intermediate_size"}));
}

void cohere_keys(const Config& c, Keys& k) {
  k.set("context_length", c.integer({"model_max_length"}));
  k.set("logit_scale", c.number({"logit_scale"}));
}

void cohere2_keys(const Config& c, Keys& k) {
  k.set("logit_scale", c.number({"logit_scale"}));
  window_key(c, k);
  k.set("attention.sliding_window_pattern", c.integer({"sliding_window_pattern"}));
  window_pattern_key(c, k);
}

void deepseek_keys(const Config& c, Keys& k) {
  const int64_t rank = c.require_integer({"kv_lora_rank"});
  const int64_t rotated = c.require_integer({"qk_rope_head_dim"});
  const int64_t values = c.require_integer({"v_head_dim"});
  // The latent vector is the only key and value head of attention.
  k.set("attention.head_count_kv", int64_t{1});
  k.set("attention.kv_lora_rank", rank);
  k.set("attention.q_lora_rank", c.integer({"q_lora_rank"}));
  k.set("attention.key_length", rank + rotated);
  k.set("attention.value_length", rank);
  k.set("attention.key_length_mla", c.require_integer({"qk_nope_head_dim"}) + rotated);
  k.set("attention.value_length_mla", values);
  k.set("rope.dimension_count", rotated);
  const int64_t layers = layers_of(c);
  const bool has_experts = c.has({"n_routed_experts"});
  k.set("leading_dense_block_count",
        c.integer({"first_k_dense_replace"}).value_or(has_experts ? 0 : layers));
  k.set("expert_feed_forward_length", c.integer({"moe_intermediate_size", "intermediate_size"}));
  k.set("expert_shared_count", c.integer({"n_shared_experts"}).value_or(0));
  k.set("expert_weights_scale", c.number({"routed_scaling_factor"}));
  k.set_flag("expert_weights_norm", c.flag("norm_topk_prob", false));
  if (c.text({"topk_method"}).value_or("") != "greedy") {
    k.set("expert_group_count", c.integer({"n_group"}));
    k.set("expert_group_used_count", c.integer({"topk_group"}));
  }
  const std::string scores = c.text({"scoring_func"}).value_or("softmax");
  if (scores != "softmax" && scores != "sigmoid") {
    c.unsupported("scoring_func", "this version supports softmax and sigmoid");
  }
  k.set("expert_gating_func", int64_t{scores == "softmax" ? 1 : 2});
  if (const auto multiplier = rope_of(c).number({"mscale_all_dim"})) {
    k.set("rope.scaling.yarn_log_multiplier", 0.1 * *multiplier);  // files have a tenth
  }
}

void gpt_oss_keys(const Config& c, Keys& k) {
  window_key(c, k);
  window_pattern_key(c, k);
  k.set("expert_feed_forward_length", c.require_integer({"intermediate_size"}));
}

void smollm3_keys(const Config& c, Keys&) {
  refuse_windows(c);
  require_every_fourth_without_rope(c);
}

void exaone4_keys(const Config& c, Keys& k) {
  if (!c.has({"sliding_window"})) return;
  window_key(c, k);
  if (c.has({"layer_types"})) return window_pattern_key(c, k);
  if (!c.has({"sliding_window_pattern"})) return;
  std::vector<bool> local;
  const auto period = c.json().at("sliding_window_pattern");
  const std::string letters =
      period.is_string() ? c.text({"sliding_window_pattern"}).value_or("") : "";
  const int64_t count = period.is_string() ? static_cast<int64_t>(letters.size())
                                           : c.require_integer({"sliding_window_pattern"});
  if (count < 1) c.invalid("sliding_window_pattern", "letters, or at least 1");
  for (int64_t i = 0; i < layers_of(c); ++i) {
    local.push_back(letters.empty() ? (i + 1) % count != 0
                                    : letters[static_cast<size_t>(i % count)] == 'L');
  }
  k.set_flags("attention.sliding_window_pattern", local);
}

void ernie_experts_keys(const Config& c, Keys& k) {
  k.set("expert_count", c.require_integer({"moe_num_experts"}));
  k.set("expert_used_count", c.require_integer({"moe_k"}));
  k.set("interleave_moe_layer_step", c.integer({"moe_layer_interval"}));
  k.set("leading_dense_block_count", c.integer({"moe_layer_start_index"}));
  k.set("expert_feed_forward_length", c.same_integers("moe_intermediate_size"));
  k.set("expert_shared_count", c.integer({"moe_num_shared_experts"}));
}

void hunyuan_keys(const Config& c, Keys& k) {
  if (c.has({"moe_topk"})) {
    k.set("expert_used_count", c.same_integers("moe_topk"));
    k.set("expert_feed_forward_length", c.same_integers("moe_intermediate_size"));
    k.set("expert_shared_feed_forward_length", c.require_integer({"intermediate_size"}));
    k.set("expert_shared_count", c.same_integers("num_shared_expert"));
  }
  const Config rope = rope_of(c);
  if (rope.text({"rope_type"}).value_or("") != "dynamic") return rope_scaling_keys(c, k);
  // The base grows with alpha, and the models were trained for 256 K positions.
  const double alpha = rope.number({"alpha"}).value_or(1000.0);
  const double base = rope.number({"rope_theta"}).value_or(10000.0);
  const auto size = static_cast<double>(c.integer({"head_dim"}).value_or(128));
  constexpr int64_t kContext = 256 * 1024;
  if (!(alpha > 0)) rope.invalid("alpha", "more than 0");
  if (!(size > 2)) c.invalid("head_dim", "more than 2");
  k.set("rope.freq_base", base * math::pow(alpha, size / (size - 2)));
  k.set("context_length", kContext);
}

}  // namespace wick::models::hf
