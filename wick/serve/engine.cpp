#include "wick/serve/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/log.h"
#include "wick/base/printable.h"
#include "wick/io/split_file.h"
#include "wick/models/find_model.h"
#include "wick/models/open_model.h"
#include "wick/serve/model_digest.h"

namespace wick::serve {
namespace {

std::optional<int32_t> token_key(const io::ModelFile& file, const char* key) {
  if (!file.contains(key)) return std::nullopt;
  return file.get_i32(key);
}

/// The text of Hugging Face's tokenizer.json.
constexpr const char* kTokenizerJson = "tokenizer.huggingface.json";

/// The tokens that end a text, besides those of the tokenizer.
std::vector<int32_t> end_tokens(const io::ModelFile& file) {
  constexpr const char* kAll = "tokenizer.ggml.eos_token_ids";
  if (file.contains(kAll)) return file.get_i32s(kAll);
  const std::optional<int32_t> one = token_key(file, "tokenizer.ggml.eos_token_id");
  return one ? std::vector{*one} : std::vector<int32_t>{};
}

/// What the file says of the tokens of its tokenizer.json.
text::JsonTokens json_tokens(const io::ModelFile& file) {
  const io::GgufTensor* const table = file.find_tensor("token_embd.weight");
  return {.bos = token_key(file, "tokenizer.ggml.bos_token_id"),
          .eos = token_key(file, "tokenizer.ggml.eos_token_id"),
          .pad = token_key(file, "tokenizer.ggml.padding_token_id"),
          .unk = token_key(file, "tokenizer.ggml.unknown_token_id"),
          .rows = table != nullptr && table->shape.rank() > 0 ? table->shape[0] : 0};
}

bool is_none(std::string_view model) { return model == "none" || model == "no_vocab"; }

/// The ids and rules of an algorithm that a file may leave out.
void add_defaults(const io::ModelFile& file, text::TokenizerSpec& spec) {
  const auto or_else = [&](std::optional<int32_t>& id, int32_t usual) {
    if (!id && static_cast<size_t>(usual) < spec.tokens.size()) id = usual;
  };
  const bool bert = spec.model == "bert", unigram = spec.model == "t5";
  if (!spec.unk) {
    constexpr int32_t kUnknown = 2;  // see TokenizerSpec::token_types
    const auto unknown = std::find(spec.token_types.begin(), spec.token_types.end(), kUnknown);
    if (unknown != spec.token_types.end()) {
      spec.unk = static_cast<int32_t>(unknown - spec.token_types.begin());
    }
  }
  if (spec.model == "llama") or_else(spec.unk, 0);
  if (bert) {
    // The sequence is enclosed by the tokens of the classifier and of the separator.
    spec.eos = token_key(file, "tokenizer.ggml.seperator_token_id");  // spelled so
    or_else(spec.bos, 101);
    or_else(spec.eos, 102);
    or_else(spec.unk, 100);
    or_else(spec.pad, 0);
    spec.lower = file.get_bool("tokenizer.ggml.normalizer.lowercase", true);
    spec.strip_accents = file.get_bool("tokenizer.ggml.normalizer.strip_accents", spec.lower);
  }
  if (unigram) {
    or_else(spec.eos, 1);
    or_else(spec.unk, 2);
    or_else(spec.pad, 0);
    if (file.contains("tokenizer.ggml.precompiled_charsmap")) {
      for (const int32_t byte : file.get_i32s("tokenizer.ggml.precompiled_charsmap")) {
        spec.charsmap += static_cast<char>(byte);
      }
    }
    spec.remove_extra_spaces = file.get_bool("tokenizer.ggml.remove_extra_whitespaces", false);
  }
  const bool adds_bos = text::adds_bos_by_default(spec.model, spec.pre) && spec.bos;
  spec.add_bos = file.get_bool("tokenizer.ggml.add_bos_token", adds_bos);
  spec.add_eos = file.get_bool("tokenizer.ggml.add_eos_token", (bert || unigram) && spec.eos);
  spec.add_space_prefix = file.get_bool("tokenizer.ggml.add_space_prefix", spec.model == "llama");
}

}  // namespace

text::Tokenizer load_tokenizer(const io::ModelFile& file) {
  const bool has_keys = file.contains("tokenizer.ggml.model");
  text::TokenizerSpec spec;
  // wick's own files have both if llama.cpp's form isn't exact (serve/vocabulary.h).
  if (file.contains(kTokenizerJson)) {
    try {
      return text::Tokenizer::from_json(file.get_string(kTokenizerJson), json_tokens(file));
    } catch (const Error& e) {
      if (!has_keys) throw Error(e.kind(), printable(file.path()), e.what());
      spec.warning = fmt::format("{} can't be used, and the tokens may differ from the model's: {}",
                                 kTokenizerJson, e.what());
    }
  }
  if (!has_keys) {
    std::error_code ignored;
    if (std::filesystem::is_directory(file.path(), ignored)) {
      throw Error(ErrorKind::file, printable(file.path()), "folder has no tokenizer.json");
    }
    io::require_model(file);
    io::require_whole(file);  // only the first part of a split model has the vocabulary
  }
  spec.model = file.get_string("tokenizer.ggml.model");
  spec.pre = file.get_string("tokenizer.ggml.pre", "");
  if (is_none(spec.model)) {
    // Such a file tells only the number of tokens.
    const std::string key = fmt::format("{}.vocab_size", file.get_string("general.architecture"));
    spec.tokens.resize(file.get_u32(key));
    return text::Tokenizer(spec);
  }
  spec.tokens = file.get_strings("tokenizer.ggml.tokens");
  if (file.contains("tokenizer.ggml.token_type")) {
    spec.token_types = file.get_i32s("tokenizer.ggml.token_type");
  }
  if (file.contains("tokenizer.ggml.merges")) {
    spec.merges = file.get_strings("tokenizer.ggml.merges");
  }
  if (file.contains("tokenizer.ggml.scores")) {
    spec.scores = file.get_f32s("tokenizer.ggml.scores");
  }
  spec.bos = token_key(file, "tokenizer.ggml.bos_token_id");
  spec.eos = token_key(file, "tokenizer.ggml.eos_token_id");
  spec.eot = token_key(file, "tokenizer.ggml.eot_token_id");
  spec.unk = token_key(file, "tokenizer.ggml.unknown_token_id");
  spec.pad = token_key(file, "tokenizer.ggml.padding_token_id");
  add_defaults(file, spec);
  try {
    return text::Tokenizer(spec);
  } catch (const Error& e) {
    throw Error(e.kind(), file.path(), e.what());
  }
}

text::Tokenizer open_tokenizer(const std::string& name) {
  const std::string path = models::find_model(name);
  std::ifstream file(path, std::ios::binary);
  const int first = file.get();
  // JSON begins with a brace, perhaps behind white space; Gguf reports files that are neither.
  constexpr std::string_view kJson = "{ \t\r\n";
  const bool json = first >= 0 && kJson.find(static_cast<char>(first)) != std::string_view::npos;
  if (json) return text::Tokenizer::from_file(path);
  return load_tokenizer(*models::open_model(path));
}

Engine::Engine(std::unique_ptr<models::CausalLm> model, text::Tokenizer tokenizer,
               const io::ModelFile& file, std::string path, std::string digest)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      chat_template_(file.get_string("tokenizer.chat_template", "")),
      ends_(end_tokens(file)),
      sampling_(sampling_defaults(file)),
      path_(std::move(path)),
      digest_(std::move(digest)) {}

std::shared_ptr<const Engine> Engine::load(const std::string& name,
                                           const models::LoadOptions& options) {
  const std::string path = models::find_model(name);
  const std::shared_ptr<const io::ModelFile> file = models::open_model(path);
  // Cheap checks come first. The architecture is checked before the tokenizer, because unsupported
  // models may have unsupported vocabularies.
  models::CausalLm::require_supported(*file);
  text::Tokenizer tokenizer = load_tokenizer(*file);
  if (logging()) log_line(fmt::format("read a vocabulary of {} tokens", tokenizer.vocab_size()));
  std::unique_ptr<models::CausalLm> model = models::CausalLm::load(*file, options);
  if (tokenizer.vocab_size() > model->vocab_size()) {
    throw Error(path, "vocabulary larger than the embedding",
                fmt::format("{} tokens, {} rows", tokenizer.vocab_size(), model->vocab_size()));
  }
  std::string digest = model_digest(*file, options.adapters);
  std::shared_ptr<const Engine> engine(
      new Engine(std::move(model), std::move(tokenizer), *file, path, std::move(digest)));
  file->require_unchanged("load");  // follows all reads of the file
  return engine;
}

bool Engine::is_end_of_generation(int32_t id) const {
  return tokenizer_.is_end_of_generation(id) ||
         std::find(ends_.begin(), ends_.end(), id) != ends_.end();
}

text::ChatTemplate Engine::chat() const {
  try {
    return text::ChatTemplate(chat_template_, tokenizer_);
  } catch (const Error& e) {
    throw Error(e.kind(), printable(path_), e.what());
  }
}

std::vector<int32_t> Engine::encode_chat(std::span<const text::ChatMessage> messages,
                                         const text::ChatOptions& options) const {
  return chat().encode(messages, options);
}

std::vector<int32_t> Engine::prompt_or_start(std::vector<int32_t> tokens) const {
  if (!tokens.empty()) return tokens;
  const std::optional<int32_t> first = tokenizer_.bos() ? tokenizer_.bos() : tokenizer_.eos();
  if (!first) throw Error("generate", "empty prompt", path_, "this model has no start token");
  return {*first};
}

}  // namespace wick::serve
