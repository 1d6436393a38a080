// Files that are made of folders have llama.cpp's vocabulary.
#include "wick/serve/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace wick::serve
