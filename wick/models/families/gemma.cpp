#include <cmath>

#include "wick/models/families/families.h"

namespace wick::models {
namespace {

/// Gemma 2 and 3. The 27B model, recognised by its number of layers, derives the attention scale
/// from its hidden size.
DecoderConfig scaled_gemma(const Metadata& m, size_t layers_of_27b) {
  DecoderConfig c = gemma(m);
  c.attention_post_norm = c.mlp_post_norm = true;
  if (c.layers.size() == layers_of_27b && !m.contains("attention.scale")) {
    c.attention_scale =
        1.0f / std::sqrt(static_cast<float>(c.hidden) / static_cast<float>(c.layers.front().heads));
  }
  return c;
}

}  // namespace

DecoderConfig gemma(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.rope_style = RopeStyle::neox;
  c.activation = Activation::gelu;
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));
  return c;
}

DecoderConfig gemma2(const Metadata& m) {
  DecoderConfig c = scaled_gemma(m, 46);
  c.attention_soft_cap = m.number("attn_logit_softcapping", 50.0f);
  c.logit_soft_cap = m.number("final_logit_softcapping", 30.0f);
  alternate_windows(c, m, 2, 4096);
  return c;
}

DecoderConfig gemma3(const Metadata& m) {
  DecoderConfig c = scaled_gemma(m, 62);
  c.logit_soft_cap = m.number("final_logit_softcapping", 0.0f);
  if (!m.contains("rope.freq_base")) c.ropes.front().base = 1e6;
  alternate_windows(c, m, 6, 1024);
  // Layers with a window have unscaled angles of their own.
  c.ropes.push_back(
      {.dims = c.ropes.front().dims, .base = m.number_above("rope.freq_base_swa", 1.0f, 10000.0f)});
  for (LayerConfig& layer : c.layers) {
    layer.qk_norm = QkNorm::heads;
    layer.rope = layer.window > 0 ? 1 : 0;
  }
  return c;
}

/// Layers with a window have heads and angles of their own, the last layers read the keys and
/// values of earlier ones, and each layer may add embeddings of its own. Source: Gemma Team, "Gemma
/// 4", 2026.
DecoderConfig gemma4(const Metadata& m) {
  DecoderConfig c = gemma(m);
  c.attention_post_norm = c.mlp_post_norm = c.value_norm = true;
  c.attention_scale = 1.0f;
  c.logit_soft_cap = m.number("final_logit_softcapping", 0.0f);
  c.per_layer_size = m.integer("embedding_length_per_layer_input", 0, 1 << 16, 0);
  alternate_windows(c, m, 6, 1024);
  const int64_t size = c.layers.front().key_size;
  const int64_t local_size = m.count("attention.key_length_swa", 576, size);
  c.ropes.push_back({.dims = m.count("rope.dimension_count_swa", local_size, local_size),
                     .base = m.number_above("rope.freq_base_swa", 1.0f, 10000.0f)});
  if (m.contains("expert_count") && m.integer("expert_count", 0, 4096, 0) > 0) {
    c.experts.normalize = c.experts.beside_mlp = true;
    c.mlp_norm = false;  // the experts and the MLP beside them have norms of their own
    read_experts(c, m);
    c.experts.shared = 0;
  }
  const auto layers = static_cast<int64_t>(c.layers.size());
  const int64_t own = layers - m.integer("attention.shared_kv_layers", 0, layers - 1, 0);
  int last[2] = {LayerConfig::kOwnCache, LayerConfig::kOwnCache};  // without and with a window
  for (int64_t i = 0; i < layers; ++i) {
    LayerConfig& layer = c.layers[static_cast<size_t>(i)];
    layer.qk_norm = QkNorm::heads;
    layer.rope = layer.window > 0 ? 1 : 0;
    if (layer.window > 0) layer.key_size = layer.value_size = local_size;
    int& source = last[layer.rope];
    if (i < own) {
      source = static_cast<int>(i);
    } else if (source != LayerConfig::kOwnCache) {
      layer.cache_of = source;
    } else {
      m.out_of_range("attention.shared_kv_layers", std::to_string(layers - own),
                     "an earlier layer of each kind");
    }
  }
  return c;
}

}  // namespace wick::models
