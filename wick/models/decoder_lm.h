#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "wick/graph/compile.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder_config.h"
#include "wick/models/layers/attention.h"
#include "wick/models/layers/delta_net.h"
#include "wick/models/layers/experts.h"
#include "wick/models/layers/latent_attention.h"
#include "wick/models/layers/mamba2.h"
#include "wick/models/layers/mlp.h"
#include "wick/models/layers/per_layer.h"
#include "wick/models/layers/position_tables.h"
#include "wick/models/layers/short_conv.h"
#include "wick/models/registry.h"
#include "wick/models/weights.h"

namespace wick::models {

/// A decoder: layers of attention with a paged cache, or of mixers with recurrent states, and an
/// MLP or a mixture of experts. Families differ in their DecoderConfig. Sources: Touvron et al.,
/// "LLaMA", 2023, and those that wick/models/families names.
class WICK_API DecoderLm final : public CausalLm {
 public:
  /// Errors: those of CausalLm::load.
  DecoderLm(const io::ModelFile& file, const Architecture& architecture,
            const LoadOptions& options);

  const DecoderConfig& config() const { return config_; }
  int64_t vocab_size() const override { return config_.vocabulary; }
  int64_t context_length() const override { return config_.context; }
  int64_t chunk() const override { return config_.chunk; }
  int64_t parameters() const override { return parameters_; }
  nn::KvCache make_cache(int64_t context, DType dtype, int64_t sequences,
                         int64_t positions) const override;
  int64_t adapters() const override { return static_cast<int64_t>(adapters_.size()); }
  bool makes_logits() const override { return config_.causal; }
  int64_t embedding_size() const override { return config_.hidden; }
  Tensor embed(std::span<const std::vector<int32_t>> sequences) const override;
  using CausalLm::forward;
  Tensor forward(const Batch& batch, nn::KvCache& cache) const override;
  Device device() const override { return device_; }

 private:
  using AnyMixer = std::variant<GroupedAttention, LatentAttention, ShortConv, Mamba2,
                                AttentionAndMamba2, DeltaNet>;
  struct Block {
    std::optional<nn::Norm> attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;
    AnyMixer attention;
    std::optional<std::variant<Mlp, Experts>> mlp;
    std::optional<PerLayerInput> per_layer;
    Tensor output_scale;  // f32 [1], factor of the layer's result, or undefined
  };
  struct Step;  // what the layers of one call share

  void load(const Weights& weights, const LoadOptions& options);
  static Block load_block(const LayerLoader& loader);
  static AnyMixer load_mixer(const LayerLoader& loader);
  void load_positions(const Weights& weights, const io::ModelFile& file);

  Tensor run(std::span<const Tensor> arguments, const PositionTables& positions) const;
  std::vector<Tensor> arguments_of(const Batch& batch, const nn::KvCache& cache) const;
  Step step_of(std::span<const Tensor> arguments, const PositionTables& positions) const;
  Tensor hidden(Step& step) const;
  Tensor hidden_of_decoder(std::span<const std::vector<int32_t>> sequences) const;
  Tensor hidden_of_encoder(std::span<const std::vector<int32_t>> sequences) const;
  Tensor pooled(const Tensor& rows) const;
  Tensor embed_tokens(const StepRows& rows) const;
  Tensor layer(size_t index, const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  Tensor last_layer(std::span<const Tensor> xs, const Step& step) const;
  Tensor heads_of(const Block& block, const Tensor& x, const StepRows& rows,
                  const LayerCache& cache) const;
  Tensor after_heads(size_t index, const Tensor& x, const Tensor& heads, const Tensor& per_layer,
                     Runs runs) const;
  Tensor scaled(const Tensor& x) const;
  Tensor head(const Tensor& x, Runs runs) const;

  /// Errors: weights are read from the file, and the file changed after loading.
  void require_file(std::string_view op) const;

  DecoderConfig config_;
  std::vector<nn::KvLayer> cache_;         // what the cache stores for each layer
  std::shared_ptr<const io::Bytes> file_;  // set if the embedding table is mapped from the file
  Device device_;
  int64_t parameters_ = 0;
  bool has_states_ = false;     // whether the cache has recurrent states
  bool block_weights_ = false;  // whether some weights are quantised
  nn::Embedding embedding_;
  Tensor learned_positions_;  // f32 [positions, hidden], or undefined
  Tensor token_type_;         // f32 [hidden], added to the embeddings, or undefined
  std::optional<nn::Norm> embedding_norm_;
  std::vector<Adapter> adapters_;
  std::optional<PerLayerEmbedding> per_layer_;
  std::vector<Block> blocks_;
  std::optional<nn::Norm> output_norm_;
  AdaptedLinear head_;
  std::unique_ptr<PositionTables> positions_;
  /// For caches of more than long_context_ positions, if the model has other angles for these.
  std::unique_ptr<PositionTables> long_positions_;
  int64_t long_context_ = 0;
  Compiled run_, run_long_;  // compiled run() with each of the tables
};

}  // namespace wick::models
