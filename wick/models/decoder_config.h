#pragma once

#include <cstdint>
#include <vector>

#include "wick/base/export.h"
#include "wick/models/metadata.h"
#include "wick/nn/rope.h"

namespace wick::models {

/// Which elements of a head the file's weights rotate together.
enum class RopeStyle : uint8_t {
  interleaved,  ///< 2i and 2i + 1
  neox,         ///< i and i + r/2, where r elements are rotated
};

/// The function of a gated MLP's gate.
enum class Activation : uint8_t {
  silu,
  gelu,  ///< by tanh
};

/// What a Llama-like decoder computes: its sizes, and how it differs from Llama. The tensors it has
/// are in its TensorNames.
struct WICK_API DecoderConfig {
  int64_t layers = 0, hidden = 0, intermediate = 0, heads = 0, kv_heads = 0;
  int64_t key_size = 0;    ///< elements of a query and of a key
  int64_t value_size = 0;  ///< elements of a value
  int64_t vocabulary = 0, context = 0;
  float norm_eps = 0;
  Activation activation = Activation::silu;
  float embedding_scale = 1;     ///< multiplies embeddings
  float attention_scale = 0;     ///< multiplies q·k
  float attention_soft_cap = 0;  ///< > 0: scores become cap · tanh(score / cap)
  float logit_soft_cap = 0;      ///< > 0: logits become cap · tanh(logit / cap)
  /// Of each layer: keys that a query sees, itself included; 0: all.
  std::vector<int64_t> windows = {};
  RopeStyle rope_style = RopeStyle::interleaved;
  nn::RopeOptions rope = {};        ///< of layers that see all keys
  nn::RopeOptions local_rope = {};  ///< of layers with a window
  /// The file must have biases for queries, keys and values. Biases of other files are optional.
  bool qkv_biases = false;

  /// Whether layers with a window rotate by other angles than the others.
  bool has_local_rope() const;
};

/// The configuration of a Llama with the metadata's sizes: interleaved rope, silu, a window of all
/// layers or none. Errors: those of Metadata, and sizes that contradict each other.
WICK_API DecoderConfig llama_config(const Metadata& metadata);

/// Lets all layers but each `period`th one have a window. Errors: those of Metadata.
WICK_API void alternate_windows(DecoderConfig& config, const Metadata& metadata, int64_t period,
                                int64_t window);

}  // namespace wick::models
