#include "wick/text/tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "fixtures.h"
#include "wick/base/error.h"

namespace wick::text {
namespace {

using Ids = std::vector<int32_t>;
using ::testing::ElementsAre;

TEST(Tokenizer, IdsAgreeWithTheTokenizersPackage) {
  const Fixture& f = fixture();
  for (size_t p = 0; p < std::size(kPreNames); ++p) {
    const Tokenizer tokenizer(small_spec(kPreNames[p]));
    for (size_t t = 0; t < f.texts.size(); ++t) {
      EXPECT_EQ(tokenizer.encode(f.texts[t]), f.ids[p][t])
          << kPreNames[p] << " text " << t << " '" << f.texts[t] << "'";
    }
  }
}

TEST(Tokenizer, RoundTrip) {
  for (const char* pre : kPreNames) {
    const Tokenizer tokenizer(small_spec(pre));
    for (const std::string& text : fixture().texts) {
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.parse_special = false})), text);
    }
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const std::string text = random_utf8(seed, 1 + seed % 120);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << "seed " << seed;
    }
  }
}

// Texts of all vocabularies have at least the tokens of the bound, and long ones aren't encoded.
TEST(Tokenizer, LeastTokens) {
  const auto check = [](const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
    int64_t largest = 0;
    for (const std::string& text : texts) {
      const int64_t least = tokenizer.least_tokens(text);
      largest = std::max(largest, least);
      EXPECT_LE(least, static_cast<int64_t>(tokenizer.encode(text).size())) << text;
    }
    return largest;
  };
  std::vector<std::string> texts = fixture().texts;
  for (uint64_t seed = 0; seed < 100; ++seed) texts.push_back(random_utf8(seed, 1 + seed * 7));
  for (const char* pre : kPreNames) EXPECT_GT(check(Tokenizer(small_spec(pre)), texts), 10) << pre;
  const PieceFixture& f = piece_fixture();
  TokenizerSpec pieces;
  pieces.model = "llama";
  pieces.tokens.assign(f.tokens.begin(), f.tokens.end());
  pieces.token_types = f.types;
  pieces.scores = f.scores;
  pieces.unk = 0;
  texts.insert(texts.end(), f.texts.begin(), f.texts.end());
  for (const bool prefix : {false, true}) {
    pieces.add_space_prefix = prefix;
    EXPECT_GT(check(Tokenizer(pieces), texts), 10);
  }
  for (int32_t& type : pieces.token_types) type = type == 6 ? 5 : type;
  pieces.add_space_prefix = false;
  EXPECT_GT(check(Tokenizer(pieces), texts), 0);  // characters are unknown
  const Tokenizer tokenizer(small_spec("gpt-2"));
  const std::string text(1 << 20, 'a');
  const int64_t least = tokenizer.least_tokens(text);
  try {
    tokenizer.encode(text, {.most_tokens = least - 1});
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()),
              fmt::format("tokenize: the text is too long: 1048576 bytes, at least {} tokens: need "
                          "at most {} tokens",
                          least, least - 1));
  }
  EXPECT_FALSE(tokenizer.encode(text, {.most_tokens = least}).empty());
}

TEST(Tokenizer, SpecialTokens) {
  const Tokenizer tokenizer(small_spec("gpt-2"));
  const auto start = *tokenizer.token_id("<|im_start|>"), end = *tokenizer.token_id("<|im_end|>");
  EXPECT_THAT(tokenizer.encode("<|im_start|><|im_end|>"), ElementsAre(start, end));
  const Ids plain = tokenizer.encode("<|im_start|>", {.parse_special = false});
  EXPECT_THAT(plain, ::testing::Not(::testing::Contains(start)));
  EXPECT_EQ(tokenizer.decode(plain), "<|im_start|>");
  // User-defined tokens are text: they always match, the longest first, and are always decoded.
  EXPECT_THAT(tokenizer.encode("<think><thinking>", {.parse_special = false}), ElementsAre(3, 4));
  EXPECT_FALSE(tokenizer.is_special(3));
  EXPECT_EQ(tokenizer.decode(Ids{start, 3, end}, true), "<think>");
  EXPECT_EQ(tokenizer.decode(Ids{start, 3, end}), "<|im_start|><think><|im_end|>");
  EXPECT_TRUE(tokenizer.is_special(start));
  EXPECT_TRUE(tokenizer.is_end_of_generation(end));
  EXPECT_TRUE(tokenizer.is_end_of_generation(0));
  EXPECT_FALSE(tokenizer.is_end_of_generation(start));
  EXPECT_FALSE(tokenizer.is_end_of_generation(-1));
  EXPECT_FALSE(tokenizer.is_special(1 << 30));
}

TEST(Tokenizer, BeginAndEnd) {
  TokenizerSpec spec = small_spec("gpt-2");
  spec.add_bos = spec.add_eos = true;
  const Tokenizer tokenizer(spec);
  const Ids a = tokenizer.encode("a", {.add_bos = false, .add_eos = false});
  ASSERT_EQ(a.size(), 1u);
  EXPECT_THAT(tokenizer.encode("a"), ElementsAre(1, a[0], 2));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre(1, 2));
  EXPECT_THAT(tokenizer.encode("a", {.add_eos = false}), ElementsAre(1, a[0]));
  spec = small_spec("gpt-2");
  spec.bos.reset();
  const Tokenizer without(spec);
  EXPECT_THROW(without.encode("a", {.add_bos = true}), Error);
}

TEST(Tokenizer, Lookup) {
  const Tokenizer tokenizer(small_spec("gpt-2"));
  EXPECT_EQ(tokenizer.vocab_size(), static_cast<int32_t>(fixture().tokens.size()));
  const auto the = tokenizer.token_id(" the");
  ASSERT_TRUE(the.has_value());
  EXPECT_EQ(tokenizer.piece(*the), " the");
  EXPECT_EQ(tokenizer.token_id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.token_id(""), std::nullopt);
  EXPECT_THROW(tokenizer.piece(-1), Error);
  EXPECT_THROW(tokenizer.piece(tokenizer.vocab_size()), Error);
  EXPECT_THROW(tokenizer.decode(Ids{0, 1 << 30}), Error);
}

TEST(Tokenizer, OutlivesItsSpec) {
  Tokenizer tokenizer = [] {
    std::vector<std::string> words = {"a", "b", "ab"};
    std::string merge = "a b";
    TokenizerSpec spec;
    spec.model = "gpt2";
    spec.pre = "gpt-2";
    spec.tokens.assign(words.begin(), words.end());
    spec.merges = {merge};
    return Tokenizer(spec);
  }();
  const Tokenizer copy = tokenizer;
  tokenizer = Tokenizer(small_spec("gpt-2"));
  EXPECT_THAT(copy.encode("abba"), ElementsAre(2, 1, 0));
}

// A vocabulary without a token for 'c' or its byte: 'c' is omitted, as in the reference.
TEST(Tokenizer, MissingBytes) {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  spec.tokens = {"a", "b", "ab", "<0x0A>"};
  spec.token_types = {1, 1, 1, 6};
  spec.merges = {"a b"};
  const Tokenizer tokenizer(spec);
  EXPECT_THAT(tokenizer.encode("acb"), ElementsAre(2));
  EXPECT_THAT(tokenizer.encode("a\nb"), ElementsAre(0, 3, 1));
  EXPECT_EQ(tokenizer.decode(Ids{3}), "\n");
}

TEST(Tokenizer, InvalidUtf8NamesTheOffset) {
  const Tokenizer tokenizer(small_spec("smollm"));
  const auto message = [&](std::string_view text) -> std::string {
    try {
      tokenizer.encode(text);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message("hello world!\xff tail"),
            "tokenize: invalid UTF-8: byte 0xff at offset 12: need well-formed UTF-8 text");
  EXPECT_EQ(message("\xe4\xbd"),
            "tokenize: invalid UTF-8: byte 0xe4 at offset 0: need well-formed UTF-8 text");
  EXPECT_NE(message("ok \xed\xa0\x80"), "");      // surrogate
  EXPECT_NE(message("ok \xc0\x80"), "");          // overlong
  EXPECT_NE(message("ok \xf4\x90\x80\x80"), "");  // beyond U+10FFFF
  EXPECT_NE(message("12345678\x80"), "");         // after an ASCII word
  EXPECT_EQ(message("ok \xf4\x8f\xbf\xbf \xed\x9f\xbf \xee\x80\x80"), "");
}

TEST(Tokenizer, ManyThreads) {
  const Tokenizer tokenizer(small_spec("llama-bpe"));
  const std::string text = random_utf8(3, 3000);
  const Ids expected = tokenizer.encode(text);
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t i = 0; i < same.size(); ++i) {
    threads.emplace_back([&, i] { same[i] = tokenizer.encode(text) == expected; });
  }
  for (auto& t : threads) t.join();
  EXPECT_THAT(same, ::testing::Each(1));
}

}  // namespace
}  // namespace wick::text
