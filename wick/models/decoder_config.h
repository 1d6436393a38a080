#pragma once

#include <cstdint>
#include <vector>

#include "wick/base/export.h"
#include "wick/models/metadata.h"
#include "wick/nn/rope.h"

namespace wick::models {

/// Pairs of elements that the file's weights rotate together.
enum class RopeStyle : uint8_t {
  interleaved,  ///< elements 2i and 2i + 1
  neox,         ///< elements i and i + r/2 of the r rotated elements
};

/// The activation of a gated MLP.
enum class Activation : uint8_t {
  silu,
  gelu,  ///< GELU by the tanh formula
};

/// Sizes and variants of a Llama-like decoder. TensorNames lists its tensors.
struct WICK_API DecoderConfig {
  int64_t layers = 0, hidden = 0, intermediate = 0, heads = 0, kv_heads = 0;
  int64_t key_size = 0;    ///< elements of a query head and of a key head
  int64_t value_size = 0;  ///< elements of a value head
  int64_t vocabulary = 0, context = 0;
  float norm_eps = 0;
  Activation activation = Activation::silu;
  float embedding_scale = 1;     ///< factor of the embeddings
  float attention_scale = 0;     ///< factor of q·k
  float attention_soft_cap = 0;  ///< > 0: scores become cap · tanh(score / cap)
  float logit_soft_cap = 0;      ///< > 0: logits become cap · tanh(logit / cap)
  /// Attention window of each layer: the number of keys that a query sees, itself included; 0: all.
  std::vector<int64_t> windows = {};
  RopeStyle rope_style = RopeStyle::interleaved;
  nn::RopeOptions rope = {};        ///< angles of layers without a window
  nn::RopeOptions local_rope = {};  ///< angles of layers with a window
  /// The file must have biases for queries, keys and values. If false, biases are optional.
  bool qkv_biases = false;

  /// Whether layers with a window use other angles than the other layers.
  bool has_local_rope() const;
};

/// The configuration of a Llama with the metadata's sizes: interleaved rope, silu, and the same
/// window, or none, for all layers. Errors: those of Metadata; the sizes contradict each other.
WICK_API DecoderConfig llama_config(const Metadata& metadata);

/// Gives a window to all layers except every `period`th one. Errors: those of Metadata.
WICK_API void alternate_windows(DecoderConfig& config, const Metadata& metadata, int64_t period,
                                int64_t window);

}  // namespace wick::models
