#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wick/base/export.h"
#include "wick/models/decoder_config.h"

namespace wick::models {

/// Names of an architecture's tensors in GGUF files: "blk.3.NAME.weight" and "blk.3.NAME.bias". An
/// empty name means that the architecture doesn't have the tensor.
struct TensorNames {
  std::string_view attention_norm = "attn_norm";  ///< norm before attention
  std::string_view attention_post_norm = {};      ///< norm after attention
  std::string_view query = "attn_q", key = "attn_k", value = "attn_v";
  std::string_view qkv = {};  ///< query, key and value in one matrix, instead of the three above
  std::string_view query_norm = {}, key_norm = {};  ///< norms of each head, before rope
  std::string_view attention_output = "attn_output";
  std::string_view mlp_norm = "ffn_norm";  ///< norm before the MLP
  std::string_view mlp_post_norm = {};     ///< norm after the MLP
  std::string_view gate = "ffn_gate", up = "ffn_up";
  std::string_view gate_up = {};  ///< gate and up in one matrix, instead of the two above
  std::string_view down = "ffn_down";
};

/// A family of Llama-like decoders.
struct Architecture {
  std::string_view name;    ///< general.architecture in the files
  std::string_view models;  ///< names of supported models, for error messages
  /// Makes the configuration from a file's metadata. Errors: those of Metadata; the sizes
  /// contradict each other.
  DecoderConfig (*configure)(const Metadata& metadata);
  TensorNames tensors = {};
};

/// All supported architectures.
WICK_API std::span<const Architecture> architectures();

/// Returns the architecture of a file. Errors: the file is one part of a split model; it doesn't
/// name an architecture; the architecture isn't supported (the message lists the supported ones).
WICK_API const Architecture& find_architecture(const io::Gguf& file);

}  // namespace wick::models
