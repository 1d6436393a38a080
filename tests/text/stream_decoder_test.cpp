#include "wick/text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "fixtures.h"
#include "wick/base/error.h"
#include "wick/base/utf8.h"

namespace wick::text {
namespace {

// Token ids are bytes.
Tokenizer byte_tokenizer() {
  std::vector<std::string> names;
  TokenizerSpec spec;
  for (int b = 0; b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(b));
    names.emplace_back(name);
    spec.token_types.push_back(6);
  }
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  spec.tokens.assign(names.begin(), names.end());
  return Tokenizer(spec);
}

std::string run(StreamDecoder& decoder, std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const std::string piece = decoder.push(static_cast<unsigned char>(c));
    EXPECT_EQ(find_invalid_utf8(piece), std::string_view::npos);
    out += piece;
  }
  const std::string rest = decoder.finish();
  EXPECT_EQ(find_invalid_utf8(rest), std::string_view::npos);
  return out + rest;
}

TEST(StreamDecoder, WholeCharactersOnly) {
  StreamDecoder decoder(byte_tokenizer());
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.push(0xf0), "");
  EXPECT_EQ(decoder.push(0x9f), "");
  EXPECT_EQ(decoder.push(0x98), "");
  EXPECT_EQ(decoder.push(0x80), "\xf0\x9f\x98\x80");
  EXPECT_EQ(decoder.finish(), "");
}

// The expected results are those of Python's bytes.decode("utf-8", "replace"), which follows
// Unicode's rule.
TEST(StreamDecoder, IllFormed) {
  StreamDecoder decoder(byte_tokenizer());
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(run(decoder,
                "a\xff"
                "b"),
            "a" + r + "b");
  EXPECT_EQ(run(decoder, "\xe4\xbd"), r);
  EXPECT_EQ(run(decoder,
                "\xe4\xbd"
                "a"),
            r + "a");
  EXPECT_EQ(run(decoder, "\xf0\x9f\x98\xf0\x9f\x98\x80"), r + "\xf0\x9f\x98\x80");
  EXPECT_EQ(run(decoder, "\xed\xa0\x80"), r + r + r);
  EXPECT_EQ(run(decoder, "\xc0\x80"), r + r);
  EXPECT_EQ(run(decoder, "\xf4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(run(decoder, "\x80\xe2\x82"), r + r);
  EXPECT_EQ(run(decoder, "\xf5"), r);
  EXPECT_EQ(run(decoder, "\xe0\x80"), r + r);
}

// A second implementation: splits the text at every byte that can't continue the preceding
// sequence.
std::string replace_naively(const std::string& bytes) {
  std::string out;
  size_t i = 0;
  while (i < bytes.size()) {
    size_t best = 0;
    bool whole = false;
    for (size_t n = 1; n <= 4 && i + n <= bytes.size(); ++n) {
      const std::string head = bytes.substr(i, n);
      // A prefix is kept if some continuation makes it well-formed.
      for (const int fill : {0x80, 0x90, 0xa0, 0xbf}) {
        for (const int rest : {0x80, 0xbf}) {
          for (size_t more = 0; more + n <= 4; ++more) {
            std::string candidate = head;
            for (size_t m = 0; m < more; ++m) {
              candidate += static_cast<char>(m == 0 && n == 1 ? fill : rest);
            }
            const auto lead = static_cast<unsigned char>(head[0]);
            const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
            if (candidate.size() != length) continue;
            if (find_invalid_utf8(candidate) == std::string_view::npos) {
              best = n;
              whole = more == 0;
            }
          }
        }
      }
      if (best != n || whole) break;
    }
    out += whole ? bytes.substr(i, best) : "\xef\xbf\xbd";
    i += best == 0 ? 1 : best;
  }
  return out;
}

TEST(StreamDecoder, RandomBytes) {
  StreamDecoder decoder(byte_tokenizer());
  std::mt19937 rng(4);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = random_utf8(rng(), rng() % 8);
    for (unsigned n = rng() % 4; n > 0 && !bytes.empty(); --n) {
      bytes[rng() % bytes.size()] = static_cast<char>(rng() % 3 == 0 ? rng() : 0x80 | rng() % 128);
    }
    if (rng() % 4 == 0) bytes = bytes.substr(0, bytes.size() - bytes.size() / 4);
    EXPECT_EQ(run(decoder, bytes), replace_naively(bytes)) << ::testing::PrintToString(bytes);
  }
}

TEST(StreamDecoder, StreamsTheTextOfTokens) {
  for (const char* pre : kPreNames) {
    const Tokenizer tokenizer(small_spec(pre));
    StreamDecoder decoder(tokenizer, false);
    for (const std::string& text : fixture().texts) {
      std::string out;
      for (const auto id : tokenizer.encode(text)) out += decoder.push(id);
      out += decoder.finish();
      EXPECT_EQ(out, text);
    }
  }
}

TEST(StreamDecoder, SpecialTokensAndErrors) {
  const Tokenizer tokenizer(small_spec("gpt-2"));
  StreamDecoder skips(tokenizer), shows(tokenizer, false);
  EXPECT_EQ(skips.push(2), "");
  EXPECT_EQ(shows.push(2), "<|im_end|>");
  EXPECT_EQ(skips.push(3), "<think>");
  EXPECT_THROW(skips.push(-1), Error);
  EXPECT_THROW(skips.push(tokenizer.vocab_size()), Error);
}

}  // namespace
}  // namespace wick::text
