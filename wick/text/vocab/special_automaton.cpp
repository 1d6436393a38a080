#include "wick/text/vocab/special_automaton.h"

#include <fmt/format.h>

#include "wick/base/error.h"

namespace wick::text {

SpecialAutomaton::SpecialAutomaton(const TokenTable& tokens, const std::vector<int32_t>& ids)
    : nodes_(1), root_children_(256, kNone) {
  for (const int32_t id : ids) {
    const std::string_view bytes = tokens.bytes(id);
    uint32_t node = kRoot;
    for (size_t i = bytes.size(); i-- > 0;) {
      node = child_or_new(node, static_cast<unsigned char>(bytes[i]));
    }
    nodes_[node].id = id;
    nodes_[node].length = static_cast<uint32_t>(bytes.size());
  }
  // Breadth first, because a node's `fail` is at a smaller depth than the node.
  std::vector<uint32_t> order{kRoot};
  order.reserve(nodes_.size());
  for (const uint32_t first : root_children_) {
    if (first != kNone) order.push_back(first);
  }
  for (size_t i = 1; i < order.size(); ++i) {
    Node& node = nodes_[order[i]];
    node.longest = node.id != TokenTable::kNone ? order[i] : nodes_[node.fail].longest;
    for (uint32_t at = node.first_child; at != kNone; at = nodes_[at].sibling) {
      nodes_[at].fail = step(node.fail, nodes_[at].byte);
      order.push_back(at);
    }
  }
}

uint32_t SpecialAutomaton::child_or_new(uint32_t node, unsigned char byte) {
  const uint32_t there = child(node, byte);
  if (there != kNone) return there;
  const auto made = static_cast<uint32_t>(nodes_.size());
  if (made == kNone) throw Error("tokenizer", "special tokens are too long", "4 GiB in all");
  Node fresh;
  fresh.byte = byte;
  if (node == kRoot) {
    root_children_[byte] = made;
  } else {
    fresh.sibling = nodes_[node].first_child;
    nodes_[node].first_child = made;
  }
  nodes_.push_back(fresh);
  return made;
}

std::vector<SpecialMatcher::Match> SpecialAutomaton::find_all(std::string_view text,
                                                              size_t from) const {
  std::vector<SpecialMatcher::Match> matches;
  uint32_t node = kRoot;
  for (size_t i = text.size(); i-- > from;) {
    node = step(node, static_cast<unsigned char>(text[i]));
    const Node& longest = nodes_[nodes_[node].longest];
    if (longest.length > 0) matches.push_back({i, longest.length, longest.id});
  }
  return matches;
}

}  // namespace wick::text
