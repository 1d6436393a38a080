// The vocabularies of GGUF files that are made of a tokenizer.json: their ids against those of
// PyPI's `tokenizers` (make_stages.py).
#include "wick/text/gguf_vocabulary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/expect_error.h"

namespace wick::text {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const json& stages() {
  static const json data = [] {
    std::ifstream file(WICK_TEST_DATA "/stages.json");
    return json::parse(file);
  }();
  return data;
}

json document_of(const std::string& name) {
  for (const json& test : stages().at("cases")) {
    if (test.at("name") != name) continue;
    json document = test.at("parts");
    document["model"] = stages().at("models").at(test.at("model").get<std::string>());
    return document;
  }
  throw std::runtime_error("no case " + name);
}

GgufVocabulary converted(const json& document, size_t size = 0) {
  return gguf_vocabulary(document.dump(), size);
}

/// What a conversion says, case by case; cases with an exact vocabulary have its model and pattern.
TEST(GgufVocabulary, OfEveryCase) {
  const std::map<std::string, std::string> exact = {
      {"plain", "gpt2 gpt-2"}, {"Roberta", "gpt2 gpt-2"}, {"WordPiece", "bert "}};
  const auto texts = stages().at("texts").get<std::vector<std::string>>();
  std::map<std::string, std::string> found;
  for (const json& test : stages().at("cases")) {
    const std::string name = test.at("name");
    SCOPED_TRACE(name);
    const GgufVocabulary vocabulary = converted(document_of(name));
    if (vocabulary.model.empty()) {
      EXPECT_NE(vocabulary.difference, "");
      continue;
    }
    if (!vocabulary.difference.empty()) continue;
    found[name] = vocabulary.model + ' ' + vocabulary.pre;
    const Tokenizer tokenizer(vocabulary.spec());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer.encode(texts[i]), test.at("ids").at(i).get<std::vector<int32_t>>())
          << texts[i];
    }
  }
  EXPECT_EQ(found, exact);
  // Two tokens at the end aren't one.
  EXPECT_THAT(converted(document_of("Template")).difference, HasSubstr("the tokens of"));
}

/// Patterns as they are published in tokenizer.json files.
TEST(GgufVocabulary, NamesSplitPatterns) {
  const std::string spaces = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string symbols = R"( ?[^\s\p{L}\p{N}]+[\r\n]*|)";
  const std::string letters = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  const std::string upper = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
                            R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+)";
  const std::string lower = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
                            R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*)";
  const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
  const std::string cased_symbols = R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|)";
  struct Case {
    std::vector<std::string> patterns;
    bool ignore_merges;
    const char* name;
  };
  const std::vector<Case> cases = {
      {{letters + R"(\p{N}{1,3}|)" + symbols + spaces}, true, "llama-bpe"},
      {{letters + R"(\p{N}{1,3}|)" + symbols + spaces}, false, "dbrx"},
      {{letters + R"(\p{N}|)" + symbols + spaces}, false, "qwen2"},
      {{upper + "|" + lower + R"(|\p{N}|)" + cased_symbols + spaces}, true, "tekken"},
      {{upper + contraction + "|" + lower + contraction + R"(|\p{N}{1,3}|)" + cased_symbols +
        spaces},
       false,
       "gpt-4o"},
      {{R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
        R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
        R"( ?[\p{P}\p{S}]+[\r\n]*|)" +
            spaces},
       false,
       "deepseek-v3"}};
  const auto texts = stages().at("texts").get<std::vector<std::string>>();
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    json document = document_of("plain");
    json list = json::array();
    for (const std::string& pattern : one.patterns) {
      list.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
    }
    list.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", list}};
    document["model"]["ignore_merges"] = one.ignore_merges;
    const GgufVocabulary vocabulary = converted(document);
    EXPECT_EQ(vocabulary.pre, one.name);
    EXPECT_EQ(vocabulary.difference, "");
    const Tokenizer expected = Tokenizer::from_json(document.dump());
    const Tokenizer got(vocabulary.spec());
    for (const std::string& text : texts)
      EXPECT_EQ(got.encode(text), expected.encode(text)) << text;
    // NFC isn't part of a GGUF file.
    document["normalizer"] = {{"type", "NFC"}};
    EXPECT_EQ(converted(document).model, "gpt2");
    EXPECT_THAT(converted(document).difference, HasSubstr("NFC"));
  }
}

// One pattern in GGUF files, two stages in a tokenizer.json.
TEST(GgufVocabulary, SmolLm) {
  json document = document_of("plain");
  document["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}}};
  const GgufVocabulary vocabulary = converted(document);
  EXPECT_EQ(vocabulary.pre, "smollm");
  EXPECT_EQ(vocabulary.difference, "");
  const Tokenizer expected = Tokenizer::from_json(document.dump());
  const Tokenizer got(vocabulary.spec());
  for (const std::string text : stages().at("texts")) {
    EXPECT_EQ(got.encode(text), expected.encode(text)) << text;
  }
}

TEST(GgufVocabulary, WordPieceWithoutFlags) {
  json document = document_of("WordPiece");
  for (json& token : document["added_tokens"]) {
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) token[flag] = false;
  }
  const GgufVocabulary vocabulary = converted(document, 420);
  EXPECT_EQ(vocabulary.model, "bert");
  EXPECT_EQ(vocabulary.difference, "");
  EXPECT_EQ(vocabulary.tokens.size(), 420u);
  EXPECT_EQ(vocabulary.tokens.back(), "[PAD419]");
  EXPECT_EQ(vocabulary.token_types.back(), 5);
  const Tokenizer expected = Tokenizer::from_json(document.dump());
  const Tokenizer got(vocabulary.spec());
  for (const std::string text : stages().at("texts")) {
    EXPECT_EQ(got.encode(text), expected.encode(text)) << text;
  }
  document["normalizer"]["handle_chinese_chars"] = false;
  EXPECT_EQ(converted(document).model, "");
}

/// The tokenizer.json of a small SentencePiece model: every split of a token is a merge.
json pieces() {
  json vocab = json::object();
  const auto add = [&](const std::string& token) {
    const size_t id = vocab.size();
    vocab[token] = id;
  };
  add("<unk>");
  add("<s>");
  add("</s>");
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const char* token : {"\u2581", "h", "e", "l", "o", "w", "r", "d", "a"}) add(token);
  json merges = json::array();
  const auto merge = [&](const std::string& left, const std::string& right) {
    if (!vocab.contains(left + right)) add(left + right);
    merges.push_back(left + " " + right);
  };
  merge("l", "l"), merge("h", "e"), merge("o", "r"), merge("\u2581", "w");
  merge("ll", "o"), merge("\u2581w", "or"), merge("he", "llo");
  return {{"added_tokens",
           {{{"id", 0}, {"content", "<unk>"}, {"special", true}},
            {{"id", 1}, {"content", "<s>"}, {"special", true}},
            {{"id", 2}, {"content", "</s>"}, {"special", true}}}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\u2581"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair", json::array()},
            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", merges}}}};
}

TEST(GgufVocabulary, SentencePiece) {
  json document = pieces();
  const GgufVocabulary vocabulary = converted(document);
  EXPECT_EQ(vocabulary.difference, "");
  EXPECT_EQ(vocabulary.model, "llama");
  EXPECT_TRUE(vocabulary.add_space_prefix);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_FALSE(vocabulary.add_eos);
  EXPECT_EQ(vocabulary.bos, 1);
  EXPECT_EQ(vocabulary.unk, 0);
  EXPECT_EQ(vocabulary.token_types[3 + 0x41], 6);
  const Tokenizer expected = Tokenizer::from_json(document.dump());
  const Tokenizer got(vocabulary.spec());
  for (const char* text : {"hello world", "  hellollo wor", "h\u00e9llo</s>ad", "", "wwor hello"}) {
    EXPECT_EQ(got.encode(text), expected.encode(text)) << text;
  }
  // Gemma's texts get no mark at their beginning.
  document["normalizer"] = document["normalizer"]["normalizers"][1];
  EXPECT_FALSE(converted(document).add_space_prefix);
  EXPECT_EQ(converted(document).difference, "");
  // SentencePiece would merge "hel" and "lo", for which this vocabulary has no merge.
  document["model"]["vocab"]["hel"] = document["model"]["vocab"].size();
  document["model"]["vocab"]["lo"] = document["model"]["vocab"].size();
  EXPECT_EQ(converted(document).model, "llama");
  EXPECT_THAT(converted(document).difference, HasSubstr("no order of scores"));
}

TEST(GgufVocabulary, LeavesOutAddedTokensWithoutRows) {
  json document = document_of("plain");
  document["added_tokens"] = json::parse(R"([{"id": 500, "content": "<s>", "special": true},
                      {"id": 501, "content": "[PAD]", "special": true, "lstrip": true}])");
  EXPECT_EQ(converted(document).tokens.size(), 502u);
  const GgufVocabulary cut = converted(document, 501);
  EXPECT_EQ(cut.tokens.size(), 501u);
  EXPECT_EQ(cut.tokens.back(), "<s>");
  EXPECT_EQ(cut.difference, "");
  EXPECT_EQ(converted(document, 600).tokens.size(), 600u);
}

TEST(GgufVocabulary, KeepsOtherTokenizers) {
  EXPECT_THAT(converted(document_of("Unigram")).difference, HasSubstr("Unigram isn't converted"));
  EXPECT_THAT(converted(document_of("WordLevel")).difference, HasSubstr("WordLevel"));
  EXPECT_THAT(converted(document_of("prefix")).difference, HasSubstr("pre-tokenizer"));
  EXPECT_THAT(converted(document_of("normalizer NFKC")).difference, HasSubstr("normalizer NFKC"));
  EXPECT_THAT(converted(document_of("added")).difference, HasSubstr("has the flag"));
  EXPECT_THAT(converted(document_of("BPE, suffix, fused True")).difference, HasSubstr("affixes"));
  EXPECT_THAT(test::error_of([] { gguf_vocabulary("{", 0); }), HasSubstr("malformed JSON"));
  EXPECT_THAT(test::error_of([] { gguf_vocabulary("{}", 0); }), HasSubstr("lacks 'model'"));
}

}  // namespace
}  // namespace wick::text
