#include "wick/base/sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/error.h"
#include "wick/base/sampling/likeliest.h"
#include "wick/math/sampling.h"

namespace wick {
namespace {

int32_t most_likely(std::span<const float> logits) {
  constexpr size_t kBlock = 1024;
  float best = kExcluded;
  size_t block = 0;
  for (size_t i = 0; i < logits.size(); i += kBlock) {
    const Largest here = largest(logits.subspan(i, std::min(kBlock, logits.size() - i)));
    if (here.bad) throw_bad_logits(logits);
    if (here.value > best) {
      best = here.value;
      block = i;
    }
  }
  if (best == kExcluded) throw_bad_logits(logits);
  while (logits[block] != best) ++block;
  return static_cast<int32_t>(block);
}

constexpr auto kBefore = ranks_before<SamplerCandidate, SamplerCandidate>;

}  // namespace

int32_t Sampler::sample(std::span<const float> logits, std::span<const int32_t> history) {
  if (!options().is_basic()) {
    SpanLogits source(logits);
    return steps_.sample(source, history);
  }
  check_count(logits.size());
  logits = penalize(logits, history);
  if (options().temperature == 0) return most_likely(logits);
  select(logits);
  truncate();
  return draw();
}

// Applies the penalties to each seen token once: l > 0 ? l / r : l · r; then minus count ·
// frequency, minus presence.
std::span<const float> Sampler::penalize(std::span<const float> logits,
                                         std::span<const int32_t> history) {
  const SamplerOptions& o = options();
  if (!o.penalizes()) {
    return logits;
  }
  if (o.penalty_window >= 0 && history.size() > static_cast<size_t>(o.penalty_window)) {
    history = history.last(static_cast<size_t>(o.penalty_window));
  }
  if (history.empty()) return logits;
  seen_.assign(history.begin(), history.end());
  std::sort(seen_.begin(), seen_.end());
  if (seen_.front() < 0 || static_cast<size_t>(seen_.back()) >= logits.size()) {
    throw Error(ErrorKind::index, "sample", "history holds a token outside the logits",
                fmt::format("token {}, {} logits", seen_.front() < 0 ? seen_.front() : seen_.back(),
                            logits.size()));
  }
  penalized_.assign(logits.begin(), logits.end());
  for (auto it = seen_.begin(); it != seen_.end();) {
    const auto next = std::upper_bound(it, seen_.end(), *it);
    float& logit = penalized_[static_cast<size_t>(*it)];
    logit = math::penalized_logit(logit, static_cast<uint32_t>(next - it), o.repetition_penalty,
                                  o.frequency_penalty, o.presence_penalty);
    it = next;
  }
  return penalized_;
}

// Sets candidates_ to the top_k logits above -inf, in no particular order.
void Sampler::select(std::span<const float> logits) {
  const auto top_k = static_cast<size_t>(options().top_k);
  select_likeliest(logits, top_k == 0 ? logits.size() : top_k, candidates_);
  if (candidates_.empty()) throw_bad_logits(logits);
  sorted_ = 0;
}

// Sorts at least the first `count` candidates, in doubling steps, because usually only a short
// prefix of a long list is needed.
void Sampler::sort_prefix(size_t count) {
  count = std::min(count, candidates_.size());
  while (sorted_ < count) {
    const size_t end = std::min(std::max({count, 2 * sorted_, size_t{64}}), candidates_.size());
    const auto at = [&](size_t i) { return candidates_.begin() + static_cast<ptrdiff_t>(i); };
    if (end < candidates_.size()) {
      std::nth_element(at(sorted_), at(end), candidates_.end(), kBefore);
    }
    std::sort(at(sorted_), at(end), kBefore);
    sorted_ = end;
  }
}

// Reduces candidates_ by top_p and min_p. Both keep a prefix of the sorted order.
void Sampler::truncate() {
  const double least = static_cast<double>(options().min_p) * math::kTopWeight;
  if (options().top_p == 1 && options().min_p == 0) return;
  sort_prefix(1);
  const double top = candidates_[0].logit;
  uint64_t total = 0;
  for (SamplerCandidate& c : candidates_) {
    c.weight = math::token_weight(static_cast<double>(c.logit) - top);
    total += c.weight;
  }
  if (options().top_p == 1) {
    const auto unlikely = [&](const SamplerCandidate& c) {
      return static_cast<double>(c.weight) < least;
    };
    std::erase_if(candidates_, unlikely);  // keeps the order of the rest
    sorted_ = std::min(sorted_, candidates_.size());
    return;
  }
  const double wanted = static_cast<double>(options().top_p) * static_cast<double>(total);
  uint64_t sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && static_cast<double>(sum) < wanted) {
    sort_prefix(kept + 1);
    if (static_cast<double>(candidates_[kept].weight) < least) break;
    sum += candidates_[kept++].weight;
  }
  candidates_.resize(std::max(kept, size_t{1}));
  sorted_ = std::min(sorted_, candidates_.size());
}

int32_t Sampler::draw() {
  sort_prefix(1);
  const double top = candidates_[0].logit, temperature = options().temperature;
  uint64_t total = 0;
  for (SamplerCandidate& c : candidates_) {
    c.weight = math::token_weight((static_cast<double>(c.logit) - top) / temperature);
    total += c.weight;
  }
  const uint64_t drawn = draw_count();
  set_draws(drawn + 1);
  const uint64_t point = math::draw_point(total, options().seed, drawn);
  uint64_t sum = 0;
  for (size_t i = 0;; ++i) {
    sort_prefix(i + 1);
    sum += candidates_[i].weight;
    if (sum > point) return candidates_[i].id;
  }
}

}  // namespace wick
