#include <string>

#include "wick/math/scalar.h"
#include "wick/models/families/families.h"
#include "wick/nn/kv_cache.h"

namespace wick::models {
namespace {

/// Sources: Llama 4's attention, "iRoPE" (Meta, 2025).
constexpr int64_t kChunk = 8192;

/// The positions that layers with rope attend within. llama.cpp's files have no key for it.
int64_t chunk_of(const Metadata& m) {
  constexpr const char* kKey = "attention.chunk_size";
  const int64_t chunk = m.count(kKey, 1 << 30, kChunk);
  if (chunk % nn::KvCache::kPage != 0) {
    m.out_of_range(kKey, std::to_string(chunk),
                   "a multiple of " + std::to_string(nn::KvCache::kPage));
  }
  return chunk;
}

void without_rope(DecoderConfig& c, int64_t period) {
  for (size_t i = 0; i < c.layers.size(); ++i) {
    if ((static_cast<int64_t>(i) + 1) % period == 0) c.layers[i].rope = LayerConfig::kNoRope;
  }
}

}  // namespace

/// Llama 1 to 3, Mistral, Ministral, SmolLM, and Mixtral by its experts.
DecoderConfig llama(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  if (!m.contains("expert_count") || m.integer("expert_count", 0, 4096, 0) == 0) return c;
  c.experts.normalize = true;
  read_experts(c, m);
  return c;
}

DecoderConfig llama4(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.experts.gating = Gating::sigmoid;
  c.experts.weigh_inputs = true;
  read_experts(c, m);
  c.experts.shared = c.experts.intermediate;
  for (LayerConfig& layer : c.layers) layer.window = 0;
  // A window of 0 marks models whose layers all have rope.
  if (m.contains("attention.sliding_window") &&
      m.integer("attention.sliding_window", 0, INT32_MAX, 0) == 0) {
    return c;
  }
  without_rope(c, 4);
  // The key is wick's own; 0 stands for models without temperatures.
  const float scale = m.number("attention.temperature_scale", 0.1f);
  c.temperature = {.scale = scale, .length = kChunk, .offset = 1};
  constexpr int64_t kExpertsOfMaverick = 128;  // whose queries and keys have no norm
  for (LayerConfig& layer : c.layers) {
    const bool rotates = layer.rope != LayerConfig::kNoRope;
    layer.temperature = !rotates && scale != 0.0f;
    layer.chunked = rotates;
    if (rotates && c.experts.count != kExpertsOfMaverick) layer.qk_norm = QkNorm::scaled;
  }
  c.chunk = chunk_of(m);
  return c;
}

DecoderConfig mistral3(const Metadata& m) {
  DecoderConfig c = llama(m);
  c.temperature.scale = m.number("attention.temperature_scale", 0.0f);
  nn::RopeOptions& rope = c.ropes.front();
  c.temperature.length = rope.original_context;
  const double multiplier = static_cast<double>(m.number("rope.scaling.yarn_log_multiplier", 0.0f));
  rope.attention_factor /= 1.0 + 0.1 * multiplier * math::log(rope.factor);
  for (LayerConfig& layer : c.layers) layer.temperature = c.temperature.scale != 0.0f;
  return c;
}

DecoderConfig smollm3(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  without_rope(c, 4);
  return c;
}

DecoderConfig granite(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.embedding_scale = m.number("embedding_scale", 1.0f);
  c.residual_scale = m.number("residual_scale", 1.0f);
  c.logit_scale = 1.0f / static_cast<float>(m.number_above("logit_scale", 0.0f, 1.0f));
  return c;
}

DecoderConfig granite_experts(const Metadata& m) {
  DecoderConfig c = granite(m);
  c.experts.normalize = true;
  read_experts(c, m);
  return c;
}

}  // namespace wick::models
