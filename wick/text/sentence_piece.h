#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/token_table.h"

namespace wick::text {

/// What orders the merges of a SentencePiece vocabulary of the BPE kind: the scores of its tokens.
/// Source: Kudo and Richardson, "SentencePiece", 2018.
class PieceRanks {
 public:
  static constexpr uint32_t kNoRank = 0xffffffffu;

  /// scores: one a token, higher ones first. Errors: another number of scores, a score that is NaN.
  PieceRanks(std::span<const float> scores, const TokenTable& tokens);

  /// Of a token that merges make; tokens of one score share a rank.
  uint32_t of(int32_t id) const { return ranks_[static_cast<size_t>(id)]; }
  /// Whether no token has a space behind another character: merges then stay within words.
  bool by_word() const { return by_word_; }
  /// Bytes of the longest token that merges make.
  size_t longest() const { return longest_; }

 private:
  std::vector<uint32_t> ranks_;
  bool by_word_ = true;
  size_t longest_ = 0;
};

/// Cuts text into pieces; holds the scratch space, so one per thread.
class PieceEncoder {
 public:
  /// unknown: stands for a character that has neither a token nor tokens of its bytes; kNone: such
  /// a character is left out.
  PieceEncoder(const TokenTable& tokens, const PieceRanks& ranks, int32_t unknown)
      : tokens_(tokens), ranks_(ranks), unknown_(unknown) {}

  /// Appends the tokens of well-formed UTF-8. Starts from its characters and merges the adjacent
  /// pair whose token has the highest score, the leftmost of several, until no pair is a token.
  void encode(std::string_view text, std::vector<int32_t>& out);

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& out);
  bool refresh(std::string_view word, uint32_t i);

  struct Node {
    uint32_t begin, end;  // of the word's bytes
    uint32_t previous, next;
    uint32_t rank;  // of the token that it makes with the node to the right
  };
  const TokenTable& tokens_;
  const PieceRanks& ranks_;
  int32_t unknown_;
  std::string spaced_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;
};

}  // namespace wick::text
