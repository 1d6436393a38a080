#include "wick/base/logit_source.h"

#include <algorithm>

#include "wick/math/sampling.h"

namespace wick {
LogitSource::~LogitSource() = default;

bool SpanLogits::good() {
  return std::all_of(logits_.begin(), logits_.end(), [](float x) { return x < -kExcluded; });
}

std::vector<float> SpanLogits::at(std::span<const int32_t> ids) {
  std::vector<float> result;
  for (const int32_t id : ids) result.push_back(logits_[static_cast<size_t>(id)]);
  return result;
}

std::vector<LogitSource::Token> SpanLogits::top(size_t count) {
  // Keeps up to twice `count` tokens. When the buffer is full, the lower half is dropped, and the
  // lowest that stays bounds later tokens: one with an equal logit has a higher id.
  count = std::min(count, logits_.size());
  std::vector<Token> tokens;
  float bound = kExcluded;
  bool bounded = false;
  const auto before = [](const Token& a, const Token& b) { return a.ranks_before(b); };
  const auto drop = [&] {
    const auto end = tokens.begin() + static_cast<ptrdiff_t>(count);
    std::nth_element(tokens.begin(), end - 1, tokens.end(), before);
    bound = (end - 1)->logit, bounded = true;
    tokens.resize(count);
  };
  if (count == 0) return tokens;
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (bounded && !(logits_[i] > bound)) continue;
    tokens.push_back({logits_[i], static_cast<int32_t>(i)});
    if (tokens.size() == 2 * count + 64) drop();
  }
  if (tokens.size() > count) drop();
  std::sort(tokens.begin(), tokens.end(), before);
  return tokens;
}

LogitSource::Sums SpanLogits::below(Token last, double top, double heat) {
  Sums sums;
  for (size_t i = 0; i < logits_.size(); ++i) {
    const Token token{logits_[i], static_cast<int32_t>(i)};
    if (!last.ranks_before(token) || token.logit == kExcluded) continue;
    const double less = (static_cast<double>(token.logit) - top) / heat;
    const uint64_t weight = math::token_weight(less);
    ++sums.count;
    sums.weights += weight;
    sums.distances += math::weighted_distance(weight, less);
  }
  return sums;
}

}  // namespace wick
