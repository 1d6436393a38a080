#pragma once

#include <mutex>
#include <vector>

#include "wick/models/causal_lm.h"
#include "wick/nn/layers.h"
#include "wick/nn/rope.h"

namespace wick::models {

/// The sizes of a Llama as its GGUF metadata gives them.
struct WICK_API LlamaConfig {
  int64_t layers, hidden, intermediate, heads, kv_heads, head_size, value_size, vocabulary, context;
  float norm_eps;
  int64_t window;         ///< sliding window of keys a query sees, 0: all
  float attention_scale;  ///< multiplies q·k
  nn::RopeOptions rope;

  /// Errors: a missing key, or a value out of range, with the key's name.
  static LlamaConfig from(const io::Gguf& file);
};

/// Llama and its relatives (Llama 1 to 3, Mistral, SmolLM, TinyLlama …): pre-norm blocks of grouped
/// attention with rotary positions and a gated MLP.
/// Sources: Touvron et al., "LLaMA", 2023; Dubey et al., "The Llama 3 Herd of Models", 2024.
class WICK_API Llama final : public CausalLm {
 public:
  Llama(const io::Gguf& file, const LoadOptions& options);

  const LlamaConfig& config() const { return config_; }
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
    nn::RmsNorm attention_norm, mlp_norm;
    nn::Projections qkv, gate_up;
    nn::Linear output, down;
  };
  struct Step;  // what the layers of one call share

  Tensor attention(int64_t layer, const Tensor& x, const Batch& batch, const Step& step) const;
  static Tensor mlp(const Block& block, const Tensor& x);
  /// Errors: weights are read from the file, and it was changed.
  void require_file(std::string_view op) const;
  Step step_of(const nn::KvCache& cache) const;

  LlamaConfig config_;
  std::shared_ptr<const io::Bytes> file_;  // mapped weights of the CPU; null on GPUs
  Device device_;
  int64_t parameters_ = 0;
  bool block_weights_ = false;  // some weights are quantised
  nn::Embedding embedding_;
  std::vector<Block> blocks_;
  nn::RmsNorm output_norm_;
  nn::Linear head_;
  mutable std::mutex rope_mutex_;
  mutable nn::RopeTable rope_;  // grows as positions are first used
};

}  // namespace wick::models
