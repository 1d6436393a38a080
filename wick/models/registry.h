#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wick/base/export.h"
#include "wick/models/decoder_config.h"

namespace wick::models {

/// What an architecture's tensors are called in GGUF files: "blk.3.NAME.weight" and
/// "blk.3.NAME.bias". An empty name: the architecture has no such tensor.
struct TensorNames {
  std::string_view attention_norm = "attn_norm";  ///< in front of attention
  std::string_view attention_post_norm = {};      ///< behind attention, before it is added
  std::string_view query = "attn_q", key = "attn_k", value = "attn_v";
  std::string_view qkv = {};  ///< the three in one matrix, in that order, instead
  std::string_view query_norm = {}, key_norm = {};  ///< of each head, in front of rope
  std::string_view attention_output = "attn_output";
  std::string_view mlp_norm = "ffn_norm";  ///< in front of the MLP
  std::string_view mlp_post_norm = {};     ///< behind the MLP, before it is added
  std::string_view gate = "ffn_gate", up = "ffn_up";
  std::string_view gate_up = {};  ///< the two in one matrix, in that order, instead
  std::string_view down = "ffn_down";
};

/// A family of Llama-like decoders.
struct Architecture {
  std::string_view name;    ///< general.architecture of its files
  std::string_view models;  ///< models that it runs, for error messages
  /// Errors: those of Metadata, and sizes that contradict each other.
  DecoderConfig (*configure)(const Metadata& metadata);
  TensorNames tensors = {};
};

/// All of them.
WICK_API std::span<const Architecture> architectures();

/// The architecture of a file. Errors: one part of a split model, no architecture, an architecture
/// that isn't there (the message lists those that are).
WICK_API const Architecture& find_architecture(const io::Gguf& file);

}  // namespace wick::models
