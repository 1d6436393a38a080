// Files that are made of folders have llama.cpp's vocabulary.
#include "wick/serve/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_model.h"
#include "wick/io/convert.h"
#include "wick/models/open_model.h"
#include "wick/serve/engine.h"

namespace wick::serve {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ConvertedVocabulary : public testing::Test {
 protected:
  /// Converts a folder with a tokenizer.json; returns what convert_vocabulary() says.
  std::string convert(const json& tokenizer) {
    test::TinyModel::read("qwen3").write_directory(folder_.path("model"), 1);
    std::ofstream(folder_.path("model/tokenizer.json")) << tokenizer;
    const auto in = models::open_model(folder_.path("model"));
    std::string note;
    io::quantize_gguf(*in, folder_.path("m.gguf"), {.type = *io::file_type_of(DType::q8_0)}, {},
                      [&](io::GgufMetadata& keys) { note = convert_vocabulary(*in, keys); });
    return note;
  }
  std::shared_ptr<const io::Gguf> file() const { return io::Gguf::open(folder_.path("m.gguf")); }

  static json plain() {
    std::ifstream in(WICK_TEXT_DATA "/stages.json");
    const json stages = json::parse(in);
    json document = stages.at("cases").at(0).at("parts");
    document["model"] = stages.at("models").at("bytes");
    return document;
  }

  io::test::TempFolder folder_;
};

TEST_F(ConvertedVocabulary, ReplacesTheText) {
  const json document = plain();
  EXPECT_EQ(convert(document), "");
  EXPECT_FALSE(file()->contains("tokenizer.huggingface.json"));
  EXPECT_EQ(file()->get_string("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(file()->get_string("tokenizer.ggml.pre"), "gpt-2");
  EXPECT_EQ(file()->get_strings("tokenizer.ggml.tokens").size(), 500u);
  EXPECT_EQ(file()->get_i32s("tokenizer.ggml.token_type").size(), 500u);
  EXPECT_EQ(file()->get_strings("tokenizer.ggml.merges").size(),
            document["model"]["merges"].size());
  EXPECT_FALSE(file()->get_bool("tokenizer.ggml.add_bos_token", true));
  EXPECT_EQ(file()->get_u32("tokenizer.ggml.eos_token_id"), 2u);  // of config.json
  const text::Tokenizer got = load_tokenizer(*file());
  const text::Tokenizer expected = text::Tokenizer::from_json(document.dump());
  for (const char* text : {"Hello, world", "x = 12345;\n\n\ty", "\u4f60\u597d \U0001f600"}) {
    EXPECT_EQ(got.encode(text), expected.encode(text));
  }
}

// Such a file has both; wick uses the text.
TEST_F(ConvertedVocabulary, KeepsTheTextIfItIsInexact) {
  json document = plain();
  document["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(convert(document), HasSubstr("isn't exact: its text isn't normalised to NFC"));
  EXPECT_TRUE(file()->contains("tokenizer.huggingface.json"));
  EXPECT_EQ(file()->get_string("tokenizer.ggml.model"), "gpt2");
  const std::string decomposed = "e\u0301";
  EXPECT_EQ(load_tokenizer(*file()).encode(decomposed),
            text::Tokenizer::from_json(document.dump()).encode(decomposed));
}

TEST_F(ConvertedVocabulary, ReplacesATextThatCannotBeUsed) {
  EXPECT_EQ(convert(plain()), "");
  const auto whole = file();
  io::GgufWriter both(folder_.path("both.gguf"));
  both.copy_metadata(*whole);
  both.set_string("tokenizer.huggingface.json", R"({"model":{"type":"Other"}})");
  both.finish();
  const text::Tokenizer got = load_tokenizer(*io::Gguf::open(folder_.path("both.gguf")));
  EXPECT_EQ(got.encode("Hello, world"), load_tokenizer(*whole).encode("Hello, world"));
  EXPECT_THAT(got.warning(),
              HasSubstr("tokenizer.huggingface.json can't be used, and the tokens may differ from "
                        "the model's: "));
  EXPECT_THAT(got.warning(), HasSubstr("tokenizer.json: model: lacks 'vocab'"));
  EXPECT_EQ(load_tokenizer(*whole).warning(), "");
}

TEST_F(ConvertedVocabulary, KeepsTheTextAlone) {
  json document = plain();
  document["normalizer"] = {{"type", "NFKC"}};
  EXPECT_THAT(convert(document), HasSubstr("llama.cpp's form can't have it: "));
  EXPECT_TRUE(file()->contains("tokenizer.huggingface.json"));
  EXPECT_FALSE(file()->contains("tokenizer.ggml.model"));
  EXPECT_THAT(convert(json::object()), HasSubstr("lacks 'model'"));
  EXPECT_TRUE(file()->contains("tokenizer.huggingface.json"));
}

/// A vocabulary of the 40 rows of the model, whose last tokens are special, and one beyond them.
json special_of_the_model() {
  json vocab = json::object(), added = json::array();
  for (int i = 0; i < 36; ++i) vocab[std::string(1, static_cast<char>('!' + i))] = i;
  int id = 36;
  for (const char* name : {"<s>", "</s>", "<pad>", "<end>", "<image>"}) {
    added.push_back({{"id", id++}, {"content", name}, {"special", true}});
  }
  return {{"added_tokens", added},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}}};
}

class SpecialTokens : public ConvertedVocabulary {
 protected:
  static constexpr const char* kTemplate =
      "{{ bos_token }}{% for m in messages %}{{ m.content + eos_token }}{% endfor %}{{ pad_token "
      "}}";

  void write(const json& tokenizer) const {
    test::TinyModel::read("qwen3").write_directory(folder_.path("model"), 1);
    std::ofstream(folder_.path("model/tokenizer.json")) << tokenizer;
    std::ofstream(folder_.path("model/generation_config.json")) << R"({"eos_token_id": [2, 39]})";
    const json config = {{"bos_token", "<s>"},
                         {"eos_token", {{"content", "</s>"}}},
                         {"pad_token", "<pad>"},
                         {"chat_template", kTemplate}};
    std::ofstream(folder_.path("model/tokenizer_config.json")) << config;
  }
  std::string quantize() const {
    const auto in = models::open_model(folder_.path("model"));
    std::string note;
    io::quantize_gguf(*in, folder_.path("m.gguf"), {.type = *io::file_type_of(DType::q8_0)}, {},
                      [&](io::GgufMetadata& keys) { note = convert_vocabulary(*in, keys); });
    return note;
  }
  void expect_tokens(const std::string& path) const {
    SCOPED_TRACE(path);
    const auto engine = Engine::load(path);
    const text::Tokenizer& tokenizer = engine->tokenizer();
    EXPECT_EQ(tokenizer.bos(), 36);
    EXPECT_EQ(tokenizer.eos(), 37);
    EXPECT_EQ(tokenizer.pad(), 38);
    for (const int32_t id : {2, 37, 39}) EXPECT_TRUE(engine->is_end_of_generation(id)) << id;
    EXPECT_FALSE(engine->is_end_of_generation(38));
    EXPECT_EQ(engine->prompt_or_start(tokenizer.encode("")), std::vector<int32_t>{36});
    const std::vector<text::ChatMessage> messages = {{"user", "A"}, {"user", "<"}};
    EXPECT_EQ(engine->encode_chat(messages),
              (std::vector<int32_t>{36, 'A' - '!', 37, '<' - '!', 37, 38}));
    EXPECT_EQ(tokenizer.vocab_size(), 40);
    EXPECT_EQ(tokenizer.encode("<image>").size(), 2u);  // the brackets; other letters are unknown
  }
};

TEST_F(SpecialTokens, ReachChatAndTheGgufFile) {
  write(special_of_the_model());
  expect_tokens(folder_.path("model"));
  EXPECT_THAT(Engine::load(folder_.path("model"))->tokenizer().warning(),
              HasSubstr("1 added token of the tokenizer.json has no row in the embedding and is "
                        "read as text: <image>"));
  EXPECT_EQ(quantize(), "");
  EXPECT_FALSE(file()->contains("tokenizer.huggingface.json"));
  EXPECT_EQ(file()->get_u32("tokenizer.ggml.bos_token_id"), 36u);
  EXPECT_EQ(file()->get_u32("tokenizer.ggml.padding_token_id"), 38u);
  EXPECT_EQ(file()->get_u32s("tokenizer.ggml.eos_token_ids"), (std::vector<uint32_t>{37, 2, 39}));
  EXPECT_EQ(Engine::load(folder_.path("m.gguf"))->tokenizer().warning(), "");
  expect_tokens(folder_.path("m.gguf"));
}

TEST_F(SpecialTokens, ReachFilesWithTheText) {
  json tokenizer = special_of_the_model();
  tokenizer["normalizer"] = {{"type", "NFKC"}};
  write(tokenizer);
  EXPECT_THAT(quantize(), HasSubstr("llama.cpp's form can't have it"));
  expect_tokens(folder_.path("m.gguf"));
}

TEST_F(SpecialTokens, AreDroppedFromTheFileWithoutATokenOfTheirId) {
  json tokenizer = special_of_the_model();
  write(tokenizer);
  std::ofstream(folder_.path("model/tokenizer_config.json")) << R"({"pad_token": "<image>"})";
  EXPECT_EQ(models::open_model(folder_.path("model"))->get_u32("tokenizer.ggml.padding_token_id"),
            40u);
  EXPECT_EQ(Engine::load(folder_.path("model"))->tokenizer().pad(), std::nullopt);
  EXPECT_EQ(quantize(), "");
  EXPECT_FALSE(file()->contains("tokenizer.ggml.padding_token_id"));
  EXPECT_EQ(Engine::load(folder_.path("m.gguf"))->tokenizer().pad(), std::nullopt);
}

// Makers of embeddings may end texts with another token than the one that ends answers.
TEST_F(SpecialTokens, OfAnswersStayEndsIfTextsEndOtherwise) {
  json tokenizer = special_of_the_model();
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::parse(R"([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<pad>"}}])")},
      {"special_tokens", json::parse(R"({"<pad>": {"id": "<pad>", "ids": [38]}})")}};
  write(tokenizer);
  std::filesystem::remove(folder_.path("model/generation_config.json"));
  std::ofstream(folder_.path("model/tokenizer_config.json")) << R"({"eos_token": "<end>"})";
  const auto engine = Engine::load(folder_.path("model"));
  EXPECT_EQ(engine->tokenizer().eos(), 39);
  EXPECT_EQ(engine->tokenizer().encode("A"), (std::vector<int32_t>{'A' - '!', 38}));
  EXPECT_EQ(quantize(), "");
  const auto of_file = Engine::load(folder_.path("m.gguf"));
  EXPECT_EQ(of_file->tokenizer().encode("A"), (std::vector<int32_t>{'A' - '!', 38}));
  EXPECT_TRUE(of_file->is_end_of_generation(39));
}

TEST_F(SpecialTokens, BaseVocabulariesBeyondTheEmbeddingAreErrors) {
  json tokenizer = special_of_the_model();
  tokenizer["model"]["vocab"]["zz"] = 45;
  write(tokenizer);
  EXPECT_THAT(test::error_of([&] { Engine::load(folder_.path("model")); }),
              HasSubstr("vocabulary larger than the embedding"));
}

}  // namespace
}  // namespace wick::serve
