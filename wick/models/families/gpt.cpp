#include "wick/models/families/families.h"

namespace wick::models {
namespace {

/// Layer norms, and an MLP without a gate.
DecoderConfig plain(const Metadata& m, Activation activation) {
  DecoderConfig c = layer_norm_config(m);
  c.rope_style = RopeStyle::neox;
  c.gated = false;
  c.activation = activation;
  return c;
}

bool first_layer_has(const Metadata& m, const char* name) {
  return m.file().find_tensor(std::string("blk.0.") + name + ".weight") != nullptr;
}

void norm_heads_if_present(DecoderConfig& c, const Metadata& m) {
  if (!first_layer_has(m, "attn_q_norm")) return;
  for (LayerConfig& layer : c.layers) layer.qk_norm = QkNorm::heads;
}

}  // namespace

/// Source: Radford et al., 2019.
DecoderConfig gpt2(const Metadata& m) {
  DecoderConfig c = plain(m, Activation::gelu);
  c.learned_positions = true;
  c.ropes.clear();
  for (LayerConfig& layer : c.layers) layer.rope = LayerConfig::kNoRope;
  return c;
}

/// Source: Black et al., "GPT-NeoX-20B", 2022.
DecoderConfig gpt_neox(const Metadata& m) {
  DecoderConfig c = plain(m, Activation::gelu_erf);
  c.parallel = m.flag("use_parallel_residual", true);
  return c;
}

/// Source: Microsoft Research, "Phi-2", 2023.
DecoderConfig phi2(const Metadata& m) {
  DecoderConfig c = plain(m, Activation::gelu);
  c.parallel = true;
  c.mlp_norm = false;
  return c;
}

/// Source: Lozhkov et al., "StarCoder 2", 2024.
DecoderConfig starcoder2(const Metadata& m) { return plain(m, Activation::gelu); }

/// Source: Bellagente et al., "Stable LM 2", 2024. The 12B model is parallel and has norms of each
/// head.
DecoderConfig stablelm(const Metadata& m) {
  DecoderConfig c = layer_norm_config(m);
  c.rope_style = RopeStyle::neox;
  c.parallel = !first_layer_has(m, "ffn_norm");
  c.mlp_norm = !c.parallel;
  norm_heads_if_present(c, m);
  return c;
}

/// Source: Parmar et al., "Nemotron-4", 2024.
DecoderConfig nemotron(const Metadata& m) { return plain(m, Activation::relu_squared); }

/// Command-R. Source: Cohere, 2024.
DecoderConfig command_r(const Metadata& m) {
  DecoderConfig c = layer_norm_config(m);
  c.parallel = true;
  c.mlp_norm = false;
  c.logit_scale = static_cast<float>(m.number_above("logit_scale", 0.0f, 1.0f));
  norm_heads_if_present(c, m);
  return c;
}

/// Command-R7B and Command-A. Source: Cohere, "Command A", 2025. Layers without a window have no
/// rope.
DecoderConfig cohere2(const Metadata& m) {
  DecoderConfig c = command_r(m);
  alternate_windows(c, m, 4, 4096);
  for (LayerConfig& layer : c.layers) {
    if (layer.window == 0) layer.rope = LayerConfig::kNoRope;
  }
  return c;
}

}  // namespace wick::models
