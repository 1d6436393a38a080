#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/tokenizer.h"

namespace wick::text {

inline constexpr const char* kPreNames[] = {"smollm", "gpt-2", "llama-bpe", "qwen2"};

/// The output of tests/text/make_fixtures.py: texts, a small vocabulary, and the expected ids and
/// word lengths, indexed by [position in kPreNames][text].
struct Fixture {
  std::vector<std::string> texts, tokens, merges;
  std::vector<int32_t> types;
  std::vector<std::vector<std::vector<int32_t>>> ids;
  std::vector<std::vector<std::vector<size_t>>> words;
  std::vector<std::vector<int32_t>> smollm2_ids;  // [text]
};
const Fixture& fixture();

/// The output of tests/text/make_pieces.py: a small SentencePiece vocabulary, and the ids of texts
/// without and with a space in front, and without one and without byte tokens.
struct PieceFixture {
  std::vector<std::string> texts, tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  std::vector<std::vector<int32_t>> ids, prefixed, unknown;  // [text]
};
const PieceFixture& piece_fixture();

/// Returns the fixture's small vocabulary with a split pattern.
TokenizerSpec small_spec(std::string_view pre);

/// SmolLM2's vocabulary from a GGUF file, and the bytes that its views refer to.
struct ModelVocabulary {
  std::string bytes;
  TokenizerSpec spec;
};
/// Reads the file that WICK_TEST_MODEL names, or else the default model of `make run`. Returns
/// nothing if there is none.
std::optional<ModelVocabulary> load_smollm2();

/// Returns `count` code points that UTF-8 can encode, from a linear congruential generator.
std::string random_utf8(uint64_t seed, size_t count);

}  // namespace wick::text
