#pragma once

#include "wick/models/layers/loader.h"
#include "wick/models/layers/step.h"

namespace wick::models {

/// Embeddings that each layer adds to its output besides the model's: a table of the tokens and a
/// projection of the model's embeddings. Source: Gemma Team, "Gemma 3n", 2025.
class PerLayerEmbedding {
 public:
  /// Errors: those of Weights.
  PerLayerEmbedding(const DecoderConfig& config, const Weights& weights, Device device,
                    bool release);
  /// tokens [t] and their embeddings x [t, hidden] → [t, layers, size]
  Tensor operator()(const Tensor& tokens, const Tensor& x, Runs runs) const;

 private:
  int64_t layers_, size_;
  float table_scale_, projection_scale_;
  nn::Embedding table_;
  nn::Linear projection_;
  nn::Norm norm_;
};

/// What a layer adds for its row of PerLayerEmbedding: norm(W_out · (activation(W_in · x) ⊙ e)).
class PerLayerInput {
 public:
  explicit PerLayerInput(const LayerLoader& loader);
  /// x [t, hidden], e [t, size] → [t, hidden]
  Tensor operator()(const Tensor& x, const Tensor& e, Runs runs) const;

 private:
  Activation activation_;
  AdaptedLinear gate_, projection_;
  nn::Norm norm_;
};

}  // namespace wick::models
