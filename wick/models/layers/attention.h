#pragma once

#include <optional>

#include "wick/models/layers/loader.h"
#include "wick/models/layers/step.h"
#include "wick/nn/kv_cache.h"

namespace wick::models {

/// Grouped-query attention with a paged cache, or, in encoders, without one. Sources: Ainslie et
/// al., "GQA", 2023; Su et al., "RoFormer", 2021.
class GroupedAttention {
 public:
  explicit GroupedAttention(const LayerLoader& loader);

  /// What the cache stores for a layer.
  static nn::KvLayer cache_of(const LayerConfig& layer) {
    if (layer.cache_of != LayerConfig::kOwnCache) return {};
    return {layer.kv_heads, layer.key_size, layer.value_size};
  }
  /// x [t, hidden] → concatenated heads [t, h · e]. Stores keys and values in the cache.
  Tensor operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  /// The projection of the heads: [t, h · e] → [t, hidden].
  Tensor output(const Tensor& heads, Runs runs) const { return output_(heads, runs); }

 private:
  void load_projections(const LayerLoader& loader);
  void load_norms(const LayerLoader& loader);
  std::vector<Tensor> queries_keys_values(const Tensor& x, Runs runs) const;

  LayerConfig layer_;
  AttentionOptions options_;
  bool norm_after_rope_, has_gates_;
  AdaptedLinear qkv_;
  std::optional<nn::Norm> query_norm_, key_norm_, value_norm_;
  Tensor sinks_;
  AdaptedLinear output_;
};

}  // namespace wick::models
