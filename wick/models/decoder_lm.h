#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "wick/graph/compile.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder_config.h"
#include "wick/models/registry.h"
#include "wick/models/weights.h"
#include "wick/nn/attention.h"
#include "wick/nn/layers.h"
#include "wick/nn/rope.h"

namespace wick::models {

/// A Llama-like decoder: pre-norm blocks of grouped-query attention with rotary embeddings and a
/// gated MLP. Families differ in their DecoderConfig and their tensors. Sources: Touvron et al.,
/// "LLaMA", 2023; Dubey et al., "The Llama 3 Herd of Models", 2024; Yang et al., "Qwen2 Technical
/// Report", 2024, and "Qwen3 Technical Report", 2025; Gemma Team, "Gemma 2", 2024, and "Gemma 3
/// Technical Report", 2025; Abdin et al., "Phi-3", 2024.
class WICK_API DecoderLm final : public CausalLm {
 public:
  /// Errors: those of CausalLm::load.
  DecoderLm(const io::Gguf& file, const Architecture& architecture, const LoadOptions& options);

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
    int64_t index = 0;
    nn::RmsNorm attention_norm, mlp_norm;
    std::optional<nn::RmsNorm> query_norm, key_norm;
    std::optional<nn::RmsNorm> attention_post_norm, mlp_post_norm;
    nn::Projections qkv, gate_up;
    nn::Linear output, down;
  };
  struct Step;                               // state that the layers of one call share
  struct Slice;                              // rows that go through a layer together
  using Runs = std::span<const nn::RowRun>;  // the sequences that the rows of x belong to

  /// A matrix [rows, hidden] with its bias. `order` permutes the rows; empty: the file's order.
  struct Projection {
    std::string_view name;
    int64_t rows;
    std::vector<int64_t> order = {};
  };

  Block load_block(const Weights& weights, const TensorNames& names, int64_t index, bool release);
  nn::Projections load_qkv(const Weights& weights, const TensorNames& names, bool release);
  nn::Projections load_gate_up(const Weights& weights, const TensorNames& names, bool release);
  nn::Projections load_projections(const Weights& weights, std::vector<Projection> projections,
                                   bool need_biases, bool release);
  std::vector<int64_t> rotated_order(int64_t heads) const;
  void load_rope(const Weights& weights, const io::Gguf& file);

  Tensor run(std::span<const Tensor> arguments) const;
  Step step_of(std::span<const Tensor> arguments) const;
  std::array<nn::Rotation, 2> rotations(const Tensor& positions, int64_t reach) const;
  Tensor embed(const Tensor& tokens) const;
  Tensor layer(const Block& block, const Tensor& x, const Slice& slice, const Step& step) const;
  Tensor last_layer(std::span<const Tensor> xs, const Step& step) const;
  Tensor add_attention(const Block& block, const Tensor& x, const Tensor& heads, Runs runs) const;
  Tensor add_mlp(const Block& block, const Tensor& x, Runs runs) const;
  Tensor attention(const Block& block, const Tensor& x, const Slice& slice, const Step& step) const;
  std::array<Tensor, 3> queries_keys_values(const Block& block, const Tensor& x, Runs runs) const;
  Tensor mlp(const Block& block, const Tensor& x, Runs runs) const;
  Tensor head(const Tensor& x, Runs runs) const;
  AttentionOptions attention_options(int64_t window) const;

  /// Errors: weights are read from the file, and the file changed after loading.
  void require_file(std::string_view op) const;

  DecoderConfig config_;
  std::shared_ptr<const io::Bytes> file_;  // set if the embedding table is mapped from the file
  Device device_;
  int64_t parameters_ = 0;
  bool block_weights_ = false;  // whether some weights are quantised
  nn::Embedding embedding_;
  std::vector<Block> blocks_;
  nn::RmsNorm output_norm_;
  nn::Linear head_;
  mutable std::mutex rope_mutex_;
  // Tables for layers without and with a window. They grow as positions are first used. The second
  // is empty if both use the same angles.
  mutable std::array<nn::RopeTable, 2> rope_;
  Compiled run_;  // compiled run()
};

}  // namespace wick::models
