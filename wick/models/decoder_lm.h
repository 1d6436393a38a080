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
#include "wick/models/layers/experts.h"
#include "wick/models/layers/latent_attention.h"
#include "wick/models/layers/mlp.h"
#include "wick/models/layers/position_tables.h"
#include "wick/models/registry.h"
#include "wick/models/weights.h"

namespace wick::models {

/// A decoder: layers of attention with a paged cache, and an MLP or a mixture of experts. Families
/// differ in their DecoderConfig. Sources: Touvron et al., "LLaMA", 2023, and those that
/// wick/models/families names.
class WICK_API DecoderLm final : public CausalLm {
 public:
  /// Errors: those of CausalLm::load.
  DecoderLm(const io::ModelFile& file, const Architecture& architecture,
            const LoadOptions& options);

  const DecoderConfig& config() const { return config_; }
  int64_t vocab_size() const override { return config_.vocabulary; }
  int64_t context_length() const override { return config_.context; }
  int64_t parameters() const override { return parameters_; }
  nn::KvCache make_cache(int64_t context, DType dtype, int64_t sequences,
                         int64_t positions) const override;
  using CausalLm::forward;
  Tensor forward(const Batch& batch, nn::KvCache& cache) const override;
  Device device() const override { return device_; }

 private:
  struct Block {
    std::optional<nn::Norm> attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;
    std::variant<GroupedAttention, LatentAttention> attention;
    std::variant<Mlp, Experts> mlp;
  };
  struct Step;  // what the layers of one call share

  void load(const Weights& weights, const LoadOptions& options);
  static Block load_block(const LayerLoader& loader);
  void load_positions(const Weights& weights, const io::ModelFile& file);

  Tensor run(std::span<const Tensor> arguments, const PositionTables& positions) const;
  Step step_of(std::span<const Tensor> arguments, const PositionTables& positions) const;
  Tensor embed(const StepRows& rows) const;
  Tensor layer(const Block& block, const Tensor& x, const StepRows& rows,
               const LayerCache& cache) const;
  Tensor last_layer(std::span<const Tensor> xs, const Step& step) const;
  Tensor heads_of(const Block& block, const Tensor& x, const StepRows& rows,
                  const LayerCache& cache) const;
  Tensor after_heads(const Block& block, const Tensor& x, const Tensor& heads, Runs runs) const;
  Tensor scaled(const Tensor& x) const;
  Tensor head(const Tensor& x, Runs runs) const;

  /// Errors: weights are read from the file, and the file changed after loading.
  void require_file(std::string_view op) const;

  DecoderConfig config_;
  std::vector<nn::KvLayer> cache_;         // what the cache stores for each layer
  std::shared_ptr<const io::Bytes> file_;  // set if the embedding table is mapped from the file
  Device device_;
  int64_t parameters_ = 0;
  bool block_weights_ = false;  // whether some weights are quantised
  nn::Embedding embedding_;
  Tensor learned_positions_;  // f32 [positions, hidden], or undefined
  std::vector<Block> blocks_;
  nn::Norm output_norm_;
  nn::Linear head_;
  std::unique_ptr<PositionTables> positions_;
  /// For caches of more than long_context_ positions, if the model has other angles for these.
  std::unique_ptr<PositionTables> long_positions_;
  int64_t long_context_ = 0;
  Compiled run_, run_long_;  // compiled run() with each of the tables
};

}  // namespace wick::models
