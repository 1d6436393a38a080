#pragma once

#include <string_view>

#include "wick/models/layers/loader.h"
#include "wick/models/layers/step.h"
#include "wick/nn/kv_cache.h"

namespace wick::models {

/// The convolution of a layer's recurrent state: causal_conv with the sequences of a run.
class LayerConv {
 public:
  LayerConv() = default;
  /// Loads a weight [channels, taps] and, if the file has one, a bias.
  LayerConv(const LayerLoader& loader, std::string_view name, int64_t channels, int64_t taps);
  /// x [t, channels] → [t, channels]. Advances `state` [sequences, taps − 1, channels].
  Tensor operator()(const Tensor& x, const Tensor& state, const Tensor& slots) const {
    return causal_conv(x, weight_, state, slots, bias_);
  }

 private:
  Tensor weight_, bias_;
};

/// A gated convolution over few rows: c ⊙ conv(b ⊙ x), where b, c and x are projections of the
/// input. Source: Liquid AI, "LFM2 Technical Report", 2025.
class ShortConv {
 public:
  explicit ShortConv(const LayerLoader& loader);

  /// What the cache stores for a layer.
  static nn::KvLayer cache_of(const DecoderConfig& config) {
    return {.states = {{config.recurrent.taps - 1, config.hidden}}};
  }
  /// x [t, hidden] → [t, hidden]. Advances the cache's state.
  Tensor operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  Tensor output(const Tensor& y, Runs runs) const { return output_(y, runs); }

 private:
  AdaptedLinear in_;
  LayerConv conv_;
  AdaptedLinear output_;
};

}  // namespace wick::models
