// Models that make embeddings: each row sees all rows of its sequence.
#include "wick/models/families/families.h"

namespace wick::models {
namespace {

/// Norms follow the residual additions.
DecoderConfig post_norm(const Metadata& m) {
  DecoderConfig c = layer_norm_config(m);
  make_encoder(c, m);
  c.post_norm = c.attention_post_norm = c.mlp_post_norm = c.embedding_norm = c.token_types = true;
  c.attention_norm = c.mlp_norm = c.output_norm = false;
  c.attention_post_norm_name = "attn_output_norm";
  c.mlp_post_norm_name = "layer_output_norm";
  return c;
}

}  // namespace

/// BERT, MiniLM, BGE. Source: Devlin et al., "BERT", 2018.
DecoderConfig bert(const Metadata& m) {
  DecoderConfig c = post_norm(m);
  c.gated = false;
  c.activation = Activation::gelu_erf;
  c.learned_positions = true;
  c.ropes.clear();
  for (LayerConfig& layer : c.layers) layer.rope = LayerConfig::kNoRope;
  return c;
}

/// Source: Nussbaum et al., "Nomic Embed", 2024.
DecoderConfig nomic_bert(const Metadata& m) {
  DecoderConfig c = post_norm(m);
  c.rope_style = RopeStyle::neox;
  return c;
}

/// Source: Warner et al., "ModernBERT", 2024. Every third layer, from the first on, sees all rows;
/// the others see those within half a window, and have angles of their own.
DecoderConfig modern_bert(const Metadata& m) {
  DecoderConfig c = layer_norm_config(m);
  make_encoder(c, m);
  c.rope_style = RopeStyle::neox;
  c.embedding_norm = true;
  c.first_norm = false;
  const std::string_view activation = m.string("hidden_activation", "gelu");
  c.activation = activation == "silu" ? Activation::silu : Activation::gelu_erf;
  const int64_t period = m.count("attention.sliding_window_pattern", 4096, 3);
  c.ropes.push_back(
      {.dims = c.ropes.front().dims, .base = m.number_above("rope.freq_base_swa", 1.0f, 10000.0f)});
  for (size_t i = 0; i < c.layers.size(); ++i) {
    LayerConfig& layer = c.layers[i];
    if (static_cast<int64_t>(i) % period == 0) layer.window = 0;
    layer.rope = layer.window > 0 ? 1 : 0;
  }
  return c;
}

/// Source: Schechter Vera et al., "EmbeddingGemma", 2025.
DecoderConfig gemma_embedding(const Metadata& m) {
  DecoderConfig c = gemma3(m);
  make_encoder(c, m);
  return c;
}

}  // namespace wick::models
