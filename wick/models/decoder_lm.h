#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "wick/graph/compile.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder_config.h"
#include "wick/models/layers/adapted_table.h"
#include "wick/models/layers/attention.h"
#include "wick/models/layers/delta_net.h"
#include "wick/models/layers/experts.h"
#include "wick/models/layers/latent_attention.h"
#include "wick/models/layers/mamba2.h"
#include "wick/models/layers/mlp.h"
#include "wick/models/layers/per_layer.h"
#include "wick/models/layers/position_tables.h"
#include "wick/models/layers/short_conv.h"
#include "wick/models/placement.h"
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
  int64_t short_context() const override { return short_context_; }
  int64_t parameters() const override { return parameters_; }
  bool has_experts() const override;
  nn::KvCache make_cache(int64_t context, DType dtype, int64_t sequences,
                         int64_t positions) const override;
  int64_t adapters() const override { return static_cast<int64_t>(adapters_.size()); }
  bool makes_logits() const override { return config_.causal && config_.makes_logits; }
  int64_t embedding_size() const override { return embedding_size_; }
  Tensor embed(std::span<const std::vector<int32_t>> sequences) const override;
  Device device() const override { return device_; }
  const std::string& placement() const override { return placement_text_; }
  size_t pieces() const override { return stages_.size(); }
  Device device_of(size_t piece) const override { return stages_[piece].device; }
  Carried run_piece(size_t piece, const Batch& batch, const nn::KvCache& cache,
                    const Carried& in) const override;

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
  /// A piece: consecutive layers on one device, or the experts of one layer that are on another
  /// device than the rest of it.
  struct Stage {
    Device device;
    size_t first = 0, end = 0;        // layers [first, end)
    bool only_experts = false;        // of the layer `first`
    bool after_experts = false;       // begins behind the experts of layer `first`
    bool before_experts = false;      // ends before the experts of layer end − 1
    std::vector<size_t> cached = {};  // the layers whose cache it reads, ascending
    std::shared_ptr<PositionTables> positions = {};
    std::shared_ptr<const Compiled> run = {};  // compiled run()
  };

  void make_placement(const io::ModelFile& file, const LoadOptions& options);
  void make_stages();
  void find_cached(Stage& stage) const;
  void compile_stages();
  bool ends_model(const Stage& stage) const;
  size_t moved_into(const Stage& stage) const;
  size_t kept_for(const Stage& stage) const;
  void load(const Weights& weights, const LoadOptions& options);
  Block load_layer(const Weights& weights, size_t index, bool release) const;
  static Block load_block(const LayerLoader& loader);
  static AnyMixer load_mixer(const LayerLoader& loader);
  void load_dense(const Weights& weights, bool release);
  void load_positions(const Weights& weights, const io::ModelFile& file);

  std::vector<Tensor> run(const Stage& stage, std::span<const Tensor> arguments) const;
  void add_arguments(const Stage& stage, const Batch& batch, const nn::KvCache& cache,
                     std::vector<Tensor>& arguments) const;
  Step step_of(const Stage& stage, std::span<const Tensor> arguments) const;
  StepRows slice_of(const Batch& batch, int64_t begin, int64_t count,
                    const PositionTables& positions) const;
  Carried through(const Stage& stage, Step& step, const Carried& in) const;
  std::vector<Tensor> begin(const Stage& stage, Step& step, const Carried& in) const;
  Carried hand_over(std::span<const Tensor> xs, const Step& step) const;
  Carried stop_before_experts(const Stage& stage, std::span<const Tensor> xs,
                              const Step& step) const;
  Tensor resume_after_experts(const Stage& stage, Step& step, const Carried& in) const;
  Tensor hidden_of_decoder(std::span<const std::vector<int32_t>> sequences) const;
  Tensor hidden_of_encoder(std::span<const std::vector<int32_t>> sequences) const;
  Step encoder_step(const Stage& stage, std::span<const std::vector<int32_t>> sequences) const;
  Tensor pooled(const Tensor& rows) const;
  Tensor embed_tokens(const StepRows& rows) const;
  Tensor layer(size_t index, const Tensor& x, const StepRows& rows, const LayerCache& cache) const;
  /// The input, the heads and the per-layer embeddings of a layer, of all slices' wanted rows.
  struct AfterAttention {
    Tensor x, heads, per_layer;
  };
  AfterAttention attended(size_t index, std::span<const Tensor> xs, const Step& step) const;
  Tensor heads_of(const Block& block, const Tensor& x, const StepRows& rows,
                  const LayerCache& cache) const;
  Tensor after_heads(size_t index, const Tensor& x, const Tensor& heads, const Tensor& per_layer,
                     Runs runs) const;
  Tensor before_mlp(const Block& block, const Tensor& x, const Tensor& heads, Runs runs) const;
  Tensor mlp_input(const Block& block, const Tensor& x, const Tensor& y) const;
  Tensor after_mlp(size_t index, const Tensor& y, const Tensor& out, const Tensor& per_layer,
                   Runs runs) const;
  Tensor added(const Tensor& to, const Tensor& part, const std::optional<nn::Norm>& norm) const;
  Tensor scaled(const Tensor& x) const;
  Tensor head(const Tensor& x, Runs runs) const;

  /// Errors: weights are read from the file, and the file changed after loading.
  void require_file(std::string_view op) const;

  DecoderConfig config_;
  std::vector<nn::KvLayer> cache_;         // what the cache stores for each layer
  std::shared_ptr<const io::Bytes> file_;  // set if the embedding table is mapped from the file
  Device device_;                          // of the last layer and of the logits
  int64_t parameters_ = 0;
  bool has_states_ = false;     // whether the cache has recurrent states
  bool block_weights_ = false;  // whether some weights are quantised
  AdaptedTable embedding_;
  Tensor learned_positions_;  // f32 [positions, hidden], or undefined
  Tensor token_type_;         // f32 [hidden], added to the embeddings, or undefined
  std::optional<nn::Norm> embedding_norm_;
  std::vector<Adapter> adapters_;
  std::optional<PerLayerEmbedding> per_layer_;
  std::vector<Block> blocks_;
  std::optional<nn::Norm> output_norm_;
  AdaptedLinear head_;
  std::vector<nn::Linear> dense_;  // of embeddings, after the pooling
  int64_t embedding_size_ = 0;
  Placement placement_;
  std::string placement_text_;
  std::vector<Stage> stages_;
  int64_t short_context_ = 0;
};

}  // namespace wick::models
