#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wick/models/layers/adapted_stack.h"
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

  // The same in three parts, for experts on another device than the rest of the layer.

  /// The experts of each row, u32 [t, used], and their weights, f32 [t, used].
  struct Chosen {
    Tensor ids, weights;
  };
  /// What precedes the experts.
  struct Routed {
    Tensor x;  ///< the experts' input [t, hidden]
    Chosen chosen;
    Tensor shared;  ///< the result of the MLP that all rows go through; undefined if there is none
  };
  /// x [t, hidden], on the layer's device.
  Routed route(const Tensor& x, Runs runs) const;
  /// The experts' results, weighed and added, [t, hidden]. The tensors are on the experts' device.
  Tensor through_experts(const Tensor& x, const Chosen& chosen, Runs runs) const;
  /// Adds the shared MLP's result to that of the experts, on the layer's device → [t, hidden].
  Tensor finish(const Tensor& of_experts, const Tensor& shared) const;
  bool has_shared() const { return shared_.has_value(); }

 private:
  void load_scales(const LayerLoader& loader);
  void load_updates(const LayerLoader& loader);
  void load_extras(const LayerLoader& loader);
  Chosen choose(const Tensor& x, Runs runs) const;
  /// The product of each row with the experts in `ids`.
  Tensor grouped(const Tensor& x, const std::vector<Weight>& weights,
                 const std::vector<std::string>& names, const Tensor& ids, Runs runs) const;
  Tensor within_groups(const Tensor& selection) const;

  ExpertsConfig config_;
  Activation activation_;
  AdaptedLinear router_;
  std::optional<nn::Norm> router_norm_;            // of the router's input
  Tensor selection_bias_;                          // f32 [count], added to the scores that choose
  std::vector<Weight> in_, down_;                  // of each expert: gate and up stacked, down
  std::vector<std::string> in_names_, down_name_;  // of the weights in the file
  /// Factors of the matrices, f32 [count, 2 · width] and [count, 1], or undefined.
  Tensor in_scales_, down_scales_;
  StackUpdates in_updates_, down_updates_;  // of adapters
  Tensor in_bias_, down_bias_;              // [count, 2 · width], [count, hidden], or undefined
  std::optional<Mlp> shared_;
  std::optional<nn::Linear> shared_gate_;  // [1, hidden]
  /// For experts beside the layer's MLP: norms before and after each of the two.
  std::optional<nn::Norm> mlp_norm_, norm_, mlp_post_norm_, post_norm_;
};

}  // namespace wick::models
