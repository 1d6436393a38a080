#include "wick/text/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "fixtures.h"
#include "wick/base/error.h"

namespace wick::text {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> split(const Splitter& splitter, std::string_view text) {
  std::vector<std::string> words;
  Splitter::Cursor cursor(splitter, text);
  for (auto w = cursor.next(); !w.empty(); w = cursor.next()) words.emplace_back(w);
  return words;
}

TEST(Split, AgreesWithTheRegexModule) {
  const Fixture& f = fixture();
  ASSERT_GE(f.texts.size(), 200u);
  for (size_t p = 0; p < std::size(kPreNames); ++p) {
    const Splitter splitter(find_pre_tokenizer(kPreNames[p]));
    for (size_t t = 0; t < f.texts.size(); ++t) {
      std::vector<std::string> expected;
      size_t pos = 0;
      for (const size_t length : f.words[p][t]) {
        expected.push_back(f.texts[t].substr(pos, length));
        pos += length;
      }
      EXPECT_EQ(split(splitter, f.texts[t]), expected)
          << kPreNames[p] << " text " << t << " '" << f.texts[t] << "'";
    }
  }
}

TEST(Split, Examples) {
  using Words = std::vector<std::string>;
  const Splitter smollm(find_pre_tokenizer("smollm")), gpt2(find_pre_tokenizer("gpt-2"));
  const Splitter llama(find_pre_tokenizer("llama-bpe")), qwen(find_pre_tokenizer("qwen2"));
  EXPECT_EQ(split(gpt2, "I'm in  2024!"), (Words{"I", "'m", " in", " ", " 2024", "!"}));
  EXPECT_EQ(split(smollm, "I'm in  2024!"),
            (Words{"I", "'m", " in", "  ", "2", "0", "2", "4", "!"}));
  EXPECT_EQ(split(llama, "I'M in  2024!\n\n"),
            (Words{"I", "'M", " in", " ", " ", "202", "4", "!\n\n"}));
  EXPECT_EQ(split(qwen, "(a)\r\n 12"), (Words{"(a", ")\r\n", " ", "1", "2"}));
}

TEST(Split, WordsJoinToTheText) {
  for (const char* pre : kPreNames) {
    const Splitter splitter(find_pre_tokenizer(pre));
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const std::string text = random_utf8(seed, 1 + seed % 90);
      std::string joined;
      for (const auto& w : split(splitter, text)) joined += w;
      EXPECT_EQ(joined, text) << pre << " seed " << seed;
    }
  }
}

// A word of megabytes doesn't overflow the matcher's stack and takes little time.
TEST(Split, MegabytesOfOneClass) {
  for (const char* pre : kPreNames) {
    const Splitter splitter(find_pre_tokenizer(pre));
    for (const char* unit : {"a", " ", "\n", "!", "\t ", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80"}) {
      std::string text = "x";
      while (text.size() < (4u << 20)) text += unit;
      text += "y";
      size_t total = 0;
      Splitter::Cursor cursor(splitter, text);
      for (auto w = cursor.next(); !w.empty(); w = cursor.next()) total += w.size();
      EXPECT_EQ(total, text.size()) << pre;
    }
  }
}

TEST(Split, Names) {
  for (const char* pre : kPreNames) EXPECT_EQ(find_pre_tokenizer(pre).name, pre);
  EXPECT_EQ(find_pre_tokenizer("llama3").name, "llama-bpe");
  EXPECT_EQ(find_pre_tokenizer("llama-v3").name, "llama-bpe");
  EXPECT_EQ(find_pre_tokenizer("phi-2").name, "gpt-2");
  EXPECT_EQ(find_pre_tokenizer("deepseek-r1-qwen").name, "qwen2");
  EXPECT_EQ(find_pre_tokenizer("starcoder").name, "smollm");
  try {
    find_pre_tokenizer("no\nsuch");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "tokenizer: unknown pre-tokenizer: 'no\\nsuch': need one of smollm, gpt-2, "
                 "llama-bpe, qwen2");
  }
}

TEST(Split, OnePatternOnManyThreads) {
  const Splitter splitter(find_pre_tokenizer("llama-bpe"));
  const std::string text = random_utf8(7, 4000);
  const auto expected = split(splitter, text);
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t i = 0; i < same.size(); ++i) {
    threads.emplace_back([&, i] { same[i] = split(splitter, text) == expected; });
  }
  for (auto& t : threads) t.join();
  EXPECT_THAT(same, ::testing::Each(1));
}

}  // namespace
}  // namespace wick::text
