#include "wick/serve/vocabulary.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wick/base/error.h"
#include "wick/text/gguf_vocabulary.h"

namespace wick::serve {
namespace {

constexpr const char* kHuggingFaceText = "tokenizer.huggingface.json";

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

constexpr const char* kSpecialIds[] = {"bos_token_id", "eos_token_id", "padding_token_id",
                                       "unknown_token_id"};

void set_keys(const text::GgufVocabulary& v, const io::ModelFile& from, io::GgufMetadata& to) {
  const auto key = [](const char* name) { return fmt::format("tokenizer.ggml.{}", name); };
  const auto set_id = [&](const char* name, std::optional<int32_t> id) {
    if (id) to.set_u32(key(name), static_cast<uint32_t>(*id));
  };
  for (const char* name : kSpecialIds) {
    // Readers refuse ids that aren't in the file.
    const std::string of_file = key(name);
    const bool has_id = from.contains(of_file);
    if (has_id && from.get_u32(of_file) >= v.tokens.size()) to.remove(of_file);
  }
  const bool bert = v.model == "bert";
  to.set_string(key("model"), v.model);
  if (!v.pre.empty()) to.set_string(key("pre"), v.pre);
  to.set_strings(key("tokens"), views_of(v.tokens));
  to.set_i32s(key("token_type"), v.token_types);
  if (!v.merges.empty()) to.set_strings(key("merges"), views_of(v.merges));
  if (!v.scores.empty()) to.set_f32s(key("scores"), v.scores);
  set_id("bos_token_id", v.bos);
  set_id(bert ? "seperator_token_id" : "eos_token_id", v.eos);  // spelled so
  set_id("unknown_token_id", v.unk);
  to.set_bool(key("add_bos_token"), v.add_bos);
  to.set_bool(key("add_eos_token"), v.add_eos);
  if (v.model == "llama") to.set_bool(key("add_space_prefix"), v.add_space_prefix);
  if (bert) {
    to.set_bool(key("normalizer.lowercase"), v.lower);
    to.set_bool(key("normalizer.strip_accents"), v.strip_accents);
  }
}

/// Keeps two end tokens if texts and answers end with different ones.
void keep_end(const text::GgufVocabulary& v, const io::ModelFile& from, io::GgufMetadata& to) {
  constexpr const char *kOne = "tokenizer.ggml.eos_token_id",
                       *kAll = "tokenizer.ggml.eos_token_ids";
  if (!v.eos || v.model == "bert" || from.contains(kAll) || !from.contains(kOne)) return;
  const uint32_t answer = from.get_u32(kOne), text = static_cast<uint32_t>(*v.eos);
  if (answer != text && answer < v.tokens.size()) to.set_u32s(kAll, std::vector{text, answer});
}

}  // namespace

std::string convert_vocabulary(const io::ModelFile& from, io::GgufMetadata& to) {
  if (!from.contains(kHuggingFaceText) || from.contains("tokenizer.ggml.model")) return {};
  const io::GgufTensor* table = from.find_tensor("token_embd.weight");
  const int64_t rows = table != nullptr && table->shape.rank() > 0 ? table->shape[0] : 0;
  try {
    const text::GgufVocabulary vocabulary =
        text::gguf_vocabulary(from.get_string(kHuggingFaceText), static_cast<size_t>(rows));
    if (vocabulary.model.empty()) {
      return fmt::format("llama.cpp's form can't have it: {}", vocabulary.difference);
    }
    set_keys(vocabulary, from, to);
    keep_end(vocabulary, from, to);
    // llama.cpp requires it of encoders.
    const io::GgufTensor* types = from.find_tensor("token_types.weight");
    if (types != nullptr && types->shape.rank() > 0) {
      to.set_u32("tokenizer.ggml.token_type_count", static_cast<uint32_t>(types->shape[0]));
    }
    if (vocabulary.difference.empty()) {
      to.remove(kHuggingFaceText);
      return {};
    }
    return fmt::format("llama.cpp's form, which is in the file, too, isn't exact: {}",
                       vocabulary.difference);
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace wick::serve
