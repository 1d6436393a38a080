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
  Chosen choose(const Tensor& x, Runs runs) const;
  Tensor within_groups(const Tensor& selection) const;

  ExpertsConfig config_;
  Activation activation_;
  nn::Linear router_;
  Tensor selection_bias_;          // f32 [count], added to the scores that choose
  std::vector<Weight> in_, down_;  // of each expert: gate and up stacked, down
  Tensor in_bias_, down_bias_;     // [count, 2 · width], [count, hidden], or undefined
  std::optional<Mlp> shared_;
  std::optional<nn::Linear> shared_gate_;  // [1, hidden]
};

}  // namespace wick::models
