#pragma once

#include "wick/models/layers/short_conv.h"

namespace wick::models {

/// Linear attention by the gated delta rule. Queries, keys and values go through a convolution;
/// queries and keys are then divided by their lengths. Sources: Yang et al., "Gated Delta
/// Networks", 2024; Qwen Team, "Qwen3-Next", 2025.
class DeltaNet {
 public:
  explicit DeltaNet(const LayerLoader& loader);

  /// What the cache stores for a layer.
  static nn::KvLayer cache_of(const DecoderConfig& config);
  /// x [t, hidden] → concatenated heads [t, h · e]. Advances the cache's states.
  Tensor operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  /// The projection of the heads: [t, h · e] → [t, hidden].
  Tensor output(const Tensor& heads, Runs runs) const { return output_(heads, runs); }

 private:
  Tensor scanned(const Tensor& mixed, const Tensor& decays, const Tensor& betas,
                 const LayerCache& cache, const Tensor& slots) const;

  RecurrentConfig sizes_;
  AdaptedLinear in_;  // the convolution's channels (q, k and v), z, and betas and decays
  LayerConv conv_;
  nn::Norm query_norm_, key_norm_;  // x / |x|, of queries also divided by √m
  Tensor a_, step_bias_;            // [h]
  nn::Norm norm_;                   // of each head
  AdaptedLinear output_;
};

}  // namespace wick::models
