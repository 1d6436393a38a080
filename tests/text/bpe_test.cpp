#include "wick/text/model/bpe.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <string>

#include "fixtures.h"
#include "wick/base/error.h"

namespace wick::text {
namespace {

// BPE by its definition: merges the leftmost adjacent pair with the lowest rank.
std::vector<std::string> naive(const std::string& word,
                               const std::map<std::pair<std::string, std::string>, int>& ranks) {
  std::vector<std::string> parts;
  for (const char c : word) parts.emplace_back(1, c);
  for (;;) {
    int best = -1;
    size_t at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find({parts[i], parts[i + 1]});
      if (found != ranks.end() && (best < 0 || found->second < best)) {
        best = found->second;
        at = i;
      }
    }
    if (best < 0) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

// Random merge rules over {a, b, c}, whose ranks are independent of the tokens' lengths.
struct RandomRules {
  explicit RandomRules(unsigned seed) {
    std::mt19937 rng(seed);
    std::deque<std::string> words = {"a", "b", "c"};
    for (const auto& w : words) tokens.push_back(w);
    for (int rank = 0; rank < 60; ++rank) {
      const std::string left = words[rng() % words.size()], right = words[rng() % words.size()];
      if (ranks.contains({left, right})) continue;
      ranks[{left, right}] = static_cast<int>(merges.size());
      merges.push_back(left + " " + right);
      if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end()) {
        tokens.push_back(left + right);
        if ((left + right).size() < 12) words.push_back(left + right);
      }
    }
    std::shuffle(tokens.begin(), tokens.end(), rng);
  }
  std::vector<std::string> tokens, merges;
  std::map<std::pair<std::string, std::string>, int> ranks;
};

TEST(Bpe, FollowsTheDefinition) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const RandomRules rules(seed);
    const std::vector<std::string_view> token_views(rules.tokens.begin(), rules.tokens.end());
    const std::vector<std::string_view> merge_views(rules.merges.begin(), rules.merges.end());
    const TokenTable tokens(token_views, {});
    const MergeTable merges(merge_views, tokens);
    WordEncoder encoder(tokens, merges);
    std::mt19937 rng(seed + 1000);
    // Lengths on both sides of 48, the threshold between encode_short and encode_long.
    for (const size_t length : {1u, 2u, 3u, 10u, 46u, 47u, 48u, 49u, 63u, 64u, 65u, 300u}) {
      std::string word;
      while (word.size() < length) word += "abc"[rng() % (seed % 3 + 1)];
      std::vector<int32_t> ids;
      encoder.encode(word, ids);
      std::vector<std::string> parts;
      for (const auto id : ids) parts.emplace_back(tokens.bytes(id));
      EXPECT_EQ(parts, naive(word, rules.ranks)) << "seed " << seed << " word " << word;
    }
  }
}

TEST(Bpe, MegabyteWord) {
  const TokenizerSpec spec = small_spec("gpt-2");
  const Tokenizer tokenizer(spec);
  std::string word;
  while (word.size() < (1u << 20)) word += "abcdefghij"[word.size() * 7919 % 10];
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(word)), word);
}

TEST(Bpe, RepeatedAndImpossibleRules) {
  const std::vector<std::string_view> words = {"a", "b", "ab", "ba", "a"};
  const TokenTable tokens(words, {});
  const std::vector<std::string_view> lines = {"x y", "a x", "b a", "a b", "b a", "ab ab"};
  const MergeTable merges(lines, tokens);
  EXPECT_EQ(merges.find(1, 0).rank, 2u);
  EXPECT_EQ(merges.find(0, 1).rank, 3u);
  EXPECT_EQ(merges.find(0, 1).token, 2);
  EXPECT_EQ(merges.find(2, 2).rank, MergeTable::kNoRank);
}

TEST(Bpe, Alphabet) {
  char out[16];
  const auto decode = [&](std::string_view s) {
    const size_t n = decode_alphabet(s, out);
    return n == std::string_view::npos ? std::string("?") : std::string(out, n);
  };
  EXPECT_EQ(decode("\u0120the\u010a"), " the\n");
  EXPECT_EQ(decode("\u00e4\u00bd\u0142"), "\xe4\xbd\xa0");
  EXPECT_EQ(decode("\u0143"), "\xad");
  EXPECT_EQ(decode(" "), "?");
  EXPECT_EQ(decode("\u00ad"), "?");
  EXPECT_EQ(decode("\u0144"), "?");
  EXPECT_EQ(decode("\u4f60"), "?");
  EXPECT_EQ(decode("\xc4"), "?");
  EXPECT_EQ(decode("\xff"), "?");
}

}  // namespace
}  // namespace wick::text
