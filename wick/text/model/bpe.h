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

  /// A merge whose operands are spelled as in the vocabulary.
  struct Rule {
    std::string_view left, right;
  };
  /// As above, for vocabularies that aren't spelled in the byte alphabet. The result of a rule is
  /// left and right without its first `skipped` bytes.
  MergeTable(std::span<const Rule> rules, const TokenTable& tokens, size_t skipped = 0);

  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = make_key(left, right);
    for (uint64_t i = hash(key) & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.key == key) return {slot.rank, slot.token};
      if (slot.key == kEmpty) return {kNoRank, 0};
    }
  }

 private:
  void reserve(size_t merges);
  void insert(uint64_t key, size_t rank, int32_t token);

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
  /// As encode(), but starts from `symbols`.
  void merge(std::span<const int32_t> symbols, std::vector<int32_t>& out);

 private:
  // Words of fewer symbols are merged in an array.
  static constexpr size_t kLong = 48;
  void merge_short(int32_t* token, size_t count, std::vector<int32_t>& out);
  void merge_nodes(std::vector<int32_t>& out);
  void add_node(int32_t token);

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

/// Byte-level BPE.
class ByteBpe : public Model {
 public:
  /// `whole_word_first`: a word that is a token isn't built by merges. `unknown` replaces bytes
  /// without a token (-1: they are dropped), with `fuse_unknown` also adjacent ones.
  ByteBpe(std::span<const std::string_view> merges, const TokenTable& tokens, bool whole_word_first,
          int32_t unknown = -1, bool fuse_unknown = false);
  std::unique_ptr<Run> run() const override;
  std::bitset<256> kept_bytes() const override { return bytes_with_tokens(tokens_); }

 private:
  class Words;
  const TokenTable& tokens_;
  MergeTable merges_;
  bool whole_word_first_;
  int32_t unknown_;  // -1 also if every byte has a token
  bool fuse_unknown_;
};

/// What CharBpe does besides merging.
struct CharBpeOptions {
  bool whole_word_first = false;   ///< a word that is a token isn't built by merges
  bool whole_lines_first = false;  ///< the same for words of line feeds alone
  bool byte_fallback = false;     ///< characters without a token become the tokens <0x00> to <0xFF>
  int32_t unknown = -1;           ///< replaces characters without a token; -1: they are dropped
  bool fuse_unknown = false;      ///< adjacent characters without a token are one unknown token
  bool in_alphabet = false;       ///< tokens are spelled in GPT-2's byte alphabet
  std::string inner_prefix = {};  ///< before characters that don't begin a word, as in "##a"
  std::string end_suffix = {};    ///< after the last character of a word, as in "a</w>"
};

/// BPE that starts from characters. `tokens` has Spelling::raw.
class CharBpe : public Model {
 public:
  CharBpe(std::span<const MergeTable::Rule> merges, const TokenTable& tokens,
          CharBpeOptions options);
  std::unique_ptr<Run> run() const override;
  std::bitset<256> kept_bytes() const override;

 private:
  class Words;
  const TokenTable& tokens_;
  MergeTable merges_;
  CharBpeOptions options_;
  int32_t byte_tokens_[256];
  bool by_mark_ = true;  // no token has U+2581 behind another character
};

}  // namespace wick::text
