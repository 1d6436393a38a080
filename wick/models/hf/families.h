#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wick/models/hf/config.h"
#include "wick/models/hf/forms.h"
#include "wick/models/hf/keys.h"

namespace wick::models::hf {

/// The name of a tensor in a layer, without ".weight" or ".bias", and its name in a GGUF file. A
/// "*" stands for a number: the tensors of all numbers become one tensor with another dim. The GGUF
/// name is complete if it has such an ending, or ".scale".
struct NameRule {
  std::string_view from, to;
  Form form = Form::same;
  bool bare = false;  ///< the GGUF name has no ".weight"
};

/// A model_type of config.json.
struct Family {
  std::string_view model_type;
  std::string_view architecture;  ///< general.architecture of GGUF files
  /// Sets the keys that common_keys() and rope_scaling_keys() don't set.
  void (*keys)(const Config& config, Keys& keys);
  std::string_view activations;  ///< values of hidden_act that the architecture has
  std::string_view defaults;     ///< members that config.json may leave out: JSON (hf/defaults.h)
  std::span<const NameRule> rules = {};  ///< instead of those that all families share
  bool permutes = false;  ///< rows of queries and keys are reordered for interleaved rope
  bool adds_one = false;  ///< norms multiply by 1 + weight
  /// The factors that the GGUF file's weights include, by their names without "blk.N."; null: none.
  std::vector<RowFactor> (*factors)(const Config& config, std::string_view tensor) = nullptr;
  bool encodes = false;           ///< heads for other tasks than embeddings aren't used
  bool own_rope_scaling = false;  ///< `keys` sets the keys of rope_scaling_keys() too
};

/// The family of a configuration. Errors: the model_type is missing or unsupported (the message
/// lists the supported ones).
const Family& find_family(const Config& config);

/// The first family with an architecture; null if there is none.
const Family* family_of(std::string_view architecture);

/// The rules for a tensor of a layer. Empty: there are none.
std::vector<NameRule> rules_for(const Family& family, std::string_view stem);
/// The GGUF name of a tensor outside the layers, without ".weight" or ".bias"; empty if there is
/// none.
std::string_view outer_name(std::string_view stem);

}  // namespace wick::models::hf
