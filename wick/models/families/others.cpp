#include <cmath>

#include "wick/math/scalar.h"
#include "wick/models/families/families.h"

namespace wick::models {
namespace {

DecoderConfig neox(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.rope_style = RopeStyle::neox;
  return c;
}

void norm_queries_and_keys(DecoderConfig& c, QkNorm norm) {
  for (LayerConfig& layer : c.layers) layer.qk_norm = norm;
}

}  // namespace

/// Phi 3, 3.5 and 4. Source: Abdin et al., "Phi-3", 2024.
DecoderConfig phi3(const Metadata& m) { return neox(m); }

/// Source: OLMo team, "2 OLMo 2 Furious", 2025: norms after attention and MLP, and of all heads of
/// the queries and keys together.
DecoderConfig olmo2(const Metadata& m) {
  DecoderConfig c = neox(m);
  c.attention_norm = c.mlp_norm = false;
  c.attention_post_norm = c.mlp_post_norm = true;
  norm_queries_and_keys(c, QkNorm::rows);
  return c;
}

/// Source: Muennighoff et al., "OLMoE", 2024.
DecoderConfig olmo_experts(const Metadata& m) {
  DecoderConfig c = neox(m);
  norm_queries_and_keys(c, QkNorm::rows);
  read_experts(c, m);
  return c;
}

DecoderConfig glm4(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.attention_post_norm = c.mlp_post_norm = true;
  return c;
}

/// Source: LG AI Research, "EXAONE 4.0", 2025: norms after attention and MLP. In models with
/// windows, layers without one have no rope.
DecoderConfig exaone4(const Metadata& m) {
  DecoderConfig c = neox(m);
  c.attention_norm = c.mlp_norm = false;
  c.attention_post_norm = c.mlp_post_norm = true;
  norm_queries_and_keys(c, QkNorm::heads);
  constexpr size_t kLayersOf32B = 64;
  if (c.layers.size() != kLayersOf32B && !m.contains("attention.sliding_window_pattern")) return c;
  alternate_windows(c, m, 4, 4096);
  for (LayerConfig& layer : c.layers) {
    if (layer.window == 0) layer.rope = LayerConfig::kNoRope;
  }
  return c;
}

DecoderConfig ernie4_5(const Metadata& m) { return llama_config(m); }

/// Source: Baidu, "ERNIE 4.5", 2025. The width of the shared expert in the metadata is wrong in
/// files of small models, so the tensor decides.
DecoderConfig ernie4_5_experts(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.experts.normalize = true;
  read_experts(c, m);
  c.experts.shared = 0;
  for (size_t i = 0; i < c.layers.size(); ++i) {
    const std::string name = "blk." + std::to_string(i) + ".ffn_up_shexp.weight";
    const io::GgufTensor* up = m.file().find_tensor(name);
    if (up != nullptr && up->shape.rank() == 2) c.experts.shared = up->shape[0];
  }
  return c;
}

/// Norms of queries and keys come after rope. Source: Tencent, "Hunyuan", 2025.
DecoderConfig hunyuan(const Metadata& m) {
  DecoderConfig c = neox(m);
  norm_queries_and_keys(c, QkNorm::heads);
  c.norm_after_rope = true;
  return c;
}

DecoderConfig hunyuan_experts(const Metadata& m) {
  DecoderConfig c = hunyuan(m);
  c.experts.normalize = true;
  read_experts(c, m);
  return c;
}

/// Source: OpenAI, "gpt-oss", 2025.
DecoderConfig gpt_oss(const Metadata& m) {
  DecoderConfig c = neox(m);
  c.mlp_norm_name = "post_attention_norm";
  c.ropes.front().whole_pairs = false;
  c.activation = Activation::clamped_swiglu;
  c.attention_sinks = true;
  c.qkv_biases = true;
  c.experts.gating = Gating::softmax_of_chosen;
  read_experts(c, m);
  alternate_windows(c, m, 2, 128);
  return c;
}

/// DeepSeek-V2, V3, R1 and models of their shape. Sources: DeepSeek-AI, "DeepSeek-V2" and
/// "DeepSeek-V3 Technical Report", 2024.
DecoderConfig deepseek2(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  constexpr int64_t kMostRank = 1 << 16;
  LatentConfig& latent = c.latent;
  latent.query_rank = m.integer("attention.q_lora_rank", 0, kMostRank, 0);
  latent.rank = m.count("attention.kv_lora_rank", kMostRank);
  latent.rotated = c.ropes.front().dims;
  for (LayerConfig& layer : c.layers) {
    layer.kv_heads = 1;
    layer.key_size = m.count("attention.key_length_mla", 576, layer.key_size);
    layer.value_size = m.count("attention.value_length_mla", 576, layer.value_size);
    if (layer.key_size <= latent.rotated) {
      m.out_of_range("attention.key_length_mla", std::to_string(layer.key_size),
                     "more than the rotated elements");
    }
  }
  read_experts(c, m);
  // YaRN multiplies the scores, instead of the angles' cosines and sines, by the square of
  // 1 + 0.1 · multiplier · log(factor). Files have a tenth of the multiplier.
  nn::RopeOptions& rope = c.ropes.front();
  c.attention_scale = 1.0f / std::sqrt(static_cast<float>(c.layers.front().key_size));
  if (rope.scaling == nn::RopeScaling::yarn) {
    const double multiplier =
        static_cast<double>(m.number("rope.scaling.yarn_log_multiplier", 0.0f));
    const double factor = 1.0 + multiplier * math::log(rope.factor);
    c.attention_scale *= static_cast<float>(factor * factor);
    rope.attention_factor /= 1.0 + 0.1 * math::log(rope.factor);
  }
  return c;
}

}  // namespace wick::models
