#include "wick/text/split/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fixtures.h"
#include "tests/near_linear.h"
#include "wick/base/error.h"
#include "wick/text/split/pre_tokenizers.h"

namespace wick::text {
namespace {

std::vector<std::string> split(const Splitter& splitter, std::string_view text) {
  std::vector<std::string> words;
  Splitter::Cursor cursor(splitter, text);
  for (auto w = cursor.next(); !w.empty(); w = cursor.next()) words.emplace_back(w);
  return words;
}

std::vector<SplitStage> of(std::string_view name) { return stages_of(*find_pre_tokenizer(name)); }

TEST(Split, AgreesWithTheRegexModule) {
  const Fixture& f = fixture();
  ASSERT_GE(f.texts.size(), 200u);
  for (size_t p = 0; p < std::size(kPreNames); ++p) {
    const Splitter splitter(of(kPreNames[p]));
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
  const Splitter smollm(of("smollm")), gpt2(of("gpt-2"));
  const Splitter llama(of("llama-bpe")), qwen(of("qwen2"));
  EXPECT_EQ(split(gpt2, "I'm in  2024!"), (Words{"I", "'m", " in", " ", " 2024", "!"}));
  EXPECT_EQ(split(smollm, "I'm in  2024!"),
            (Words{"I", "'m", " in", "  ", "2", "0", "2", "4", "!"}));
  EXPECT_EQ(split(llama, "I'M in  2024!\n\n"),
            (Words{"I", "'M", " in", " ", " ", "202", "4", "!\n\n"}));
  EXPECT_EQ(split(qwen, "(a)\r\n 12"), (Words{"(a", ")\r\n", " ", "1", "2"}));
}

TEST(Split, WordsJoinToTheText) {
  for (const char* pre : kPreNames) {
    const Splitter splitter(of(pre));
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
    const Splitter splitter(of(pre));
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
  for (const char* pre : kPreNames) EXPECT_EQ(find_pre_tokenizer(pre)->name, pre);
  EXPECT_EQ(find_pre_tokenizer("llama3")->name, "llama-bpe");
  EXPECT_EQ(find_pre_tokenizer("llama-v3")->name, "llama-bpe");
  EXPECT_EQ(find_pre_tokenizer("phi-2")->name, "gpt-2");
  EXPECT_EQ(find_pre_tokenizer("deepseek-r1-qwen")->name, "qwen2");
  EXPECT_EQ(find_pre_tokenizer("starcoder")->name, "smollm");
  EXPECT_EQ(find_pre_tokenizer("no\nsuch"), nullptr);
  EXPECT_EQ(default_pre_tokenizer().name, "default");
  // Each name has a family of its own or is an alias of one, and all patterns compile.
  const auto names = pre_tokenizer_names();
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
  for (const std::string_view name : names) {
    ASSERT_NE(find_pre_tokenizer(name), nullptr) << name;
    const Splitter splitter(stages_of(*find_pre_tokenizer(name)));
    EXPECT_GT(split(splitter, "a b").size(), 0u) << name;
  }
}

/// A pattern of every family agrees with a concatenation of its words, apart from marks of spaces.
TEST(Split, WordsOfEveryFamilyJoinToTheText) {
  for (const std::string_view name : pre_tokenizer_names()) {
    const PreTokenizer& pre = *find_pre_tokenizer(name);
    if (pre.raw) continue;
    const Splitter splitter(stages_of(pre));
    for (const std::string& text : fixture().texts) {
      std::string joined;
      for (const auto& word : split(splitter, text)) joined += word;
      EXPECT_EQ(joined, text) << name;
    }
  }
}

TEST(Split, StagesFollowEachOther) {
  using Words = std::vector<std::string>;
  const auto words = [](const char* pre, std::string_view text) {
    return split(Splitter(stages_of(*find_pre_tokenizer(pre))), text);
  };
  EXPECT_EQ(words("deepseek-llm", "ab 12\u4f60\u597d!\n  "),
            (Words{"ab", " ", "12", "\u4f60\u597d", "!", "\n", "  "}));
  EXPECT_EQ(words("deepseek-v3", "x1234 \u4f60a"), (Words{"x", "123", "4", " ", "\u4f60", "a"}));
  EXPECT_EQ(words("falcon", "a-12345"), (Words{"a", "-", "123", "45"}));
  EXPECT_EQ(words("default", "a+12345 b"), (Words{"a", "+", "123", "45", " b"}));
  EXPECT_EQ(words("superbpe", "the way 1234567"), (Words{"the way ", "1", "234", "567"}));
  EXPECT_EQ(words("tiny_aya", "1234567 12345x"), (Words{"1", "234", "567", " ", "123", "45", "x"}));
  EXPECT_EQ(words("afmoe", "n12345"), (Words{"n", "12", "345"}));
  EXPECT_EQ(words("gpt-4o", "HelloWORLDs it'S"), (Words{"Hello", "WORLDs", " it'S"}));
  EXPECT_EQ(words("kimi-k2", "Hi\u4f60\u597dx"), (Words{"Hi", "\u4f60\u597d", "x"}));
  EXPECT_EQ(words("bloom", "a (b, c"), (Words{"a", " (", "b", ",", " c"}));
  EXPECT_EQ(words("gemma4", "a  b\n\nc"), (Words{"a\u2581\u2581b", "\n\n", "c"}));
  EXPECT_EQ(words("mmbert", "a b\nc"), (Words{"\u2581a", "\u2581b", "\n", "\u2581c"}));
}

TEST(Split, Behaviors) {
  using Words = std::vector<std::string>;
  const auto words = [](SplitBehavior behavior, std::string_view text, bool invert = false) {
    return split(Splitter({{.pattern = "-", .behavior = behavior, .invert = invert}}), text);
  };
  constexpr std::string_view kText = "the-final--countdown-";
  EXPECT_EQ(words(SplitBehavior::isolated, kText),
            (Words{"the", "-", "final", "-", "-", "countdown", "-"}));
  EXPECT_EQ(words(SplitBehavior::removed, kText), (Words{"the", "final", "countdown"}));
  EXPECT_EQ(words(SplitBehavior::removed, kText, true), (Words{"-", "-", "-", "-"}));
  EXPECT_EQ(words(SplitBehavior::contiguous, kText),
            (Words{"the", "-", "final", "--", "countdown", "-"}));
  EXPECT_EQ(words(SplitBehavior::merged_with_previous, kText),
            (Words{"the-", "final-", "-", "countdown-"}));
  EXPECT_EQ(words(SplitBehavior::merged_with_next, kText),
            (Words{"the", "-final", "-", "-countdown", "-"}));
}

TEST(Split, Syntax) {
  EXPECT_EQ(Regex::to_pcre2(R"(\p{Han}\p{L}\p{^Greek})"), R"(\p{sc:Han}\p{L}\p{^sc:Greek})");
  EXPECT_EQ(Regex::to_pcre2(R"([a[b-c]\]]\u00e9)"), R"([ab-c\]]\x{00e9})");
  for (const char* bad : {"", "(", "[a", "[a&&b]", "\\p{NoSuchScript}", "a\\", "\\C", "*"}) {
    EXPECT_THROW(Regex{bad}, Error) << bad;
  }
  // Patterns whose matching would take exponential time end in an error.
  const Splitter slow({{.pattern = "(a+)+$"}});
  EXPECT_THROW(split(slow, std::string(200, 'a') + "!"), Error);
}

TEST(Split, EveryFamilyTakesLinearTime) {
  for (const std::string_view name : pre_tokenizer_names()) {
    if (find_pre_tokenizer(name)->name != name) continue;  // an alias
    const Splitter splitter(of(name));
    for (const char* unit : {"a", "A", " ", "\n", "\t ", "1", "!", "'", "\u4e2d", "\u0301", "Aa1 ",
                             "\n ", "1a", "\u0e01"}) {
      wick::test::expect_near_linear(std::string(name) + " " + unit, 8000, [&](size_t bytes) {
        std::string text;
        while (text.size() < bytes) text += unit;
        text += "x";
        return [&splitter, text] { split(splitter, text); };
      });
    }
  }
}

TEST(Split, OnePatternOnManyThreads) {
  const Splitter splitter(of("llama-bpe"));
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
