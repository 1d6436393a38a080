// tokenizer.json, and T5's and BERT's vocabularies, against PyPI's packages (make_stages.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "fixtures.h"
#include "tests/near_linear.h"
#include "wick/base/error.h"
#include "wick/base/utf8.h"
#include "wick/text/normalize/normalizer.h"
#include "wick/text/stream_decoder.h"
#include "wick/text/tokenizer.h"

namespace wick::text {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const json& stages() {
  static const json data = [] {
    std::ifstream file(WICK_TEST_DATA "/stages.json");
    return json::parse(file);
  }();
  return data;
}

/// The tokenizer.json of a case.
json document_of(const json& test) {
  json document = test.at("parts");
  document["model"] = stages().at("models").at(test.at("model").get<std::string>());
  return document;
}

/// Text with U+FFFD for each ill-formed part.
std::string valid(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const size_t length = step.kind == Utf8Step::incomplete ? text.size() : step.length;
    if (step.kind == Utf8Step::valid) {
      out += text.substr(0, length);
    } else {
      out += "\xef\xbf\xbd";
    }
    text.remove_prefix(length);
  }
  return out;
}

/// A byte-level vocabulary of 500 tokens with three special tokens behind them.
json with_special_tokens() {
  json document = document_of(stages().at("cases").at(0));
  int id = 500;
  document["added_tokens"] = json::array();
  for (const char* name : {"<s>", "</s>", "[PAD]"}) {
    document["added_tokens"].push_back({{"id", id++}, {"content", name}, {"special", true}});
  }
  document["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::parse(R"([{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}])")},
      {"special_tokens", json::parse(R"({"<s>": {"id": "<s>", "ids": [500]}})")}};
  return document;
}

TEST(TokenizerJson, TakesSpecialTokensOfOtherFiles) {
  const std::string text = with_special_tokens().dump();
  const Tokenizer alone = Tokenizer::from_json(text);
  EXPECT_EQ(alone.bos(), 500);
  EXPECT_EQ(alone.eos(), std::nullopt);
  EXPECT_EQ(alone.pad(), std::nullopt);
  EXPECT_FALSE(alone.is_end_of_generation(501));
  const Tokenizer tokenizer =
      Tokenizer::from_json(text, {.bos = 502, .eos = 501, .pad = 502, .unk = 7});
  EXPECT_EQ(tokenizer.bos(), 502);
  EXPECT_EQ(tokenizer.eos(), 501);
  EXPECT_EQ(tokenizer.pad(), 502);
  EXPECT_EQ(tokenizer.unk(), 7);
  EXPECT_TRUE(tokenizer.is_end_of_generation(501));
  EXPECT_FALSE(tokenizer.add_eos());
  // Texts begin as the post-processor says.
  EXPECT_EQ(tokenizer.first_added(), 500);
  EXPECT_EQ(tokenizer.encode("a b"), alone.encode("a b"));
  EXPECT_EQ(tokenizer.encode("a").front(), 500);
  const Tokenizer outside = Tokenizer::from_json(text, {.bos = 503, .eos = -1, .pad = 1000});
  EXPECT_EQ(outside.bos(), 500);
  EXPECT_EQ(outside.eos(), std::nullopt);
  EXPECT_EQ(outside.pad(), std::nullopt);
}

TEST(TokenizerJson, LeavesOutAddedTokensWithoutRows) {
  json document = with_special_tokens();
  const Tokenizer whole = Tokenizer::from_json(document.dump(), {.rows = 503});
  EXPECT_EQ(whole.vocab_size(), 503);
  EXPECT_EQ(whole.warning(), "");
  EXPECT_EQ(whole.encode("a[PAD]").back(), 502);
  const Tokenizer cut = Tokenizer::from_json(document.dump(), {.pad = 502, .rows = 502});
  EXPECT_EQ(cut.vocab_size(), 502);
  EXPECT_EQ(cut.pad(), std::nullopt);
  EXPECT_EQ(cut.warning(),
            "1 added token of the tokenizer.json has no row in the embedding and is read as text: "
            "[PAD]");
  json without = document;
  without["added_tokens"].erase(2);
  EXPECT_EQ(cut.encode("a[PAD] </s>"), Tokenizer::from_json(without.dump()).encode("a[PAD] </s>"));
  // Added tokens may be in the model's vocabulary, too.
  document["model"]["vocab"]["[PAD]"] = 502;
  const Tokenizer both = Tokenizer::from_json(document.dump(), {.rows = 502});
  EXPECT_EQ(both.vocab_size(), 502);
  EXPECT_EQ(both.encode("a[PAD]"), cut.encode("a[PAD]"));
  EXPECT_EQ(both.warning(), cut.warning());
  // Other tokens aren't left out.
  document["model"]["vocab"]["xyz"] = 503;
  EXPECT_EQ(Tokenizer::from_json(document.dump(), {.rows = 502}).vocab_size(), 504);
}

TEST(TokenizerJson, LeavesOutAddedTokensOfUnigrams) {
  json document;
  document["model"] = json::parse(
      R"({"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -1], ["b", -2], ["<x>", 0]]})");
  document["added_tokens"] = json::parse(R"([{"id": 3, "content": "<x>", "special": true}])");
  EXPECT_EQ(Tokenizer::from_json(document.dump()).encode("ab<x>"), (std::vector<int32_t>{1, 2, 3}));
  const Tokenizer cut = Tokenizer::from_json(document.dump(), {.rows = 3});
  EXPECT_EQ(cut.vocab_size(), 3);
  EXPECT_EQ(cut.encode("ab<x>"), (std::vector<int32_t>{1, 2, 0}));
}

TEST(TokenizerJson, AgreesWithTheTokenizersPackage) {
  const auto texts = stages().at("texts").get<std::vector<std::string>>();
  ASSERT_GE(stages().at("cases").size(), 40u);
  for (const json& test : stages().at("cases")) {
    const std::string name = test.at("name");
    const Tokenizer tokenizer = Tokenizer::from_json(document_of(test).dump());
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = test.at("ids")[i].get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizer.encode(texts[i]), ids) << name << ": '" << texts[i] << "'";
      EXPECT_LE(tokenizer.least_tokens(texts[i]), static_cast<int64_t>(ids.size())) << name;
      // The package replaces bytes of incomplete characters one by one if they are byte tokens.
      if (test.contains("decoded") && name != "BPE, byte fallback") {
        EXPECT_EQ(valid(tokenizer.decode(ids)), test.at("decoded")[i].get<std::string>()) << name;
      }
    }
  }
}

std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = (bits << 6) | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count);
  }
  return out;
}

TokenizerSpec t5_spec(const json& data, const std::vector<std::string>& tokens) {
  TokenizerSpec spec;
  spec.model = "t5";
  spec.tokens.assign(tokens.begin(), tokens.end());
  data.at("types").get_to(spec.token_types);
  data.at("scores").get_to(spec.scores);
  spec.charsmap = from_base64(stages().at("charsmap").get<std::string>());
  spec.remove_extra_spaces = data.at("remove_extra_spaces");
  spec.add_space_prefix = true;
  spec.unk = 0;
  spec.eos = 2;
  return spec;
}

TEST(Unigram, AgreesWithSentencePiece) {
  const auto texts = stages().at("texts").get<std::vector<std::string>>();
  for (const json& data : stages().at("t5")) {
    const auto tokens = data.at("tokens").get<std::vector<std::string>>();
    const Tokenizer tokenizer(t5_spec(data, tokens));
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer.encode(texts[i]), data.at("ids")[i].get<std::vector<int32_t>>())
          << "'" << texts[i] << "'";
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("don't stop")), "don't stop");
  }
}

TEST(WordPiece, AgreesWithTheTokenizersPackage) {
  const json& data = stages().at("bert");
  const auto texts = stages().at("texts").get<std::vector<std::string>>();
  const auto tokens = data.at("tokens").get<std::vector<std::string>>();
  TokenizerSpec spec;
  spec.model = "bert";
  spec.tokens.assign(tokens.begin(), tokens.end());
  data.at("types").get_to(spec.token_types);
  spec.unk = 1;
  spec.bos = 2;
  spec.eos = 3;
  spec.add_bos = spec.add_eos = true;
  const Tokenizer tokenizer(spec);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i]), data.at("ids")[i].get<std::vector<int32_t>>())
        << "'" << texts[i] << "'";
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("The cat."), true), "the cat.");
  // A word of more than 100 characters is unknown.
  EXPECT_EQ(tokenizer.encode(std::string(101, 'a')), (std::vector<int32_t>{2, 1, 3}));
  EXPECT_GT(tokenizer.encode(std::string(100, 'a')).size(), 3u);
}

/// BPE of characters with a text's spaces as U+2581, as in Gemma 4's files.
TEST(CharBpe, OfGgufFiles) {
  TokenizerSpec spec;
  spec.model = "gemma4";
  spec.tokens = {"<bos>",    "a",  "b",    "ab",     "\u2581", "\u2581a",
                 "\u2581ab", "\n", "\n\n", "<0xC3>", "<0xA9>"};
  spec.token_types = {3, 1, 1, 1, 1, 1, 1, 1, 1, 6, 6};
  spec.merges = {"a b", "\u2581 a", "\u2581 ab", "\u2581a b"};
  spec.bos = 0;
  spec.add_bos = true;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("ab a ab\n\n\u00e9"), (std::vector<int32_t>{0, 3, 5, 6, 8, 9, 10}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab a\u00e9"), true), "ab a\u00e9");
  EXPECT_TRUE(adds_bos_by_default("gemma4", ""));
  EXPECT_TRUE(adds_bos_by_default("gpt2", "llama3"));
  EXPECT_FALSE(adds_bos_by_default("gpt2", "qwen2"));
}

TEST(NoVocabulary, HasNoTokens) {
  TokenizerSpec spec;
  spec.model = "none";
  spec.tokens.resize(10);
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.vocab_size(), 10);
  EXPECT_EQ(tokenizer.encode(""), std::vector<int32_t>());
  EXPECT_THROW(tokenizer.encode("a"), Error);
}

TEST(Tokenizer, ReplacesInvalidBytesIfAsked) {
  const Tokenizer tokenizer(small_spec("llama-bpe"));
  EncodeOptions options;
  options.replace_invalid = true;
  EXPECT_EQ(tokenizer.encode("a\xff"
                             "b\xe4\xbd",
                             options),
            tokenizer.encode("a\ufffd"
                             "b\ufffd"));
  EXPECT_EQ(tokenizer.encode("abc", options), tokenizer.encode("abc"));
}

std::string error_of(const std::string& text) {
  try {
    Tokenizer::from_json(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

const json& plain_case() { return stages().at("cases")[0]; }

std::string error_after(const std::function<void(json&)>& change) {
  json document = document_of(plain_case());
  change(document);
  return error_of(document.dump());
}

TEST(TokenizerJson, Errors) {
  EXPECT_EQ(error_after([](json&) {}), "");
  EXPECT_THAT(error_of(""), HasSubstr("tokenizer.json: malformed JSON"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("need an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("lacks 'model'"));
  EXPECT_EQ(error_after([](json& d) { d["model"]["type"] = "Markov"; }),
            "tokenizer.json: unsupported part: model 'Markov'");
  EXPECT_EQ(error_after([](json& d) { d["model"]["dropout"] = 0.1; }),
            "tokenizer.json: unsupported part: model.dropout 'dropout'");
  EXPECT_EQ(error_after([](json& d) {
              d["normalizer"] = {{"type", "Shout"}};
            }),
            "tokenizer.json: unsupported part: normalizer 'Shout'");
  EXPECT_EQ(error_after([](json& d) {
              d["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
            }),
            "tokenizer.json: unsupported part: pre_tokenizer 'UnicodeScripts'");
  EXPECT_EQ(error_after([](json& d) {
              d["decoder"] = {{"type", "CTC"}};
            }),
            "tokenizer.json: unsupported part: decoder 'CTC'");
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["zzz"] = 0; }),
              HasSubstr("two tokens have the id 0"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["zzz"] = 2000000000; }),
              HasSubstr("far beyond the number of tokens"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["zzz"] = -1; }),
              HasSubstr("need an id"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["merges"][0] = "abc"; }),
              HasSubstr("model.merges[0]: need two tokens"));
  EXPECT_THAT(error_after([](json& d) {
                d["pre_tokenizer"] = {{"type", "Split"},
                                      {"pattern", {{"Regex", "(a"}}},
                                      {"behavior", "Isolated"},
                                      {"invert", false}};
              }),
              HasSubstr("invalid pattern: '(a'"));
  EXPECT_THAT(error_after([](json& d) {
                d["post_processor"] = {
                    {"type", "BertProcessing"}, {"sep", {"x", 1 << 20}}, {"cls", {"x", 1}}};
              }),
              HasSubstr("post_processor.sep: outside the vocabulary"));
  EXPECT_THAT(error_after([](json& d) {
                json nested = {{"type", "NFC"}};
                for (int i = 0; i < 1000; ++i) {
                  nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
                }
                d["normalizer"] = nested;
              }),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(error_after([](json& d) {
                d["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA////"}};
              }),
              HasSubstr("malformed precompiled character map"));
  try {
    Tokenizer::from_file("/no/such/tokenizer.json");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::file);
    EXPECT_THAT(e.what(), HasSubstr("/no/such/tokenizer.json"));
  }
}

// Normalizers that double a text again and again end in an error.
TEST(TokenizerJson, GrowthIsLimited) {
  json document = document_of(plain_case());
  json steps = json::array();
  for (int i = 0; i < 60; ++i) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  }
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  const Tokenizer tokenizer = Tokenizer::from_json(document.dump());
  EXPECT_THROW(tokenizer.encode("aaaa"), Error);
  EXPECT_GT(tokenizer.encode("bbbb").size(), 0u);
}

// Every mutation either throws Error or gives a tokenizer that encodes and decodes.
TEST(TokenizerJson, RandomDamage) {
  std::mt19937 rng(1);
  const auto texts = stages().at("texts").get<std::vector<std::string>>();
  int built = 0, refused = 0;
  for (int round = 0; round < 150; ++round) {
    const json& cases = stages().at("cases");
    std::string text = document_of(cases[rng() % cases.size()]).dump();
    for (unsigned n = 0; n <= rng() % 3; ++n) {
      const size_t at = rng() % text.size();
      switch (rng() % 4) {
        case 0:
          text[at] = static_cast<char>(rng());
          break;
        case 1:
          text.erase(at, rng() % 4);
          break;
        case 2:
          text.insert(at, text.substr(rng() % text.size(), rng() % 40));
          break;
        case 3:
          text[at] = static_cast<char>("0123456789\"[]{},:-e"[rng() % 19]);
          break;
      }
    }
    try {
      const Tokenizer tokenizer = Tokenizer::from_json(text);
      ++built;
      for (const std::string& line : texts) tokenizer.decode(tokenizer.encode(line));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(built, 10);
  EXPECT_GT(refused, 10);
}

// Runs of marks in the worst order, of one cluster, and of one word.
TEST(TokenizerJson, TimeGrowsWithTheText) {
  for (const json& test : stages().at("cases")) {
    const std::string name = test.at("name");
    const bool chosen = name == "normalizer NFC" || name == "normalizer Bert" ||
                        name == "normalizer Precompiled" || name == "WordPiece" ||
                        name == "Unigram" || name == "BPE, byte fallback";
    if (!chosen) continue;
    const Tokenizer tokenizer = Tokenizer::from_json(document_of(test).dump());
    for (const char* unit : {"a\u0301\u0323", "\u0301\u0323", "a", " ", "1"}) {
      wick::test::expect_near_linear(name + ": " + unit, 20000, [&](size_t bytes) {
        std::string text;
        while (text.size() < bytes) text += unit;
        return [&tokenizer, text] { tokenizer.encode(text); };
      });
    }
  }
}

TEST(Normalizer, Steps) {
  const auto after = [](const NormalizeStep& step, std::string text) {
    step(text);
    return text;
  };
  EXPECT_EQ(after(unicode_step(NormalForm::nfc), "e\u0301 \u1112\u1161\u11ab"), "\u00e9 \ud55c");
  EXPECT_EQ(after(unicode_step(NormalForm::nfd), "\u1e69"), "s\u0323\u0307");
  EXPECT_EQ(after(unicode_step(NormalForm::nfd), "s\u0307\u0323"), "s\u0323\u0307");
  EXPECT_EQ(after(unicode_step(NormalForm::nfkc), "\ufb01\u00bd"), "fi1\u20442");
  EXPECT_EQ(after(lower_step(), "ÀİΣ"), "ài\u0307σ");
  EXPECT_EQ(after(strip_step(true, false), " \u3000a "), "a ");
  EXPECT_EQ(after(strip_step(true, true), " \t "), "");
  EXPECT_EQ(after(bert_step({}), "Caf\u00e9\x07\u4e2d"), "cafe \u4e2d ");
}

}  // namespace
}  // namespace wick::text
