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
  void set_integers(std::string_view name, const std::vector<int64_t>& values);
  void remove(std::string_view name);

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

/// What all families share. Errors: those of Config.
void common_keys(const Config& config, Keys& keys);
/// The scaling of rope. Errors: those of Config; it isn't supported.
void rope_scaling_keys(const Config& config, Keys& keys);

/// A window of all layers.
void window_key(const Config& config, Keys& keys);
/// Which layers have a window, if the file says so. Errors: layer_types isn't one of
/// sliding_attention and full_attention for each layer.
void window_pattern_key(const Config& config, Keys& keys);

// Families, by the names of the architectures in GGUF files. Each function sets the keys that
// common_keys() and rope_scaling_keys() don't set. Errors: those of Config.
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
void bert_keys(const Config& config, Keys& keys);
void nomic_bert_keys(const Config& config, Keys& keys);
void modern_bert_keys(const Config& config, Keys& keys);
void gemma4_keys(const Config& config, Keys& keys);
void mamba2_keys(const Config& config, Keys& keys);
void falcon_h1_keys(const Config& config, Keys& keys);
void lfm2_keys(const Config& config, Keys& keys);
void qwen3_next_keys(const Config& config, Keys& keys);
void no_keys(const Config& config, Keys& keys);

/// The elements of a head of Gemma 4's layers without a window.
int64_t gemma4_head_size(const Config& config);

/// A factor of some rows of a matrix, or of all following rows if `rows` is 0.
struct RowFactor {
  int64_t rows;
  double factor;
};

/// Falcon H1's multipliers that the GGUF file's weights include. `tensor` is the name in a layer,
/// or that of a tensor outside the layers. Empty: there are none, or all of them are 1.
std::vector<RowFactor> falcon_h1_factors(const Config& config, std::string_view tensor);

/// The divisors of rope's frequencies of Llama 3, of LongRoPE and of Gemma 4. Errors: those of
/// Config; the number of divisors doesn't fit the size of heads.
ExtraTensors rope_tensors(const Config& config);

}  // namespace wick::models::hf
