#include "wick/models/hf/text_files.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "wick/io/json.h"

namespace wick::models::hf {
namespace {

constexpr size_t kMostTokenizerBytes = size_t{256} << 20,
                 kMostTokenizerConfigBytes = size_t{16} << 20, kMostTemplateBytes = size_t{4} << 20,
                 kMostGenerationBytes = size_t{1} << 20;

/// The path of a file of the folder; nothing if there is none.
std::optional<std::string> find_file(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return path;
}

/// The template of tokenizer_config.json: a string, or a list of named ones, of which the default
/// is taken.
std::optional<std::string> template_of(const Config& tokenizer) {
  const char* const name = "chat_template";
  if (!tokenizer.has({name})) return std::nullopt;
  const nlohmann::json& value = tokenizer.json().at(name);
  if (!value.is_array()) return tokenizer.text({name});
  for (const nlohmann::json& one : value) {
    const Config named(one, tokenizer.path(), "chat_template.");
    if (named.text({"name"}) == "default") return named.text({"template"});
  }
  return std::nullopt;
}

/// An id, or a list of ids.
std::vector<int64_t> ids_of(const Config& config, const char* name) {
  if (config.has({name}) && config.json().at(name).is_array()) return config.integers(name);
  const std::optional<int64_t> id = config.integer({name});
  return id ? std::vector<int64_t>{*id} : std::vector<int64_t>{};
}

void token_keys(const Config& config, io::GgufMetadata& metadata) {
  const auto id_key = [&](const char* name, const char* key) {
    const std::vector<int64_t> ids = ids_of(config, name);
    if (!ids.empty()) metadata.set_u32(key, static_cast<uint32_t>(ids.front()));
  };
  id_key("bos_token_id", "tokenizer.ggml.bos_token_id");
  id_key("eos_token_id", "tokenizer.ggml.eos_token_id");
  id_key("pad_token_id", "tokenizer.ggml.padding_token_id");
  std::vector<uint32_t> ends;
  for (const int64_t id : ids_of(config, "eos_token_id")) ends.push_back(static_cast<uint32_t>(id));
  if (ends.size() > 1) metadata.set_u32s("tokenizer.ggml.eos_token_ids", ends);
}

/// Copies the options of sampling under the keys that llama.cpp's converter uses. Values of any
/// type are copied; serve::sampling_defaults() checks them.
void sampler_keys(const Config& generation, io::GgufMetadata& metadata) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"sequence", "sequence"},
      {"top_k", "top_k"},
      {"top_p", "top_p"},
      {"min_p", "min_p"},
      {"xtc_probability", "xtc_probability"},
      {"xtc_threshold", "xtc_threshold"},
      {"temperature", "temp"},
      {"penalty_last_n", "penalty_last_n"},
      {"repetition_penalty", "penalty_repeat"},
      {"penalty_repeat", "penalty_repeat"},
      {"mirostat", "mirostat"},
      {"mirostat_tau", "mirostat_tau"},
      {"mirostat_eta", "mirostat_eta"},
  };
  for (const auto& [name, short_key] : kNames) {
    if (!generation.has({name})) continue;
    const nlohmann::json& value = generation.json().at(name);
    const std::string key = std::string("general.sampling.") + short_key;
    if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) {
      metadata.set_u64(key, value.get<uint64_t>());
    } else if (value.is_number_integer()) {
      metadata.set_i64(key, value.get<int64_t>());
    } else if (value.is_number()) {
      const auto number = value.get<double>();
      constexpr double kMost = std::numeric_limits<float>::max();
      if (number < -kMost || number > kMost) {
        metadata.set_f64(key, number);
      } else {
        metadata.set_f32(key, static_cast<float>(number));
      }
    } else if (value.is_boolean()) {
      metadata.set_bool(key, value.get<bool>());
    } else if (value.is_array()) {
      std::vector<std::string> items;
      for (const nlohmann::json& item : value) items.push_back(item.dump());
      metadata.set_strings(key, std::vector<std::string_view>(items.begin(), items.end()));
    } else {
      metadata.set_string(key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

}  // namespace

void text_keys(const std::string& folder, const Config& config, io::GgufMetadata& metadata) {
  Config tokens = config;
  if (const auto path = find_file(folder, "generation_config.json")) {
    const Config generation = Config::read(*path, kMostGenerationBytes);
    for (const char* name : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
      ids_of(generation, name);  // its errors name this file
      if (generation.has({name})) tokens.set(name, generation.json().at(name));
    }
    sampler_keys(generation, metadata);
  }
  // -1 stands for no token.
  for (const char* name : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto& members = tokens.json();
    const auto found = members.find(name);
    if (found != members.end() && *found == -1) tokens.set(name, nullptr);
  }
  token_keys(tokens, metadata);
  std::optional<std::string> chat;
  if (const auto path = find_file(folder, "chat_template.jinja")) {
    chat = io::read_small_file(*path, kMostTemplateBytes);
  } else if (const auto other = find_file(folder, "tokenizer_config.json")) {
    chat = template_of(Config::read(*other, kMostTokenizerConfigBytes));
  }
  if (chat) metadata.set_string("tokenizer.chat_template", *chat);
  if (const auto path = find_file(folder, "tokenizer.json")) {
    metadata.set_string("tokenizer.huggingface.json",
                        io::read_small_file(*path, kMostTokenizerBytes));
  }
}

}  // namespace wick::models::hf
