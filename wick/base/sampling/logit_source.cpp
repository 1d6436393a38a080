#include "wick/base/sampling/logit_source.h"

#include <algorithm>

#include "wick/base/sampling/likeliest.h"
#include "wick/math/sampling.h"

namespace wick {

LogitSource::~LogitSource() = default;

bool SpanLogits::good() { return !largest(logits_).bad; }

std::vector<float> SpanLogits::at(std::span<const int32_t> ids) {
  std::vector<float> result;
  for (const int32_t id : ids) result.push_back(logits_[static_cast<size_t>(id)]);
  return result;
}

std::vector<LogitSource::Token> SpanLogits::top(size_t count) {
  std::vector<Token> tokens;
  select_likeliest(logits_, std::min(count, logits_.size()), tokens);
  std::sort(tokens.begin(), tokens.end(), ranks_before<Token, Token>);
  return tokens;
}

LogitSource::Sums SpanLogits::below(Token last, double top, double heat) {
  Sums sums;
  for (size_t i = 0; i < logits_.size(); ++i) {
    const Token token{logits_[i], static_cast<int32_t>(i)};
    if (!ranks_before(last, token) || token.logit == kExcluded) continue;
    const double less = (static_cast<double>(token.logit) - top) / heat;
    const uint64_t weight = math::token_weight(less);
    ++sums.count;
    sums.weights += weight;
    sums.distances += math::weighted_distance(weight, less);
  }
  return sums;
}

}  // namespace wick
