#include "wick/models/hf/text_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "wick/io/json.h"
#include "wick/models/hf/named_tokens.h"

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

/// The special tokens that have a key, by the end of their names in the folder's files.
constexpr std::pair<const char*, const char*> kSpecialTokens[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
};

/// Sets the ids of special tokens. Those that tokenizer_config.json and special_tokens_map.json
/// name come before the ids of `config`; all ids of the end are end tokens.
void token_keys(const Config& config, const std::vector<Config>& naming,
                const std::string& tokenizer, io::GgufMetadata& metadata) {
  std::vector<std::string> names, texts;
  for (const auto& [name, key] : kSpecialTokens) {
    for (const Config& file : naming) {
      const std::optional<std::string> text = token_text(file, name);
      if (!text) continue;
      names.emplace_back(name);
      texts.push_back(*text);
      break;
    }
  }
  const std::vector<std::optional<int64_t>> named = token_ids(tokenizer, texts);
  for (const auto& [name, key] : kSpecialTokens) {
    std::vector<int64_t> ids;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name && named[i]) ids.push_back(*named[i]);
    }
    for (const int64_t id : ids_of(config, (std::string(name) + "_id").c_str())) {
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    if (ids.empty()) continue;
    metadata.set_u32(key, static_cast<uint32_t>(ids.front()));
    const std::vector<uint32_t> all(ids.begin(), ids.end());
    if (name == std::string_view("eos_token") && all.size() > 1) {
      metadata.set_u32s("tokenizer.ggml.eos_token_ids", all);
    }
  }
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
  std::string tokenizer;
  if (const auto path = find_file(folder, "tokenizer.json")) {
    tokenizer = io::read_small_file(*path, kMostTokenizerBytes);
    metadata.set_string("tokenizer.huggingface.json", tokenizer);
  }
  const auto jinja = find_file(folder, "chat_template.jinja");
  std::optional<std::string> chat;
  if (jinja) chat = io::read_small_file(*jinja, kMostTemplateBytes);
  std::vector<Config> naming;
  if (const auto path = find_file(folder, "tokenizer_config.json")) {
    naming.push_back(Config::read(*path, kMostTokenizerConfigBytes));
    if (!jinja) chat = template_of(naming.back());
  }
  if (const auto path = find_file(folder, "special_tokens_map.json")) {
    naming.push_back(Config::read(*path, kMostTokenizerConfigBytes));
  }
  token_keys(tokens, naming, tokenizer, metadata);
  if (chat) metadata.set_string("tokenizer.chat_template", *chat);
}

}  // namespace wick::models::hf
