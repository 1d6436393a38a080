#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "wick/models/causal_lm.h"
#include "wick/models/decoder_config.h"
#include "wick/models/registry.h"
#include "wick/models/weights.h"
#include "wick/nn/layers.h"
#include "wick/nn/rope.h"

namespace wick::models {

struct Normed;
struct Product;

/// A decoder of the Llama kind: pre-norm blocks of grouped attention with rotary positions and a
/// gated MLP. Families differ by their DecoderConfig and the tensors that they have.
/// Sources: Touvron et al., "LLaMA", 2023; Dubey et al., "The Llama 3 Herd of Models", 2024; Yang
/// et al., "Qwen2 Technical Report", 2024, and "Qwen3 Technical Report", 2025; Gemma Team,
/// "Gemma 2", 2024, and "Gemma 3 Technical Report", 2025; Abdin et al., "Phi-3", 2024.
class WICK_API DecoderLm final : public CausalLm {
 public:
  /// Errors: those of CausalLm::load.
  DecoderLm(const io::Gguf& file, const Architecture& architecture, const LoadOptions& options);

  const DecoderConfig& config() const { return config_; }
  int64_t vocab_size() const override { return config_.vocabulary; }
  int64_t context_length() const override { return config_.context; }
  int64_t parameters() const override { return parameters_; }
  nn::KvCache make_cache(int64_t context, DType dtype) const override;
  Tensor forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const override;
  Tensor decode(const Tensor& token, const Tensor& position, nn::KvCache& cache) const override;
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
  /// Rows of one call that go through a layer together.
  struct Rows {
    int64_t begin;   // the first one's place in the call
    int64_t wanted;  // how many of the last ones the layer computes; the others' keys and values
                     // are stored
  };
  struct Step;  // what the blocks of one call share

  /// A matrix [rows, hidden] with its bias, whose rows are taken in an order; empty: the file's.
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

  Tensor embed(const Tensor& tokens) const;
  Tensor layer(const Block& block, Tensor x, Rows rows, const Step& step) const;
  Product attention(const Block& block, const Normed& x, Rows rows, const Step& step) const;
  Product attention_in_place(const Block& block, const Normed& x, const Step& step) const;
  Product mlp(const Block& block, const Normed& x) const;
  std::vector<Tensor> queries_keys_values(const Block& block, const Normed& x) const;
  Tensor head(const Tensor& x) const;
  AttentionParams params(int64_t window) const;

  /// Errors: weights are read from the file, and it was changed.
  void require_file(std::string_view op) const;
  /// Lets a step have the cosines and sines of `count` positions.
  void rotate(Step& step, int64_t start, int64_t count) const;

  DecoderConfig config_;
  std::shared_ptr<const io::Bytes> file_;  // mapped weights of the CPU; null on GPUs
  Device device_;
  int64_t parameters_ = 0;
  bool block_weights_ = false;  // some weights are quantised
  nn::Embedding embedding_;
  std::vector<Block> blocks_;
  nn::RmsNorm output_norm_;
  nn::Linear head_;
  mutable std::mutex rope_mutex_;
  // Of layers that see all keys, and of layers with a window. They grow as positions are first
  // used. The second stays empty where both are the same.
  mutable std::array<nn::RopeTable, 2> rope_;
};

}  // namespace wick::models
