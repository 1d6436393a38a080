#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "wick/text/vocab/specials.h"

namespace wick::text {

/// An Aho-Corasick automaton ("Efficient string matching", 1975) over reversed tokens. One pass
/// over a text from its end finds the longest token that begins at each position. Building takes
/// time and memory linear in the tokens' bytes; searching takes time linear in the text's bytes.
class SpecialAutomaton {
 public:
  /// `ids` must name non-empty tokens with distinct bytes.
  SpecialAutomaton(const TokenTable& tokens, const std::vector<int32_t>& ids);

  /// Returns the longest token at each position of text[from, end) that has one, the last position
  /// first.
  std::vector<SpecialMatcher::Match> find_all(std::string_view text, size_t from) const;

 private:
  static constexpr uint32_t kRoot = 0, kNone = 0xffffffffu;
  struct Node {
    uint32_t first_child = kNone, sibling = kNone;
    uint32_t fail = kRoot;  // the longest proper suffix of this path that is also a path
    // The first node that ends a token among this node and its `fail` chain; kRoot: none.
    uint32_t longest = kRoot;
    uint32_t length = 0;  // length of the token that ends here
    int32_t id = TokenTable::kNone;
    unsigned char byte = 0;
  };
  uint32_t child(uint32_t node, unsigned char byte) const {
    if (node == kRoot) return root_children_[byte];
    uint32_t at = nodes_[node].first_child;
    while (at != kNone && nodes_[at].byte != byte) at = nodes_[at].sibling;
    return at;
  }
  uint32_t child_or_new(uint32_t node, unsigned char byte);
  /// The node of the longest suffix of the path plus `byte` that is a path.
  uint32_t step(uint32_t node, unsigned char byte) const {
    for (;; node = nodes_[node].fail) {
      const uint32_t next = child(node, byte);
      if (next != kNone) return next;
      if (node == kRoot) return kRoot;
    }
  }

  std::vector<Node> nodes_;
  std::vector<uint32_t> root_children_;  // [256]
};

}  // namespace wick::text
