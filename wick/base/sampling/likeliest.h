#pragma once

// The tokens with the largest logits. Tokens rank by their logits; of equal ones, the lowest id
// ranks highest.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace wick {

/// The logit of a token that is never chosen.
inline constexpr float kExcluded = -std::numeric_limits<float>::infinity();

/// a and b have members `logit` and `id`.
template <class A, class B>
bool ranks_before(const A& a, const B& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// The largest of some logits.
struct Largest {
  float value = kExcluded;
  bool bad = false;  ///< whether one is NaN or +inf
};
Largest largest(std::span<const float> logits);

/// Errors: there are no logits, or 2^21 or more.
void check_count(size_t logits);
/// Throws the error that names the first logit that is NaN or +inf, or that all are -inf.
[[noreturn]] void throw_bad_logits(std::span<const float> logits);

/// Sets `tokens` to the `count` tokens that rank highest, in no particular order, except those at
/// kExcluded. Token is an aggregate that begins with logit and id. Errors: a logit is NaN or +inf.
template <class Token>
void select_likeliest(std::span<const float> logits, size_t count, std::vector<Token>& tokens) {
  // Keeps up to twice `count` tokens. When the buffer is full, the lower half is dropped, and the
  // best dropped logit becomes a lower bound for later logits. A later logit equal to the bound has
  // a higher id, so it ranks lower.
  const size_t full = 2 * count + 64;
  constexpr size_t kBlock = 64;
  float bound = kExcluded;
  tokens.clear();
  const auto drop = [&] {
    const auto last = tokens.begin() + static_cast<ptrdiff_t>(count) - 1;
    std::nth_element(tokens.begin(), last, tokens.end(), ranks_before<Token, Token>);
    bound = last->logit;
    tokens.resize(count);
  };
  for (size_t i = 0; i < logits.size(); i += kBlock) {
    const size_t end = std::min(i + kBlock, logits.size());
    const Largest here = largest(logits.subspan(i, end - i));
    if (here.bad) throw_bad_logits(logits);
    if (!(here.value > bound)) continue;
    for (size_t j = i; j < end; ++j) {
      if (logits[j] > bound) tokens.push_back({logits[j], static_cast<int32_t>(j)});
    }
    if (tokens.size() >= full) drop();
  }
  if (tokens.size() > count) drop();
}

}  // namespace wick
