#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "wick/text/model/model.h"
#include "wick/text/model/trie.h"

namespace wick::text {

/// A token of a unigram vocabulary.
struct UnigramToken {
  std::string_view text;  ///< used during construction
  int32_t id;
  double score;  ///< log probability
};

struct UnigramOptions {
  int32_t unknown = -1;      ///< replaces runs of characters without a token; -1: they are dropped
  double unknown_score = 0;  ///< score of a character without a token
  int32_t byte_tokens[256];  ///< all at least 0: they replace such characters instead
  /// Sums of scores are rounded to float, as SentencePiece does; otherwise they are double, as in
  /// tokenizer.json's reference tokenizer.
  bool float_sums = false;
};

/// Unigram language model: a word becomes the tokens with the greatest sum of scores, found by the
/// Viterbi algorithm (Kudo, "Subword regularization", 2018). Of equal sums, the one that was found
/// first counts: tokens that begin earlier, then shorter ones. Time is linear in the word times the
/// length of the longest token, memory is 16 bytes per byte of a word.
class Unigram : public Model {
 public:
  /// Of tokens with equal texts the last counts. Errors: a score is NaN.
  Unigram(std::vector<UnigramToken> tokens, const UnigramOptions& options);
  std::unique_ptr<Run> run() const override;

 private:
  class Viterbi;

  UnigramOptions options_;
  bool has_bytes_;
  Trie trie_;
  std::vector<int32_t> ids_;    // by the trie's numbers
  std::vector<double> scores_;  // by the trie's numbers
};

}  // namespace wick::text
