#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/io/gguf_metadata.h"
#include "wick/models/hf/config.h"

// The metadata of a GGUF file for the hyper-parameters of a config.json.
namespace wick::models::hf {

/// The keys of an architecture: "block_count" becomes "llama.block_count".
class Keys {
 public:
  Keys(io::GgufMetadata& out, std::string_view architecture)
      : out_(out), architecture_(architecture) {}

  void set(std::string_view name, int64_t value);
  void set(std::string_view name, double value);
  void set(std::string_view name, std::optional<int64_t> value);  ///< nothing: no key
  void set(std::string_view name, std::optional<double> value);
  void set(std::string_view name, std::string_view value);
  void set_flag(std::string_view name, bool value);
  void set_flags(std::string_view name, const std::vector<bool>& values);

 private:
  std::string key(std::string_view name) const;

  io::GgufMetadata& out_;
  std::string architecture_;
};

/// Tensors of floats that a GGUF file has and that follow from the configuration: name and values.
using ExtraTensors = std::vector<std::pair<std::string, std::vector<float>>>;

/// The parameters of rope for layers without a window, whichever version of transformers wrote
/// them.
Config rope_of(const Config& config);

/// What all families share. Errors: those of Config; a scaling of rope isn't supported.
void common_keys(const Config& config, Keys& keys);

// Families, by the names of the architectures in GGUF files. Each function sets the keys that
// common_keys() doesn't set. Errors: those of Config.
void llama_keys(const Config& config, Keys& keys);
void llama4_keys(const Config& config, Keys& keys);
void mistral3_keys(const Config& config, Keys& keys);
void qwen_keys(const Config& config, Keys& keys);
void gemma_keys(const Config& config, Keys& keys);
void phi2_keys(const Config& config, Keys& keys);
void phi3_keys(const Config& config, Keys& keys);
void gpt2_keys(const Config& config, Keys& keys);
void gptneox_keys(const Config& config, Keys& keys);
void stablelm_keys(const Config& config, Keys& keys);
void partial_rope_keys(const Config& config, Keys& keys);
void olmoe_keys(const Config& config, Keys& keys);
void granite_keys(const Config& config, Keys& keys);
void cohere_keys(const Config& config, Keys& keys);
void cohere2_keys(const Config& config, Keys& keys);
void deepseek_keys(const Config& config, Keys& keys);
void gpt_oss_keys(const Config& config, Keys& keys);
void smollm3_keys(const Config& config, Keys& keys);
void exaone4_keys(const Config& config, Keys& keys);
void ernie_experts_keys(const Config& config, Keys& keys);
void hunyuan_keys(const Config& config, Keys& keys);
void no_keys(const Config& config, Keys& keys);

/// The divisors of rope's frequencies of Llama 3 and of LongRoPE. Errors: those of Config; the
/// number of divisors doesn't fit the size of heads.
ExtraTensors rope_tensors(const Config& config);

}  // namespace wick::models::hf
