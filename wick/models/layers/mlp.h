#pragma once

#include "wick/models/layers/loader.h"
#include "wick/models/layers/step.h"

namespace wick::models {

/// activation(gate) · up. Shapes and dtypes are equal.
Tensor gated(Activation activation, const Tensor& gate, const Tensor& up);

/// An MLP of two projections, or of three with a gate. Source of gates: Shazeer, "GLU Variants
/// Improve Transformer", 2020.
class Mlp {
 public:
  Mlp() = default;
  /// Loads "ffn_gate", "ffn_up" and "ffn_down" with a suffix. An "ffn_up" of twice the width
  /// without an "ffn_gate" holds the gate's rows, too, before its own.
  Mlp(const LayerLoader& loader, int64_t width, std::string_view suffix = {});
  /// x [t, hidden] → [t, hidden]
  Tensor operator()(const Tensor& x, Runs runs) const;

 private:
  Activation activation_ = Activation::silu;
  bool gated_ = true;
  AdaptedLinear in_;
  AdaptedLinear down_;
};

}  // namespace wick::models
