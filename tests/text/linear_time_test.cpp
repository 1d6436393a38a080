// Texts and vocabularies that make quadratic algorithms slow. Time must grow nearly linearly with
// their size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fixtures.h"
#include "tests/expect_error.h"
#include "tests/near_linear.h"
#include "wick/base/keyed_hash.h"
#include "wick/base/utf8.h"
#include "wick/text/chat.h"
#include "wick/text/split/pre_tokenizers.h"
#include "wick/text/stream_decoder.h"
#include "wick/text/tokenizer.h"
#include "wick/text/vocab/specials.h"

namespace wick::text {
namespace {

using test::expect_near_linear;

std::string repeated(std::string_view piece, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

/// The small vocabulary with additional special tokens.
struct Vocabulary {
  explicit Vocabulary(const char* pre, std::vector<std::string> specials = {}, int type = 4)
      : own(std::move(specials)), spec(small_spec(pre)) {
    for (const std::string& token : own) {
      spec.tokens.push_back(token);
      spec.token_types.push_back(type);
    }
  }
  std::vector<std::string> own;
  TokenizerSpec spec;
};

// --- Special tokens ---

struct Specials {
  explicit Specials(const std::vector<std::string>& texts)
      : views(texts.begin(), texts.end()),
        table(views, std::vector<TokenType>(views.size(), TokenType::control)),
        matcher(table, ids(views.size())) {}
  static std::vector<int32_t> ids(size_t count) {
    std::vector<int32_t> all;
    for (size_t i = 0; i < count; ++i) all.push_back(static_cast<int32_t>(i));
    return all;
  }
  std::vector<std::string_view> views;
  TokenTable table;
  SpecialMatcher matcher;
};

using Found = std::vector<std::pair<size_t, std::string>>;

Found found_by(const Specials& s, std::string_view text, size_t* steps = nullptr) {
  Found found;
  SpecialMatcher::Cursor cursor(s.matcher, text);
  for (size_t pos = 0; pos < text.size();) {
    const auto match = cursor.next(pos);
    if (match.position == std::string_view::npos) break;
    found.emplace_back(match.position, std::string(s.views[static_cast<size_t>(match.id)]));
    pos = match.position + match.length;
  }
  if (steps != nullptr) *steps = cursor.steps();
  return found;
}

/// Finds matches by the definition: at each position, the longest token that begins there.
Found expected(const std::vector<std::string>& tokens, std::string_view text) {
  Found found;
  for (size_t pos = 0; pos < text.size();) {
    std::string longest;
    for (const std::string& token : tokens) {
      if (token.size() > longest.size() && text.substr(pos).starts_with(token)) longest = token;
    }
    if (!longest.empty()) found.emplace_back(pos, longest);
    pos += std::max<size_t>(1, longest.size());
  }
  return found;
}

TEST(Specials, TheLeftmostLongestWhateverTheSteps) {
  std::mt19937 rng(4);
  const auto random_text = [&](size_t most, unsigned letters) {
    std::string text;
    for (size_t n = rng() % (most + 1); n > 0; --n)
      text += static_cast<char>('a' + rng() % letters);
    return text;
  };
  for (int round = 0; round < 400; ++round) {
    const unsigned letters = 1 + rng() % 3;
    std::vector<std::string> tokens;
    for (unsigned n = rng() % 8; n > 0; --n) tokens.push_back(random_text(6, letters));
    // A long run and a token that nearly matches at each position use up the free steps.
    if (round % 2 == 0) tokens.push_back(std::string(300, 'a') + "z");
    const Specials specials(tokens);
    const std::string text = (round % 2 == 0 ? std::string(400, 'a') : "") +
                             random_text(round % 4 == 1 ? 40 : 900, letters);
    ASSERT_EQ(found_by(specials, text), expected(tokens, text)) << round;
  }
}

TEST(Specials, StepsAreLinear) {
  for (const size_t n : {1000u, 30000u, 240000u}) {
    const std::string run(n, 'a');
    const std::vector<std::vector<std::string>> sets = {{run + "b"},
                                                        {"a", run + "b"},
                                                        {"b" + run, run.substr(n / 2) + "c"},
                                                        {run, run + "b", "aa"}};
    for (const auto& tokens : sets) {
      const Specials specials(tokens);
      for (const std::string& text : {run, run + "c", repeated(run.substr(1) + "c", 2 * n)}) {
        size_t steps = 0;
        (void)found_by(specials, text, &steps);
        EXPECT_LE(steps, 7 * text.size() + n + 5000) << n;
      }
    }
  }
}

TEST(LinearTime, SpecialTokensInEncode) {
  expect_near_linear("a token that nearly fits", 20000, [](size_t n) {
    const Vocabulary v("gpt-2", {std::string(n, 'a') + "b", "<s>", "<<s>>"});
    const auto tokenizer = std::make_shared<Tokenizer>(v.spec);
    return [tokenizer, text = std::string(n, 'a')] { (void)tokenizer->encode(text); };
  });
}

// --- Hashes ---

TEST(KeyedHash, DistinctStringsAndAllTheirBytes) {
  const KeyedHash hash;
  std::map<size_t, std::string> seen;
  for (size_t size = 0; size < 40; ++size) {
    for (int fill : {0, 1, 97, 255}) {
      std::string text(size, static_cast<char>(fill));
      const auto [at, is_new] = seen.emplace(hash(text), text);
      EXPECT_TRUE(is_new || at->second == text);
      for (size_t i = 0; i < size; ++i) {
        std::string other = text;
        other[i] = static_cast<char>(other[i] ^ 0x80);
        EXPECT_NE(hash(other), hash(text)) << size << " " << i;
      }
    }
  }
  // Different keys give different hashes.
  EXPECT_NE(KeyedHash({uint64_t{1} << 59 | 12345, 7})("word"),
            KeyedHash({uint64_t{1} << 59 | 54321, 7})("word"));
}

// Sets of texts on which a weak hash collides: they differ only in low bits, only in high bits, or
// only in bits that a multiplication shifts out.
TEST(KeyedHash, BucketsStayShort) {
  std::vector<std::vector<std::string>> sets(5);
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto text = [](uint64_t word) {
      return std::string(reinterpret_cast<const char*>(&word), 8);
    };
    sets[0].push_back(text(i));
    sets[1].push_back(text(i << 40));
    sets[2].push_back(text(i * ((uint64_t{1} << 61) - 1)));
    sets[3].push_back(text(i << 63) + text(i * 0x9e3779b97f4a7c15u) + text(i >> 1));
    sets[4].push_back(std::string(i % 300, 'a') + std::to_string(i));
  }
  const KeyedHash hash;
  for (size_t s = 0; s < sets.size(); ++s) {
    for (const int shift : {0, 29, 45}) {
      std::map<uint64_t, int> buckets;
      std::set<std::string> distinct(sets[s].begin(), sets[s].end());
      for (const std::string& text : distinct) ++buckets[(hash(text) >> shift) % 32768];
      int most = 0;
      for (const auto& [bucket, count] : buckets) most = std::max(most, count);
      EXPECT_LT(most, 60) << s << " " << shift;
    }
  }
}

/// A hash without a key, for which flood() constructs collisions.
uint64_t old_hash(const std::string& text) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  uint64_t hash = text.size() * kMultiplier, word;
  for (size_t at = 0; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
  }
  hash *= kMultiplier;
  return hash ^ (hash >> 32);
}

/// Returns the odd number's inverse modulo 2^64.
constexpr uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}

/// Returns tokens of 16 bytes whose unkeyed hashes agree in their low 24 bits.
std::vector<std::string> flood(size_t count) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  std::vector<std::string> tokens;
  std::mt19937_64 rng(5);
  while (tokens.size() < count) {
    const uint64_t first = rng();
    uint64_t hash = ((16 * kMultiplier) ^ first) * kMultiplier;
    hash ^= hash >> 29;
    // Inverts the hash's steps one by one, starting with a chosen final hash.
    uint64_t state = 0x123456 | rng() << 24;
    state ^= state >> 32;
    state *= inverse(kMultiplier);
    state ^= state >> 29 ^ state >> 58;
    state *= inverse(kMultiplier);
    const uint64_t second = state ^ hash;
    std::string text(16, ' ');
    std::memcpy(text.data(), &first, 8);
    std::memcpy(text.data() + 8, &second, 8);
    tokens.push_back(text);
  }
  return tokens;
}

/// Spells bytes in GPT-2's alphabet.
std::string spelled(const std::string& bytes) {
  std::string out;
  size_t next = 0;
  static const std::vector<std::string> alphabet = [&next] {
    std::vector<std::string> all;
    for (unsigned b = 0; b < 256; ++b) {
      const bool prints =
          (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
      const size_t point = prints ? b : 0x100 + next++;
      std::string text;
      append_utf8(text, static_cast<char32_t>(point));
      all.push_back(text);
    }
    return all;
  }();
  for (const char c : bytes) out += alphabet[static_cast<unsigned char>(c)];
  return out;
}

TEST(LinearTime, TokensMadeForOneBucket) {
  const std::vector<std::string> tokens = flood(160000);
  std::set<uint64_t> ends;
  for (const std::string& token : tokens) ends.insert(old_hash(token) & 0xffffff);
  ASSERT_EQ(ends.size(), 1u) << "the tokens don't collide in the old hash";
  std::vector<std::string> texts;
  for (const std::string& token : tokens) texts.push_back(spelled(token));
  expect_near_linear("colliding tokens", 10000, [&](size_t n) {
    return [&texts, &tokens, n] {
      Vocabulary v("gpt-2");
      for (size_t i = 0; i < n; ++i) {
        v.spec.tokens.push_back(texts[i]);
        v.spec.token_types.push_back(1);
      }
      const Tokenizer tokenizer(v.spec);
      EXPECT_EQ(tokenizer.token_id(tokens[n - 1]), static_cast<int32_t>(v.spec.tokens.size()) - 1);
    };
  });
}

// --- Text ---

TEST(LinearTime, Texts) {
  const std::vector<std::pair<const char*, std::string>> pieces = {
      {"one letter", "a"},
      {"blanks", " "},
      {"line ends", "\n"},
      {"blanks, line ends", " \n"},
      {"many blanks, one letter", std::string(5000, ' ') + "a"},
      {"blanks before a digit", std::string(5000, ' ') + "1"},
      {"apostrophes", "'"},
      {"contractions", "'re"},
      {"digits", "1"},
      {"marks", "!?"},
      {"marks and line ends", "!\r\n"},
      {"U+180E", "\u180e"},
      {"no-break spaces", "\u00a0"},
      {"combining marks", "e\u0301"},
      {"emoji", "\U0001f600"},
      {"Chinese", "\u4f60"},
      {"letters that merge", "the"},
      {"markers", "<|im_end|>"},
      {"half markers", "<|im_"},
      {"mixed", "a1 !\n"}};
  for (const char* pre : kPreNames) {
    const Tokenizer tokenizer(small_spec(pre));
    for (const auto& [what, piece] : pieces) {
      expect_near_linear(std::string(pre) + ", " + what, 5000, [&, piece = piece](size_t n) {
        return [&, text = repeated(piece, n)] {
          const auto ids = tokenizer.encode(text);
          EXPECT_EQ(tokenizer.decode(ids).size(), text.size());
        };
      });
    }
  }
}

TEST(LinearTime, PatternsWithNumbers) {
  for (const std::string end : {"", "}"}) {
    expect_near_linear("unfinished numbers, end '" + end + "'", 20000, [&](size_t n) {
      SplitStage stage;
      stage.pattern = repeated("\\x{", n) + end;
      stage.behavior = SplitBehavior::isolated;
      return [stage] { EXPECT_EQ(find_pre_tokenizer({&stage, 1}, false), nullptr); };
    });
  }
}

TEST(LinearTime, MergesOfRuns) {
  // a a -> aa -> aaaa …: each merge of a long word enables others.
  expect_near_linear("doubling merges", 20000, [](size_t n) {
    auto v = std::make_shared<Vocabulary>("gpt-2");
    auto kept = std::make_shared<std::vector<std::string>>();
    for (size_t half = 1; half <= 1024; half *= 2) {
      kept->push_back(std::string(2 * half, 'q'));
      kept->push_back(std::string(half, 'q') + " " + std::string(half, 'q'));
    }
    for (size_t i = 0; i < kept->size(); i += 2) {
      v->spec.tokens.push_back((*kept)[i]);
      v->spec.token_types.push_back(1);
      v->spec.merges.push_back((*kept)[i + 1]);
    }
    const auto tokenizer = std::make_shared<Tokenizer>(v->spec);
    return [v, kept, tokenizer, text = std::string(n, 'q')] { (void)tokenizer->encode(text); };
  });
}

TEST(LinearTime, StreamDecoder) {
  const Tokenizer tokenizer(small_spec("gpt-2"));
  expect_near_linear("bytes that aren't UTF-8", 20000, [&](size_t n) {
    return [&tokenizer, n] {
      StreamDecoder decoder(tokenizer);
      size_t bytes = 0;
      for (size_t i = 0; i < n; ++i) {
        bytes += decoder.push(static_cast<int32_t>(i % 250)).size();
      }
      EXPECT_GT(bytes + decoder.finish().size(), 0u);
    };
  });
}

TEST(LinearTime, ChatTemplates) {
  // Templates of n pieces are read and rendered.
  const std::vector<std::pair<std::string, std::string>> templates = {
      {"{{ 'a' }}", "9"},
      {"{# x #}", "9"},
      {"{% raw %}{{{% endraw %}", "9"},
      {"{ % #", "9"},
      {"{% if 1 %}x{% endif %}\n", "9"}};
  for (const auto& [piece, end] : templates) {
    expect_near_linear("template of " + piece, 20000, [piece = piece, end = end](size_t n) {
      return [text = repeated(piece, n) + end] {
        EXPECT_TRUE(jinja::Template(text).render({}, 0).bytes.ends_with('9'));
      };
    });
  }
}

TEST(LinearTime, Conversations) {
  const Tokenizer tokenizer(small_spec("smollm"));
  expect_near_linear("many turns", 500, [&](size_t n) {
    return [&tokenizer, messages = std::vector<ChatMessage>(n, {"user", "a <|im_end|> b"})] {
      (void)ChatTemplate("", tokenizer).encode(messages);
    };
  });
}

}  // namespace
}  // namespace wick::text
