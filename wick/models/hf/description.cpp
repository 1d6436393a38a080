#include "wick/models/hf/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

namespace wick::models::hf {
namespace {

/// Gives the model the members and the name of its language model, if it has others.
void select_language_model(Config& config) {
  if (config.has({"text_config"})) config.merge(config.object("text_config").json());
  // The names of models of images and text stand for their language models.
  constexpr std::pair<std::string_view, const char*> kLanguageModels[] = {{"gemma3", "gemma3_text"},
                                                                          {"gemma4", "gemma4_text"},
                                                                          {"llama4", "llama4_text"},
                                                                          {"mistral3", "mistral"}};
  const std::string type = config.text({"model_type"}).value_or("");
  for (const auto& [whole, language] : kLanguageModels) {
    if (type == whole) config.set("model_type", language);
  }
}

void check_activation(const Config& config, const Family& family) {
  // Gemma's hidden_act isn't used.
  const bool gemma = family.architecture.starts_with("gemma");
  constexpr const char* kNames[] = {"hidden_activation", "hidden_act", "activation_function"};
  for (const char* name : std::span(kNames).first(gemma ? 1 : 3)) {
    const std::optional<std::string> value = config.text({name});
    if (!value) continue;
    const std::string known = fmt::format(" {} ", family.activations);
    if (known.find(fmt::format(" {} ", *value)) != std::string::npos) return;
    config.unsupported(name, fmt::format("need {}", family.activations));
  }
}

/// Whether this version reads a method's F8 weights. Their scales are of whole weights, of rows or
/// of blocks; the scales of activations aren't used.
bool reads_method(const Config& quantization, std::string_view method) {
  constexpr std::string_view kMethods[] = {"",      "fp8",  "fbgemm_fp8", "modelopt",
                                           "mxfp4", "gptq", "awq",        "compressed-tensors"};
  if (method == "modelopt") {
    Config of = quantization;
    if (!of.has({"quant_algo"})) of = of.object("quantization");
    const std::string algorithm = of.text({"quant_algo"}).value_or("");
    if (algorithm != "FP8" && algorithm != "FP8_PER_CHANNEL_PER_TOKEN") {
      of.unsupported("quant_algo", "this version supports FP8 and FP8_PER_CHANNEL_PER_TOKEN");
    }
  }
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

/// Errors: the weights are quantised by a method that isn't supported.
ScaleBlock scale_block(const Config& config) {
  const Config of = config.object("quantization_config");
  const std::string method = of.text({"quant_method"}).value_or("");
  if (method == "compressed-tensors") {
    if (of.text({"format"}).value_or("") != "float-quantized") {
      of.unsupported("format", "this version supports float-quantized");
    }
  } else if (!reads_method(of, method)) {
    of.unsupported("quant_method",
                   "this version supports fp8, fbgemm_fp8, modelopt, mxfp4, compressed-tensors, "
                   "gptq and awq");
  }
  const std::vector<int64_t> sizes = of.integers("weight_block_size");
  if (sizes.empty()) return {};
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1) {
    of.invalid("weight_block_size", "two sizes of at least 1");
  }
  return {sizes[0], sizes[1]};
}

Sizes sizes_of(const Config& c) {
  const int64_t heads = c.require_integer({"num_attention_heads", "n_head"});
  const auto integer = [&](Config::Names names) { return c.integer(names).value_or(0); };
  const int64_t linear_heads = integer({"linear_num_key_heads"});
  const int64_t values = integer({"linear_num_value_heads"}) * integer({"linear_value_head_dim"});
  return {.heads = heads,
          .kv_heads = c.integer({"num_key_value_heads"}).value_or(heads),
          .latent_keys = c.integer({"qk_nope_head_dim"}).value_or(0),
          .latent_values = c.integer({"v_head_dim"}).value_or(0),
          .state_groups = c.integer({"mamba_n_groups", "n_groups"}).value_or(1),
          .linear_heads = linear_heads,
          .linear_keys = integer({"linear_key_head_dim"}),
          .linear_values = linear_heads > 0 ? values / linear_heads : 0};
}

}  // namespace

Description describe(Config config) {
  select_language_model(config);
  const Family& family = find_family(config);
  config.add_absent(nlohmann::json::parse(family.defaults));
  check_activation(config, family);
  const ScaleBlock block = scale_block(config);
  const Int4Config int4 = int4_config(config);
  const int64_t layers = config.require_integer({"num_hidden_layers", "n_layer"});
  constexpr int64_t kMostLayers = 4096;
  if (layers < 1 || layers > kMostLayers) {
    config.invalid(config.has({"num_hidden_layers"}) ? "num_hidden_layers" : "n_layer",
                   fmt::format("1 to {}", kMostLayers));
  }
  const bool tied = config.flag("tie_word_embeddings", false);
  const Sizes sizes = sizes_of(config);
  return {std::move(config), &family, block, int4, layers, tied, sizes};
}

void set_keys(const Description& description, io::GgufMetadata& metadata) {
  const Family& family = *description.family;
  metadata.set_string("general.architecture", family.architecture);
  Keys keys(metadata, family.architecture);
  common_keys(description.config, keys);
  if (!family.own_rope_scaling) rope_scaling_keys(description.config, keys);
  family.keys(description.config, keys);
}

}  // namespace wick::models::hf
