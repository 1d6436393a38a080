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

}  // namespace wick::models
