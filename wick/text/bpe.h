#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wick/text/token_table.h"

namespace wick::text {

/// The merge rules of a byte-level BPE vocabulary: (left token, right token) → (rank, token).
class MergeTable {
 public:
  struct Merge {
    uint32_t rank;  // kNoRank: the pair doesn't merge
    int32_t token;
  };
  static constexpr uint32_t kNoRank = 0xffffffffu;

  /// `merges` are lines "left right" in GPT-2's byte alphabet, in order of rank. Rules whose
  /// operands or result aren't in the vocabulary can't apply and are ignored; of repeated rules the
  /// first counts. Errors: a line isn't two words of the alphabet.
  MergeTable(std::span<const std::string_view> merges, const TokenTable& tokens);

  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = make_key(left, right);
    for (uint64_t i = hash(key) & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.key == key) return {slot.rank, slot.token};
      if (slot.key == kEmpty) return {kNoRank, 0};
    }
  }

 private:
  struct Slot {
    uint64_t key;
    uint32_t rank;
    int32_t token;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  static uint64_t make_key(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
           static_cast<uint32_t>(right);
  }
  /// Multilinear hashing of both tokens with random multipliers (Lemire and Kaser, 2014). The
  /// 32-bit hashes of two pairs collide with probability 2^-32.
  uint64_t hash(uint64_t key) const {
    const HashKey& k = multipliers_;
    return ((key >> 32) * k.a + static_cast<uint32_t>(key) * k.b) >> 32;
  }

  HashKey multipliers_;
  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
};

/// Applies merges to words. It holds scratch space, so each thread needs its own.
class WordEncoder {
 public:
  WordEncoder(const TokenTable& tokens, const MergeTable& merges)
      : tokens_(tokens), merges_(merges) {}

  /// Appends the tokens of `word`. Starts from single bytes and repeatedly merges the adjacent pair
  /// with the lowest rank, the leftmost of several, until no pair merges. Bytes without a token are
  /// dropped.
  void encode(std::string_view word, std::vector<int32_t>& out);

 private:
  void encode_short(std::string_view word, std::vector<int32_t>& out);
  void encode_long(std::string_view word, std::vector<int32_t>& out);

  struct Node {
    int32_t token;
    uint32_t previous, next;
    MergeTable::Merge merge;  // merge with the node to the right
  };
  const TokenTable& tokens_;
  const MergeTable& merges_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;
};

}  // namespace wick::text
