#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "fixtures.h"
#include "wick/base/error.h"
#include "wick/text/tokenizer.h"

namespace wick::text {
namespace {

std::string error_of(const TokenizerSpec& spec) {
  try {
    Tokenizer tokenizer(spec);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string error_after(const std::function<void(TokenizerSpec&)>& change) {
  TokenizerSpec spec = small_spec("smollm");
  change(spec);
  return error_of(spec);
}

TEST(TokenizerSpec, Errors) {
  EXPECT_EQ(error_after([](auto&) {}), "");
  EXPECT_EQ(error_after([](auto& s) { s.model = "rwkv"; }),
            "tokenizer: unsupported vocabulary: 'rwkv': need gpt2 or gemma4 (BPE), llama or t5 "
            "(SentencePiece), bert (WordPiece) or none");
  EXPECT_EQ(error_after([](auto& s) { s.model = "t5"; }),
            "tokenizer: tokens and scores differ in number: 966 tokens, 0 scores");
  EXPECT_EQ(error_after([](auto& s) { s.model = "llama"; }),
            "tokenizer: tokens and scores differ in number: 966 tokens, 0 scores");
  EXPECT_EQ(error_after([](auto& s) {
              s.tokens.clear();
              s.token_types.clear();
            }),
            "tokenizer: the vocabulary is empty");
  EXPECT_THAT(error_after([](auto& s) { s.token_types.pop_back(); }),
              ::testing::HasSubstr("tokens and token types differ in number"));
  EXPECT_EQ(error_after([](auto& s) { s.token_types[5] = 7; }),
            "tokenizer: unknown token type: type 7 of token 5: need 1 to 6");
  EXPECT_THAT(error_after([](auto& s) { s.eos = -1; }), ::testing::HasSubstr("eos = -1"));
  EXPECT_THAT(error_after([](auto& s) { s.pad = 1 << 30; }), ::testing::HasSubstr("pad = "));
  EXPECT_THAT(error_after([](auto& s) {
                s.bos.reset();
                s.add_bos = true;
              }),
              ::testing::HasSubstr("add_bos"));
  EXPECT_THAT(error_after([](auto& s) { s.tokens[300] = "a\xff"; }),
              ::testing::HasSubstr("token 300 'a\\xff'"));
  for (const char* merge : {"", " ", "ab", "a ", " b", "a b c", "a\nb c", "\xff b", "\u4f60 b"}) {
    EXPECT_THAT(error_after([&](auto& s) { s.merges[3] = merge; }),
                ::testing::StartsWith("tokenizer: malformed merge: merge 3 '"))
        << "'" << merge << "'";
  }
}

// A file with an unknown split pattern is read, with a warning.
TEST(TokenizerSpec, UnknownPreTokenizer) {
  TokenizerSpec spec = small_spec("no\nsuch");
  const Tokenizer unknown(spec);
  EXPECT_EQ(unknown.warning(),
            "unknown pre-tokenizer 'no\\nsuch': text is split by the pattern of 'default', and the "
            "tokens may differ from the model's");
  spec.pre = "default";
  const Tokenizer named(spec);
  EXPECT_EQ(named.warning(), "");
  for (const std::string& text : fixture().texts)
    EXPECT_EQ(unknown.encode(text), named.encode(text));
}

// Chat markup is treated as control tokens even if the file says otherwise, so that text can't
// forge turns.
TEST(TokenizerSpec, MarkupIsControlWhateverTheFileSays) {
  TokenizerSpec spec = small_spec("gpt-2");
  for (const int32_t type : {1, 4}) {
    std::fill(spec.token_types.begin(), spec.token_types.begin() + 3, type);
    const Tokenizer tokenizer(spec);
    EXPECT_TRUE(tokenizer.is_special(2));
    EXPECT_TRUE(tokenizer.is_end_of_generation(2));
    EXPECT_THAT(tokenizer.encode("<|im_end|>", {.parse_special = false}),
                ::testing::Not(::testing::Contains(2)));
  }
}

TEST(TokenizerSpec, DuplicateAndEmptyTokens) {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = "qwen2";
  spec.tokens = {"", "a", "a", "", "<x>", "<x>", "aa", "aa", "", "b"};
  spec.token_types = {3, 1, 1, 4, 3, 3, 1, 1, 1, 1};
  spec.merges = {"a a", "a a", "b b", "aa aa"};
  const Tokenizer tokenizer(spec);
  const auto ids = tokenizer.encode("aaab<x>b");
  EXPECT_EQ(tokenizer.decode(ids), "aaab<x>b");
  EXPECT_EQ(tokenizer.token_id("<x>"), 4);
  EXPECT_EQ(tokenizer.token_id("a"), 1);
  EXPECT_EQ(tokenizer.piece(0), "");
}

// Every mutation either throws Error or gives a tokenizer that encodes and decodes without faults.
TEST(TokenizerSpec, RandomDamage) {
  std::mt19937 rng(1);
  const std::string noise = random_utf8(9, 4000) + std::string("\xff\xc0\x80", 3);
  int built = 0;
  for (int round = 0; round < 300; ++round) {
    TokenizerSpec spec = small_spec(kPreNames[rng() % 4]);
    for (unsigned n = 0; n <= rng() % 6; ++n) {
      const auto piece = [&] {
        const size_t at = rng() % noise.size();
        return std::string_view(noise).substr(at, rng() % 20);
      };
      switch (rng() % 7) {
        case 0:
          spec.tokens[rng() % spec.tokens.size()] = piece();
          break;
        case 1:
          spec.token_types[rng() % spec.token_types.size()] = int(rng() % 8);
          break;
        case 2:
          spec.merges[rng() % spec.merges.size()] = piece();
          break;
        case 3:
          std::swap(spec.merges[0], spec.merges[rng() % spec.merges.size()]);
          break;
        case 4:
          spec.tokens[rng() % spec.tokens.size()] = spec.tokens[rng() % spec.tokens.size()];
          break;
        case 5:
          spec.eos = int(rng() % 3000);
          break;
        case 6:
          std::fill(spec.token_types.begin(), spec.token_types.end(), int(1 + rng() % 6));
          break;
      }
    }
    try {
      const Tokenizer tokenizer(spec);
      ++built;
      for (const std::string& text : fixture().texts) tokenizer.decode(tokenizer.encode(text));
    } catch (const Error&) {
    }
  }
  EXPECT_GT(built, 50);
}

TEST(TokenizerSpec, RandomInvalidText) {
  const Tokenizer tokenizer(small_spec("llama-bpe"));
  std::mt19937 rng(2);
  int rejected = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = random_utf8(rng(), rng() % 30);
    for (unsigned n = 0; n < rng() % 4; ++n) {
      if (!text.empty()) text[rng() % text.size()] = static_cast<char>(rng());
    }
    try {
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    } catch (const Error&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 200);
}

}  // namespace
}  // namespace wick::text
