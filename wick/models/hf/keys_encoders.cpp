// The keys of models that make embeddings, besides those of keys.cpp.
#include <algorithm>

#include "wick/models/hf/keys.h"

namespace wick::models::hf {
namespace {

void refuse_flag(const Config& c, const char* name) {
  if (c.flag(name, false)) c.unsupported(name, "need false");
}

}  // namespace

void bert_keys(const Config& c, Keys& k) {
  refuse_flag(c, "is_decoder");
  refuse_flag(c, "add_cross_attention");
  if (c.text({"position_embedding_type"}).value_or("absolute") != "absolute") {
    c.unsupported("position_embedding_type", "need absolute");
  }
  k.set_flag("attention.causal", false);
}

/// The configuration is that of transformers, or that of the authors, whose names are GPT-2's.
void nomic_bert_keys(const Config& c, Keys& k) {
  for (const char* name : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "causal", "prenorm",
                           "rotary_emb_interleaved"}) {
    refuse_flag(c, name);
  }
  if (c.number({"rotary_emb_fraction"}).value_or(1.0) != 1.0) {
    c.unsupported("rotary_emb_fraction", "need 1");
  }
  if (c.has({"rotary_emb_scale_base"})) c.unsupported("rotary_emb_scale_base", "need null");
  if (c.integer({"moe_every_n_layers"}).value_or(0) != 0) {
    c.unsupported("moe_every_n_layers", "need 0");
  }
  // The authors' models name 8192 positions and were trained for fewer.
  const int64_t trained = c.integer({"max_trained_positions"}).value_or(2048);
  if (const auto positions = c.integer({"n_positions"})) {
    k.set("context_length", std::min(*positions, trained));
  }
  k.set_flag("attention.causal", false);
}

void modern_bert_keys(const Config& c, Keys& k) {
  const int64_t period = c.integer({"global_attn_every_n_layers"}).value_or(3);
  const std::vector<std::string> types = c.texts("layer_types");
  for (size_t i = 0; i < types.size(); ++i) {
    const bool full = period > 0 && static_cast<int64_t>(i) % period == 0;
    if (types[i] != (full ? "full_attention" : "sliding_attention")) {
      c.unsupported("layer_types", "need full_attention for each global_attn_every_n_layers-th");
    }
  }
  k.set("attention.sliding_window", c.require_integer({"local_attention"}));
  k.set("attention.sliding_window_pattern", period);
  k.set("attention.layer_norm_epsilon", c.number({"norm_eps"}));
  k.set("hidden_activation", c.text({"hidden_activation"}).value_or("gelu"));
  k.set("rope.scaling.type", "none");
  k.set_flag("attention.causal", false);
}

}  // namespace wick::models::hf
