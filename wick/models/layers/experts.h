#pragma once

#include <optional>
#include <vector>

#include "wick/models/layers/mlp.h"

namespace wick::models {

/// A mixture of experts: a router chooses some MLPs for each row and weighs their results. Sources:
/// Shazeer et al., 2017; DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024 (groups, biases that
/// only choose).
class Experts {
 public:
  explicit Experts(const LayerLoader& loader);
  /// x [t, hidden] → [t, hidden]
  Tensor operator()(const Tensor& x, Runs runs) const;

 private:
  /// The experts of each row, u32 [t, used], and their weights, f32 [t, used].
  struct Chosen {
    Tensor ids, weights;
  };
  void load_scales(const LayerLoader& loader);
  void load_extras(const LayerLoader& loader);
  Chosen choose(const Tensor& x, Runs runs) const;
  Tensor through_experts(const Tensor& x, const Chosen& chosen) const;
  Tensor within_groups(const Tensor& selection) const;

  ExpertsConfig config_;
  Activation activation_;
  AdaptedLinear router_;
  std::optional<nn::Norm> router_norm_;  // of the router's input
  Tensor selection_bias_;                // f32 [count], added to the scores that choose
  std::vector<Weight> in_, down_;        // of each expert: gate and up stacked, down
  /// Factors of the matrices, f32 [count, 2 · width] and [count, 1], or undefined.
  Tensor in_scales_, down_scales_;
  Tensor in_bias_, down_bias_;  // [count, 2 · width], [count, hidden], or undefined
  std::optional<Mlp> shared_;
  std::optional<nn::Linear> shared_gate_;  // [1, hidden]
  /// For experts beside the layer's MLP: norms before and after each of the two.
  std::optional<nn::Norm> mlp_norm_, norm_, mlp_post_norm_, post_norm_;
};

}  // namespace wick::models
