#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wick/models/layers/adapted_stack.h"
#include "wick/models/layers/loader.h"
#include "wick/models/layers/step.h"
#include "wick/nn/kv_cache.h"

namespace wick::models {

/// Multi-head latent attention. The cache holds, for each position, one vector from which all
/// heads' keys and values are projected, behind the rotated elements that all heads share: [rotated
/// | latent]. The keys' projection is applied to the queries and the values' projection to the
/// results, so that attention reads the latent vectors in place. Source: DeepSeek-AI,
/// "DeepSeek-V2", 2024.
class LatentAttention {
 public:
  explicit LatentAttention(const LayerLoader& loader);

  /// What the cache stores for a layer.
  static nn::KvLayer cache_of(const DecoderConfig& config);
  /// x [t, hidden] → concatenated heads [t, h · e]. Stores latent vectors in the cache.
  Tensor operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  /// The projection of the heads: [t, h · e] → [t, hidden].
  Tensor output(const Tensor& heads, Runs runs) const { return output_(heads, runs); }

 private:
  void load_head_projections(const LayerLoader& loader);
  void load_updates(const LayerLoader& loader);
  Tensor queries(const Tensor& x, Runs runs) const;
  /// x [t, h, k] through a matrix [n, k] of each head → [t, h, n].
  Tensor by_head(const Tensor& x, const std::vector<Weight>& weights,
                 const std::vector<std::string>& names, const StackUpdates& updates,
                 Runs runs) const;

  LayerConfig layer_;
  LatentConfig latent_;
  AttentionOptions options_;
  std::optional<AdaptedLinear> query_down_;
  std::optional<nn::Norm> query_norm_;
  AdaptedLinear query_, key_value_down_;
  nn::Norm latent_norm_;
  std::vector<Weight> key_up_, value_up_;  // of each head: [latent, key], [value, latent]
  std::vector<std::string> key_up_name_, value_up_name_;  // in the file, if it has them by head
  StackUpdates key_updates_, value_updates_;              // of adapters
  Tensor heads_;                                          // u32 [h]: 0, 1, ..
  AdaptedLinear output_;
};

}  // namespace wick::models
