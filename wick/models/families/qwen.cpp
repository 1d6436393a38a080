#include "wick/models/families/families.h"

namespace wick::models {

DecoderConfig qwen2(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.rope_style = RopeStyle::neox;
  c.qkv_biases = true;
  return c;
}

DecoderConfig qwen2_experts(const Metadata& m) {
  DecoderConfig c = qwen2(m);
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
  read_experts(c, m);
  return c;
}

}  // namespace wick::models
