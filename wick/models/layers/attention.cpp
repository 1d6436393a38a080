#include "wick/models/layers/attention.h"

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
               .causal = loader.config.causal,
               .window = loader.config.causal ? layer_.window : 0,
               .soft_cap = loader.config.attention_soft_cap},
      norm_after_rope_(loader.config.norm_after_rope),
      has_gates_(loader.config.query_gates) {
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
  // With gates, the file has each head's query rows before its gate rows.
  const int64_t rows_per_query = l.key_size * (has_gates_ ? 2 : 1);
  const auto of_queries = [&](int64_t first, const std::vector<int64_t>& order) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < l.heads * l.key_size; ++i) {
      const int64_t row = order.empty() ? i : order[static_cast<size_t>(i)];
      rows.push_back(row / l.key_size * rows_per_query + first + row % l.key_size);
    }
    return Projection{"attn_q", l.heads * rows_per_query, rows};
  };
  const std::vector<int64_t> query_order = loader.rotated_order(l.heads);
  std::vector<Projection> parts = {has_gates_
                                       ? of_queries(0, query_order)
                                       : Projection{"attn_q", l.heads * l.key_size, query_order}};
  if (l.cache_of == LayerConfig::kOwnCache) {
    parts.push_back({"attn_k", l.kv_heads * l.key_size, loader.rotated_order(l.kv_heads)});
    // Without a matrix of their own, values are the keys before norm and rope, in the file's order.
    const bool are_keys = c.value_norm && !loader.has("attn_v");
    parts.push_back({are_keys ? "attn_k" : "attn_v", values, {}});
  }
  if (has_gates_) parts.push_back(of_queries(l.key_size, {}));
  qkv_ = loader.projections(parts, c.hidden, c.qkv_biases);
}

void GroupedAttention::load_norms(const LayerLoader& loader) {
  const LayerConfig& l = layer_;
  const auto of_rows = [&](std::string_view name, int64_t heads) {
    const Tensor weight = loader.weights.vector(std::string(name) + ".weight", heads * l.key_size);
    return nn::Norm(loader.config.norm, reordered(weight, loader.rotated_order(heads)), {},
                    loader.config.norm_eps, loader.device);
  };
  if (loader.config.value_norm) {
    value_norm_ = nn::Norm(nn::NormKind::rms, Tensor::ones({l.value_size}, DType::f32), {},
                           loader.config.norm_eps, loader.device);
  }
  switch (l.qk_norm) {
    case QkNorm::none:
      break;
    case QkNorm::heads:
      query_norm_ = loader.head_norm("attn_q_norm", l.heads, l.key_size, loader.rotated_order(1));
      if (l.cache_of != LayerConfig::kOwnCache) break;
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

/// x [t, hidden] → queries [t, h, d], keys [t, g, d] and values [t, g, e], all before rope. Keys
/// and values are undefined in layers that read the cache of another. The fourth is the gates [t, h
/// · d], if there are any.
std::vector<Tensor> GroupedAttention::queries_keys_values(const Tensor& x, Runs runs) const {
  const LayerConfig& l = layer_;
  std::vector<int64_t> sizes = {l.heads * l.key_size};
  const bool own_cache = l.cache_of == LayerConfig::kOwnCache;
  if (own_cache) {
    sizes.push_back(l.kv_heads * l.key_size);
    sizes.push_back(l.kv_heads * l.value_size);
  }
  if (has_gates_) sizes.push_back(l.heads * l.key_size);
  const std::vector<Tensor> parts = qkv_(x, runs).split(sizes, -1);
  const bool of_rows = l.qk_norm == QkNorm::rows, first = !norm_after_rope_ && !of_rows;
  const auto heads = [&](size_t i, const std::optional<nn::Norm>& norm, int64_t size) {
    const Tensor of = split_heads(of_rows && norm ? (*norm)(parts[i]) : parts[i], size);
    return first && norm ? (*norm)(of) : of;
  };
  std::vector<Tensor> result = {heads(0, query_norm_, l.key_size)};
  if (!own_cache) return {result.front(), {}, {}};
  result.push_back(heads(1, key_norm_, l.key_size));
  const Tensor v = split_heads(parts[2], l.value_size);
  result.push_back(value_norm_ ? (*value_norm_)(v) : v);
  if (has_gates_) result.push_back(parts.back());
  return result;
}

Tensor GroupedAttention::operator()(const Tensor& x, const StepRows& rows,
                                    const LayerCache& cache) const {
  const LayerConfig& l = layer_;
  const std::vector<Tensor> qkv = queries_keys_values(x, rows.set());
  std::vector<Tensor> ys;
  for (const StepRows::Run& run : rows.runs) {
    const auto of_run = [&](const Tensor& t) { return t.defined() ? run.of(t) : t; };
    Tensor q = of_run(qkv[0]), k = of_run(qkv[1]);
    nn::Rotation rotation;
    if (l.rope != LayerConfig::kNoRope) rotation = run.rotations[static_cast<size_t>(l.rope)];
    if (norm_after_rope_ && query_norm_) {
      const auto normed = [&](const nn::Norm& norm, const Tensor& heads) {
        return norm(rope_of_tokens(heads, rotation.cos, rotation.sin, true));
      };
      q = normed(*query_norm_, q), k = normed(*key_norm_, k);
      rotation = {};
    }
    if (l.temperature) q = q * run.temperature;
    const Tensor v = of_run(qkv[2]);
    const nn::SequenceRows& of_cache = l.chunked && run.chunk ? *run.chunk : run.rows;
    ys.push_back(
        cache.keys.defined()
            ? nn::attend(q, k, v, of_cache, rotation, cache.keys, cache.values, options_, sinks_)
            : nn::attend_within(q, k, v, rotation, options_, l.window > 0 ? run.near : Tensor()));
  }
  const Tensor heads = ys.size() == 1 ? ys.front() : cat(ys, 0);
  return has_gates_ ? heads * sigmoid(qkv.back()) : heads;
}

}  // namespace wick::models
