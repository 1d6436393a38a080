#include "wick/models/families/families.h"

namespace wick::models {
namespace {

/// Sets the width of experts for files that lack it: the experts that a row goes through are
/// together as wide as the MLP.
void share_width(DecoderConfig& c, const Metadata& m) {
  const int64_t used = m.integer("expert_used_count", 1, INT32_MAX, 1);
  c.experts.intermediate = c.layers.front().intermediate / used;
}

}  // namespace

DecoderConfig qwen2(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.rope_style = RopeStyle::neox;
  c.qkv_biases = true;
  return c;
}

DecoderConfig qwen2_experts(const Metadata& m) {
  DecoderConfig c = qwen2(m);
  share_width(c, m);
  read_experts(c, m);
  if (c.experts.shared == 0) c.experts.shared = c.layers.front().intermediate;
  return c;
}

DecoderConfig qwen3(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.rope_style = RopeStyle::neox;
  for (LayerConfig& layer : c.layers) layer.qk_norm = QkNorm::heads;
  return c;
}

DecoderConfig qwen3_experts(const Metadata& m) {
  DecoderConfig c = qwen3(m);
  c.experts.normalize = true;
  share_width(c, m);
  read_experts(c, m);
  return c;
}

}  // namespace wick::models
