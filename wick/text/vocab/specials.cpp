#include "wick/text/vocab/specials.h"

#include <algorithm>

#include "wick/text/vocab/special_automaton.h"

namespace wick::text {

SpecialMatcher::SpecialMatcher(const TokenTable& tokens, std::vector<int32_t> ids)
    : tokens_(tokens), sorted_(std::move(ids)) {
  std::erase_if(sorted_, [&](int32_t id) { return tokens.bytes(id).empty(); });
  std::sort(sorted_.begin(), sorted_.end(), [&](int32_t a, int32_t b) {
    const int order = tokens.bytes(a).compare(tokens.bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  const auto same = [&](int32_t a, int32_t b) { return tokens.bytes(a) == tokens.bytes(b); };
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end(), same), sorted_.end());
  uint32_t i = 0;
  for (size_t b = 0; b < 256; ++b) {
    first_[b] = i;
    while (i < sorted_.size() && static_cast<unsigned char>(tokens.bytes(sorted_[i])[0]) == b) ++i;
  }
  first_[256] = i;
}

SpecialMatcher::~SpecialMatcher() = default;

SpecialMatcher::Match SpecialMatcher::longest_at(std::string_view text, size_t start,
                                                 size_t& steps) const {
  Match match{start, 0, 0};
  const auto lead = static_cast<unsigned char>(text[start]);
  auto low = sorted_.begin() + first_[lead];
  auto high = sorted_.begin() + first_[lead + 1u];
  if (low == high) return match;
  // Narrows the range of tokens that agree with the text, byte by byte. A token sorts before all
  // tokens that it is a prefix of, so a complete token is always at the front.
  for (size_t depth = 1;; ++depth) {
    ++steps;
    if (tokens_.bytes(*low).size() == depth) {
      match = {start, depth, *low};
      ++low;
    }
    if (low == high || start + depth == text.size()) break;
    const auto next = static_cast<unsigned char>(text[start + depth]);
    const auto byte = [&](int32_t id) {
      return static_cast<unsigned char>(tokens_.bytes(id)[depth]);
    };
    low = std::partition_point(low, high, [&](int32_t id) { return byte(id) < next; });
    high = std::partition_point(low, high, [&](int32_t id) { return byte(id) == next; });
    if (low == high) break;
  }
  return match;
}

const SpecialAutomaton& SpecialMatcher::automaton() const {
  std::call_once(automaton_made_,
                 [&] { automaton_ = std::make_unique<const SpecialAutomaton>(tokens_, sorted_); });
  return *automaton_;
}

SpecialMatcher::Match SpecialMatcher::Cursor::next(size_t from) {
  constexpr Match kNoMatch{std::string_view::npos, 0, 0};
  if (!by_automaton_) {
    if (matcher_.sorted_.empty()) return kNoMatch;
    size_t start = from;
    for (; start < text_.size() && steps_ < budget_; ++start) {
      const Match match = matcher_.longest_at(text_, start, steps_);
      if (match.length > 0) return match;
    }
    if (start >= text_.size()) return kNoMatch;
    by_automaton_ = true;
    steps_ += text_.size() - start;
    matches_ = matcher_.automaton().find_all(text_, start);
    from = start;
  }
  while (!matches_.empty() && matches_.back().position < from) matches_.pop_back();
  return matches_.empty() ? kNoMatch : matches_.back();
}

std::optional<int32_t> SpecialMatcher::exact(std::string_view text) const {
  const auto found = std::lower_bound(
      sorted_.begin(), sorted_.end(), text,
      [&](int32_t id, std::string_view wanted) { return tokens_.bytes(id) < wanted; });
  if (found == sorted_.end() || tokens_.bytes(*found) != text) return std::nullopt;
  return *found;
}

}  // namespace wick::text
