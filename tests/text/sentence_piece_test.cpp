// Compares SentencePiece vocabularies with the package `sentencepiece`: see make_pieces.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>

#include "fixtures.h"
#include "wick/base/error.h"
#include "wick/text/stream_decoder.h"
#include "wick/text/tokenizer.h"

namespace wick::text {
namespace {

using testing::HasSubstr;

TokenizerSpec spec_of(bool prefix = false) {
  const PieceFixture& f = piece_fixture();
  TokenizerSpec spec;
  spec.model = "llama";
  spec.tokens.assign(f.tokens.begin(), f.tokens.end());
  spec.token_types = f.types;
  spec.scores = f.scores;
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.add_space_prefix = prefix;
  return spec;
}

constexpr EncodeOptions kPlain{.parse_special = false};

TEST(SentencePiece, HasTheReferencesIds) {
  const PieceFixture& f = piece_fixture();
  const Tokenizer tokenizer(spec_of()), prefixed(spec_of(true));
  ASSERT_GT(f.texts.size(), 300u);
  size_t compared = 0;
  for (size_t i = 0; i < f.texts.size(); ++i) {
    const std::string& text = f.texts[i];
    EXPECT_EQ(tokenizer.encode(text, kPlain), f.ids[i]) << text;
    // The tokenizer also inserts a space after a user-defined token (one of which is four spaces),
    // so such texts are excluded.
    const bool plain =
        text.find("<table>") == std::string::npos && text.find("   ") == std::string::npos;
    if (plain) {
      EXPECT_EQ(prefixed.encode(text, kPlain), f.prefixed[i]) << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 200u);
}

TEST(SentencePiece, DecodesWhatItEncodes) {
  const Tokenizer tokenizer(spec_of()), prefixed(spec_of(true));
  for (const std::string& text : piece_fixture().texts) {
    if (text.find("\u2581") != std::string::npos) continue;  // U+2581 stands for a space
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    const bool one_part = text.find("<table>") == std::string::npos &&
                          text.find("    ") == std::string::npos &&
                          text.find("<end_of_turn>") == std::string::npos;
    if (one_part) {
      EXPECT_EQ(prefixed.decode(prefixed.encode(text)), text);
    }
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const int32_t id : tokenizer.encode(text, kPlain)) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), text);
  }
}

TEST(SentencePiece, SpecialTokens) {
  TokenizerSpec spec = spec_of(true);
  spec.add_bos = true;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode(""), std::vector<int32_t>{1});
  // A space is inserted at the start of the text, and after a control token.
  const auto ids = tokenizer.encode("a<start_of_turn>a");
  EXPECT_EQ(ids,
            (std::vector<int32_t>{1, *tokenizer.token_id(" a"), 3, *tokenizer.token_id(" a")}));
  EXPECT_EQ(tokenizer.decode(ids, true), "a a");
  EXPECT_EQ(tokenizer.decode(ids), "<s>a<start_of_turn> a");
  EXPECT_TRUE(tokenizer.is_end_of_generation(*tokenizer.token_id("<end_of_turn>")));
  EXPECT_TRUE(tokenizer.is_special(*tokenizer.token_id("<start_of_turn>")));
}

// Without byte tokens a character is unknown; without an unknown token it is omitted.
TEST(SentencePiece, UnknownCharacters) {
  TokenizerSpec spec = spec_of();
  for (int32_t& type : spec.token_types) type = type == 6 ? 5 : type;
  EXPECT_EQ(
      Tokenizer(spec).encode("a\u4f60b"),
      (std::vector<int32_t>{*Tokenizer(spec).token_id("a"), 0, *Tokenizer(spec).token_id("b")}));
  const PieceFixture& f = piece_fixture();
  const Tokenizer tokenizer(spec);
  size_t with_unknown = 0;
  for (size_t i = 0; i < f.texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(f.texts[i], kPlain), f.unknown[i]) << f.texts[i];
    with_unknown += std::count(f.unknown[i].begin(), f.unknown[i].end(), 0) > 0 ? 1 : 0;
  }
  EXPECT_GT(with_unknown, 100u);
  spec.unk.reset();
  EXPECT_EQ(Tokenizer(spec).encode("a\u4f60b").size(), 2u);
}

TEST(SentencePiece, UnknownCharactersOfGemma4) {
  TokenizerSpec spec;
  spec.model = "gemma4";
  spec.tokens = {"<unk>", "a", "b", "ab"};
  spec.token_types = {2, 1, 1, 1};
  spec.merges = {"a b"};
  EXPECT_EQ(Tokenizer(spec).encode("ab\u4f60\u597db"), (std::vector<int32_t>{3, 2}));
  spec.unk = 0;
  EXPECT_EQ(Tokenizer(spec).encode("ab\u4f60\u597db"), (std::vector<int32_t>{3, 0, 2}));
}

// In a vocabulary with a space inside a token, merges cross word boundaries.
TEST(SentencePiece, TokensOfSeveralWords) {
  TokenizerSpec spec;
  spec.model = "llama";
  spec.tokens = {"<unk>", "a", "b", "\u2581", "a\u2581", "a\u2581b", "\u2581b"};
  spec.token_types = {2, 1, 1, 1, 1, 1, 1};
  spec.scores = {0, -3, -3, -3, -1, -2, -2};
  EXPECT_EQ(Tokenizer(spec).encode("a b"), std::vector<int32_t>{5});
  EXPECT_EQ(Tokenizer(spec).encode("b b a b"), (std::vector<int32_t>{2, 6, 3, 5}));
  // Equal scores: the leftmost pair is merged.
  spec.tokens = {"<unk>", "a", "b", "ab", "ba"};
  spec.token_types = {2, 1, 1, 1, 1};
  spec.scores = {0, -3, -3, -1, -1};
  EXPECT_EQ(Tokenizer(spec).encode("bababa"), (std::vector<int32_t>{4, 4, 4}));
  EXPECT_EQ(Tokenizer(spec).encode("aba"), (std::vector<int32_t>{3, 1}));
}

TEST(SentencePiece, Errors) {
  const auto error = [](const std::function<void(TokenizerSpec&)>& change) {
    TokenizerSpec spec = spec_of();
    change(spec);
    try {
      const Tokenizer tokenizer(spec);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error([](auto&) {}), "");
  // A SentencePiece vocabulary has no split pattern.
  EXPECT_EQ(error([](auto& s) { s.pre = "no-such"; }), "");
  EXPECT_EQ(error([](auto& s) { s.scores.clear(); }),
            "tokenizer: tokens and scores differ in number: 800 tokens, 0 scores");
  EXPECT_EQ(error([](auto& s) { s.scores[7] = NAN; }), "tokenizer: a score is NaN: token 7");
  EXPECT_EQ(error([](auto& s) { s.scores[700] = std::numeric_limits<float>::infinity(); }), "");
  EXPECT_THAT(error([](auto& s) { s.tokens[300] = "a\xff"; }), HasSubstr("token 300 'a\\xff'"));
  EXPECT_THAT(error([](auto& s) { s.token_types[5] = 7; }), HasSubstr("unknown token type"));
}

// Texts that merge at every position, as one word or as many, take time proportional to their
// length.
TEST(SentencePiece, TimeGrowsWithTheText) {
  const Tokenizer tokenizer(spec_of());
  const auto seconds = [&](const std::string& word, size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += word;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(tokenizer.encode(text).empty());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (const char* word : {"a", "the", " a", "<", "\u4f60", "   ", "ab "}) {
    seconds(word, 1000);
    const double small = seconds(word, 50'000), large = seconds(word, 800'000);
    EXPECT_LT(large, 16 * small * 6 + 0.1) << word;
  }
}

}  // namespace
}  // namespace wick::text
