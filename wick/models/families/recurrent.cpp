// Models with recurrent layers: state spaces, short convolutions and linear attention.
#include "wick/models/families/families.h"

namespace wick::models {
namespace {

/// Errors: a layer that attends has no heads.
void require_heads(const DecoderConfig& c, const Metadata& m) {
  for (const LayerConfig& layer : c.layers) {
    const bool attends =
        layer.mixer == Mixer::attention || layer.mixer == Mixer::attention_and_mamba2;
    if (attends && layer.heads == 0) m.out_of_range("attention.head_count", "0", "1 or more");
  }
}

}  // namespace

/// Source: Dao and Gu, "Transformers are SSMs", 2024.
DecoderConfig mamba2(const Metadata& m) {
  DecoderConfig c = hybrid_config(m);
  read_recurrent(c, m);
  c.mlp_norm = false;
  for (LayerConfig& layer : c.layers) {
    layer.mixer = Mixer::mamba2;
    layer.intermediate = 0;
  }
  return c;
}

/// Source: Falcon LLM Team, "Falcon-H1", 2025. Its multipliers are part of the file's weights.
DecoderConfig falcon_h1(const Metadata& m) {
  DecoderConfig c = hybrid_config(m);
  c.rope_style = RopeStyle::neox;
  read_recurrent(c, m);
  for (LayerConfig& layer : c.layers) layer.mixer = Mixer::attention_and_mamba2;
  require_heads(c, m);
  return c;
}

/// Source: Liquid AI, "LFM2 Technical Report", 2025. Layers without key/value heads convolve.
DecoderConfig lfm2(const Metadata& m) {
  DecoderConfig c = hybrid_config(m);
  c.rope_style = RopeStyle::neox;
  c.output_norm_name = "token_embd_norm";
  c.recurrent.taps = m.count("shortconv.l_cache", 64);
  for (LayerConfig& layer : c.layers) {
    layer.mixer = layer.heads == 0 ? Mixer::short_conv : Mixer::attention;
    layer.qk_norm = QkNorm::heads;
  }
  return c;
}

/// Source: Qwen Team, "Qwen3-Next", 2025.
DecoderConfig qwen3_next(const Metadata& m) {
  DecoderConfig c = hybrid_config(m);
  c.rope_style = RopeStyle::neox;
  c.mlp_norm_name = "post_attention_norm";
  c.query_gates = true;
  c.experts.normalize = true;
  read_experts(c, m);
  read_recurrent(c, m);
  const auto layers = static_cast<int64_t>(c.layers.size());
  constexpr const char* kRecurrent = "attention.recurrent_layers";
  std::vector<bool> recurrent;
  if (m.contains(kRecurrent)) {
    recurrent = m.bools(kRecurrent, layers);
  } else {
    const int64_t period = m.count("full_attention_interval", layers, 4);
    for (int64_t i = 0; i < layers; ++i) recurrent.push_back((i + 1) % period != 0);
  }
  for (size_t i = 0; i < c.layers.size(); ++i) {
    c.layers[i].mixer = recurrent[i] ? Mixer::delta_net : Mixer::attention;
    c.layers[i].qk_norm = QkNorm::heads;
  }
  require_heads(c, m);
  return c;
}

}  // namespace wick::models
