#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "wick/text/model/model.h"
#include "wick/text/model/trie.h"

namespace wick::text {

/// A token of a WordPiece or word-level vocabulary.
struct WordToken {
  std::string_view text;  ///< used during construction; without the mark of its position
  int32_t id;
};

/// WordPiece: the longest token that begins a word, then again and again the longest token that
/// continues it (Wu et al., "Google's neural machine translation system", 2016). A word that tokens
/// don't cover becomes the unknown token.
class WordPiece : public Model {
 public:
  /// `first` begin words and `inner` continue them; of tokens with equal texts the last counts.
  /// `unknown` may be -1: such words are dropped. Words of more than `longest` characters are
  /// unknown. With `whole`, only tokens that are the whole word count (word-level vocabularies).
  WordPiece(std::vector<WordToken> first, std::vector<WordToken> inner, int32_t unknown,
            size_t longest, bool whole = false);
  std::unique_ptr<Run> run() const override;

 private:
  class Match;

  Trie first_, inner_;
  int32_t unknown_;
  size_t longest_;
  bool whole_;
};

}  // namespace wick::text
