#pragma once

#include <optional>

#include "wick/models/layers/attention.h"
#include "wick/models/layers/short_conv.h"

namespace wick::models {

/// log(1 + exp(x)).
Tensor softplus(const Tensor& x);

/// A Mamba-2 mixer: a convolution, a state-space scan, and a gated norm. Source: Dao and Gu,
/// "Transformers are SSMs", 2024.
class Mamba2 {
 public:
  explicit Mamba2(const LayerLoader& loader);

  /// What the cache stores for a layer.
  static nn::KvLayer cache_of(const DecoderConfig& config);
  /// x [t, hidden] → concatenated heads [t, h · p]. Advances the cache's states.
  Tensor operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  /// The projection of the heads: [t, h · p] → [t, hidden].
  Tensor output(const Tensor& heads, Runs runs) const { return output_(heads, runs); }

 private:
  Tensor scanned(const Tensor& mixed, const Tensor& steps, const LayerCache& cache,
                 const Tensor& slots) const;

  RecurrentConfig sizes_;
  AdaptedLinear in_;  // z, the convolution's channels (x, b and c), and the steps' sizes
  LayerConv conv_;
  Tensor a_, d_, step_bias_;      // [h]
  std::optional<nn::Norm> norm_;  // of each group
  AdaptedLinear output_;
};

/// Attention and Mamba-2 side by side. Source: Falcon LLM Team, "Falcon-H1", 2025.
class AttentionAndMamba2 {
 public:
  explicit AttentionAndMamba2(const LayerLoader& loader);

  /// What the cache stores for a layer.
  static nn::KvLayer cache_of(const DecoderConfig& config, const LayerConfig& layer);
  /// x [t, hidden] → the heads of both [t, ..].
  Tensor operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  /// The sum of both projections: [t, ..] → [t, hidden].
  Tensor output(const Tensor& heads, Runs runs) const;

 private:
  int64_t attention_width_;
  GroupedAttention attention_;
  Mamba2 mamba_;
};

}  // namespace wick::models
