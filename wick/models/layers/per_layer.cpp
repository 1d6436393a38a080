#include "wick/models/layers/per_layer.h"

#include <cmath>

#include "wick/models/layers/mlp.h"
#include "wick/tensor/ops.h"

namespace wick::models {

PerLayerEmbedding::PerLayerEmbedding(const DecoderConfig& config, const Weights& weights,
                                     Device device, bool release)
    : layers_(static_cast<int64_t>(config.layers.size())),
      size_(config.per_layer_size),
      table_scale_(std::sqrt(static_cast<float>(size_))),
      projection_scale_(1.0f / std::sqrt(static_cast<float>(config.hidden))) {
  const int64_t all = layers_ * size_;
  table_ =
      nn::Embedding(weights.matrix("per_layer_token_embd.weight", config.vocabulary, all), device);
  projection_ = nn::Linear(weights.matrix("per_layer_model_proj.weight", all, config.hidden), {},
                           device, release);
  norm_ = nn::Norm(config.norm, weights.vector("per_layer_proj_norm.weight", size_), {},
                   config.norm_eps, device);
}

Tensor PerLayerEmbedding::operator()(const Tensor& tokens, const Tensor& x, Runs runs) const {
  const Shape shape{x.size(0), layers_, size_};
  const Tensor of_tokens = (table_(tokens) * table_scale_).reshape(shape);
  const Tensor projected = (projection_(x, runs.sequences) * projection_scale_).reshape(shape);
  return (norm_(projected) + of_tokens) * std::sqrt(0.5f);
}

PerLayerInput::PerLayerInput(const LayerLoader& loader)
    : activation_(loader.config.activation),
      gate_(loader.linear("inp_gate", loader.config.per_layer_size, loader.config.hidden)),
      projection_(loader.linear("proj", loader.config.hidden, loader.config.per_layer_size)),
      norm_(loader.norm("post_norm", loader.config.hidden)) {}

Tensor PerLayerInput::operator()(const Tensor& x, const Tensor& e, Runs runs) const {
  return norm_(projection_(gated(activation_, gate_(x, runs), e), runs));
}

}  // namespace wick::models
