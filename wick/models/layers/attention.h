#pragma once

#include <optional>

#include "wick/models/layers/loader.h"
#include "wick/models/layers/step.h"

namespace wick::models {

/// Grouped-query attention with a paged cache. Sources: Ainslie et al., "GQA", 2023; Su et al.,
/// "RoFormer", 2021.
class GroupedAttention {
 public:
  explicit GroupedAttention(const LayerLoader& loader);

  /// x [t, hidden] → concatenated heads [t, h · e]. Stores keys and values in the cache.
  Tensor operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  /// The projection of the heads: [t, h · e] → [t, hidden].
  Tensor output(const Tensor& heads, Runs runs) const { return output_(heads, runs); }

 private:
  void load_projections(const LayerLoader& loader);
  void load_norms(const LayerLoader& loader);

  LayerConfig layer_;
  AttentionOptions options_;
  bool norm_after_rope_;
  nn::Projections qkv_;
  std::optional<nn::Norm> query_norm_, key_norm_;
  Tensor sinks_;
  nn::Linear output_;
};

}  // namespace wick::models
