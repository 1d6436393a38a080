#include "wick/models/layers/attention.h"

#include <array>

#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

/// y [t, n · size] → [t, n, size]
Tensor split_heads(const Tensor& y, int64_t size) {
  return y.reshape({y.size(0), y.size(1) / size, size});
}

}  // namespace

GroupedAttention::GroupedAttention(const LayerLoader& loader)
    : layer_(loader.layer),
      options_{.scale = loader.config.attention_scale,
               .causal = true,
               .window = layer_.window,
               .soft_cap = loader.config.attention_soft_cap},
      norm_after_rope_(loader.config.norm_after_rope) {
  load_projections(loader);
  load_norms(loader);
  if (loader.config.attention_sinks) {
    sinks_ = loader.weights.vector("attn_sinks.weight", layer_.heads).to(loader.device);
  }
  output_ = loader.linear("attn_output", loader.config.hidden, layer_.heads * layer_.value_size);
}

void GroupedAttention::load_projections(const LayerLoader& loader) {
  const LayerConfig& l = layer_;
  const DecoderConfig& c = loader.config;
  const int64_t values = l.kv_heads * l.value_size;
  if (loader.has("attn_qkv")) {
    std::vector<int64_t> order = loader.rotated_order(l.heads + l.kv_heads);
    const auto rotated = static_cast<int64_t>(order.size());
    if (rotated > 0) {
      for (int64_t i = 0; i < values; ++i) order.push_back(rotated + i);
    }
    const int64_t all = (l.heads + l.kv_heads) * l.key_size + values;
    qkv_ = loader.projections({{"attn_qkv", all, std::move(order)}}, c.hidden, c.qkv_biases);
    return;
  }
  if (!loader.has("attn_q")) loader.weights.missing("attn_q.weight or attn_qkv.weight");
  qkv_ = loader.projections({{"attn_q", l.heads * l.key_size, loader.rotated_order(l.heads)},
                             {"attn_k", l.kv_heads * l.key_size, loader.rotated_order(l.kv_heads)},
                             {"attn_v", values, {}}},
                            c.hidden, c.qkv_biases);
}

void GroupedAttention::load_norms(const LayerLoader& loader) {
  const LayerConfig& l = layer_;
  const auto of_rows = [&](std::string_view name, int64_t heads) {
    const Tensor weight = loader.weights.vector(std::string(name) + ".weight", heads * l.key_size);
    return nn::Norm(loader.config.norm, reordered(weight, loader.rotated_order(heads)), {},
                    loader.config.norm_eps, loader.device);
  };
  switch (l.qk_norm) {
    case QkNorm::none:
      break;
    case QkNorm::heads:
      query_norm_ = loader.head_norm("attn_q_norm", l.heads, l.key_size, loader.rotated_order(1));
      key_norm_ = loader.head_norm("attn_k_norm", l.kv_heads, l.key_size, loader.rotated_order(1));
      break;
    case QkNorm::rows:
      query_norm_ = of_rows("attn_q_norm", l.heads);
      key_norm_ = of_rows("attn_k_norm", l.kv_heads);
      break;
    case QkNorm::scaled:
      query_norm_ = nn::Norm(nn::NormKind::rms, Tensor::ones({l.key_size}, DType::f32), {},
                             loader.config.norm_eps, loader.device);
      key_norm_ = query_norm_;
      break;
  }
}

Tensor GroupedAttention::operator()(const Tensor& x, const StepRows& rows,
                                    const LayerCache& cache) const {
  const LayerConfig& l = layer_;
  const int64_t sizes[] = {l.heads * l.key_size, l.kv_heads * l.key_size,
                           l.kv_heads * l.value_size};
  const std::vector<Tensor> parts = qkv_.joined(x, rows.row_runs).split(sizes, -1);
  const bool of_rows = l.qk_norm == QkNorm::rows;
  const auto normed = [](const std::optional<nn::Norm>& norm, const Tensor& heads) {
    return norm ? (*norm)(heads) : heads;
  };
  Tensor q = split_heads(of_rows ? (*query_norm_)(parts[0]) : parts[0], l.key_size);
  Tensor k = split_heads(of_rows ? (*key_norm_)(parts[1]) : parts[1], l.key_size);
  const bool norms_heads = query_norm_ && !of_rows;
  if (norms_heads && !norm_after_rope_) q = normed(query_norm_, q), k = normed(key_norm_, k);
  const Tensor v = split_heads(parts[2], l.value_size);
  std::vector<Tensor> ys;
  for (const StepRows::Run& run : rows.runs) {
    Tensor of_q = run.of(q), of_k = run.of(k);
    nn::Rotation rotation;
    if (l.rope != LayerConfig::kNoRope) rotation = run.rotations[static_cast<size_t>(l.rope)];
    if (norms_heads && norm_after_rope_) {
      const auto rotated = [&](const Tensor& heads) {
        return rope_of_tokens(heads, rotation.cos, rotation.sin, true);
      };
      of_q = normed(query_norm_, rotated(of_q)), of_k = normed(key_norm_, rotated(of_k));
      rotation = {};
    }
    if (l.temperature) of_q = of_q * run.temperature;
    ys.push_back(nn::attend(of_q, of_k, run.of(v), run.rows, rotation, cache.keys, cache.values,
                            options_, sinks_));
  }
  return ys.size() == 1 ? ys.front() : cat(ys, 0);
}

}  // namespace wick::models
