#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/model/model.h"
#include "wick/text/vocab/token_table.h"

namespace wick::text {

/// The merge order of a SentencePiece vocabulary of the BPE kind, given by the scores of its
/// tokens. Source: Kudo and Richardson, "SentencePiece", 2018.
class PieceRanks {
 public:
  static constexpr uint32_t kNoRank = 0xffffffffu;

  /// `scores` has one score per token; higher scores merge first. Errors: the number of scores
  /// differs; a score is NaN.
  PieceRanks(std::span<const float> scores, const TokenTable& tokens);

  /// The rank of a token that merges can make; tokens with equal scores share a rank.
  uint32_t of(int32_t id) const { return ranks_[static_cast<size_t>(id)]; }
  /// Whether no token has a space after another character, so that merges stay within words.
  bool by_word() const { return by_word_; }
  /// Bytes of the longest token that merges can make.
  size_t longest() const { return longest_; }

 private:
  std::vector<uint32_t> ranks_;
  bool by_word_ = true;
  size_t longest_ = 0;
};

/// Splits text into pieces. It holds scratch space, so each thread needs its own.
class PieceEncoder {
 public:
  /// `unknown` replaces characters that have neither a token nor byte tokens; kNone: such
  /// characters are dropped.
  PieceEncoder(const TokenTable& tokens, const PieceRanks& ranks, int32_t unknown)
      : tokens_(tokens), ranks_(ranks), unknown_(unknown) {}

  /// Appends the tokens of well-formed UTF-8; adjacent unknown characters are one token. Starts
  /// from characters and repeatedly merges the adjacent pair whose token has the highest score, the
  /// leftmost of several, until no pair is a token.
  void encode(std::string_view text, std::vector<int32_t>& out);

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& out);
  void append_piece(std::string_view piece, std::vector<int32_t>& out);
  bool refresh(std::string_view word, uint32_t i);

  struct Node {
    uint32_t begin, end;  // range of the word's bytes
    uint32_t previous, next;
    uint32_t rank;  // rank of the token that it makes with the node to the right
  };
  const TokenTable& tokens_;
  const PieceRanks& ranks_;
  int32_t unknown_;
  bool after_unknown_ = false;  // the last token of the text so far is the unknown one
  std::string spaced_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;
};

/// A SentencePiece vocabulary of the BPE kind.
class Pieces : public Model {
 public:
  /// `unknown`: see PieceEncoder. Errors: those of PieceRanks.
  Pieces(std::span<const float> scores, const TokenTable& tokens, int32_t unknown)
      : tokens_(tokens), ranks_(scores, tokens), unknown_(unknown) {}
  std::unique_ptr<Run> run() const override;
  std::bitset<256> kept_bytes() const override {
    return of_whole_characters(bytes_with_tokens(tokens_));
  }

 private:
  const TokenTable& tokens_;
  PieceRanks ranks_;
  int32_t unknown_;
};

}  // namespace wick::text
