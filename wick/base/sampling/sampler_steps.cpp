// The steps of a StepSampler. They change the list of candidates, which need not hold all tokens
// (step_sampler.cpp). A step whose result depends on others sets undecided_, and the steps begin
// again with more candidates.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "wick/base/error.h"
#include "wick/base/sampling/step_sampler.h"
#include "wick/math/sampling.h"
#include "wick/math/scalar.h"

namespace wick {
namespace {

constexpr double kLn2 = 0.6931471805599453;
constexpr size_t kLikeliest = 100;  // tokens of which mirostat estimates a Zipf law

/// The length of the longest match between the tokens up to i and those up to the end, for each i:
/// the Z-function of the reversed sequence.
std::vector<size_t> matches_with_end(std::span<const int32_t> tokens) {
  const size_t n = tokens.size();
  const auto reversed = [&](size_t i) { return tokens[n - 1 - i]; };
  std::vector<size_t> z(n, 0);
  for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < n && reversed(z[i]) == reversed(i + z[i])) ++z[i];
    if (i + z[i] > right) left = i, right = i + z[i];
  }
  std::reverse(z.begin(), z.end());
  return z;
}

/// Uniform in [0, 1), from the second Philox stream of the seed, so that steps don't change draws.
double random_of_step(uint64_t seed, uint64_t draw) {
  const math::Philox4 random = math::philox(seed, 1, draw);
  return static_cast<double>(random.v[0]) * 0x1p-32;
}

/// The tokens that DRY penalises, with the lengths of the sequences that they would continue.
std::unordered_map<int32_t, size_t> repetitions(const SamplerOptions& o,
                                                std::span<const int32_t> history) {
  if (o.dry_window >= 0 && history.size() > static_cast<size_t>(o.dry_window)) {
    history = history.last(static_cast<size_t>(o.dry_window));
  }
  const std::unordered_set<int32_t> breakers(o.dry_breakers.begin(), o.dry_breakers.end());
  size_t unbroken = 0;  // tokens after the last breaker
  while (unbroken < history.size() && !breakers.contains(history[history.size() - 1 - unbroken])) {
    ++unbroken;
  }
  std::unordered_map<int32_t, size_t> longest;
  const std::vector<size_t> matches = matches_with_end(history);
  for (size_t i = 0; i + 1 < history.size(); ++i) {
    const size_t length = std::min(matches[i], unbroken);
    const int32_t next = history[i + 1];
    if (length == 0 || static_cast<int64_t>(length) < o.dry_allowed_length) continue;
    if (breakers.contains(next)) continue;
    size_t& best = longest[next];
    best = std::max(best, length);
  }
  return longest;
}

/// The tokens of the history that penalties see.
std::span<const int32_t> seen_tokens(const SamplerOptions& o, std::span<const int32_t> history) {
  const bool cut = o.penalty_window >= 0 && history.size() > static_cast<size_t>(o.penalty_window);
  return cut ? history.last(static_cast<size_t>(o.penalty_window)) : history;
}

}  // namespace

/// Lists the tokens whose logits the options change, each once, and reads their logits.
void StepSampler::find_changed(LogitSource& logits, std::span<const int32_t> history) {
  const SamplerOptions& o = options_;
  std::vector<int32_t> ids;
  for (const auto& [token, add] : o.logit_bias) ids.push_back(token);
  if (applies(SamplerStep::penalties)) {
    const std::span<const int32_t> seen = seen_tokens(o, history);
    ids.insert(ids.end(), seen.begin(), seen.end());
  }
  if (applies(SamplerStep::dry)) {
    repeated_ = repetitions(o, history);
    for (const auto& [token, length] : repeated_) ids.push_back(token);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase_if(ids,
                [&](int32_t id) { return id < 0 || static_cast<size_t>(id) >= logits.size(); });
  const std::vector<float> values = logits.at(ids);
  changed_.clear();
  for (size_t i = 0; i < ids.size(); ++i) changed_.push_back({ids[i], values[i]});
}

void StepSampler::apply(SamplerStep step, std::span<const int32_t> history) {
  const SamplerOptions& o = options_;
  switch (step) {
    case SamplerStep::penalties:
      return penalize(history);
    case SamplerStep::dry:
      return penalize_repetitions();
    case SamplerStep::top_n_sigma:
      return keep_within_sigmas();
    case SamplerStep::top_k:
      if (o.top_k == 0) return;
      sort();
      return keep(static_cast<size_t>(o.top_k));
    case SamplerStep::typical_p:
      return keep_typical();
    case SamplerStep::top_p:
      return keep_top_p();
    case SamplerStep::min_p:
      return keep_min_p();
    case SamplerStep::xtc:
      return exclude_top_choices();
    case SamplerStep::temperature:
      return heat();
  }
}

void StepSampler::penalize(std::span<const int32_t> history) {
  const SamplerOptions& o = options_;
  if (!o.penalizes()) return;
  std::unordered_map<int32_t, uint32_t> seen;
  for (const int32_t id : seen_tokens(o, history)) ++seen[id];
  for (Candidate& c : candidates_) {
    const auto it = seen.find(c.id);
    if (it == seen.end()) continue;
    c.logit = math::penalized_logit(c.logit, it->second, o.repetition_penalty, o.frequency_penalty,
                                    o.presence_penalty);
  }
}

/// DRY: a token that would continue a sequence which occurred before loses multiplier ·
/// base^(length − allowed length), where length is that of the longest such sequence. Source:
/// p-e-w, "DRY: a modern repetition penalty", 2024.
void StepSampler::penalize_repetitions() {
  const SamplerOptions& o = options_;
  if (o.dry_multiplier == 0) return;
  for (Candidate& c : candidates_) {
    const auto it = repeated_.find(c.id);
    if (it == repeated_.end()) continue;
    const auto over = static_cast<int64_t>(it->second) - o.dry_allowed_length;
    const double penalty =
        static_cast<double>(o.dry_multiplier) *
        std::min(math::exp(static_cast<double>(over) * math::log(static_cast<double>(o.dry_base))),
                 1e30);
    c.logit = static_cast<float>(static_cast<double>(c.logit) - penalty);
  }
}

/// Source: Tang et al., "Top-nσ: Not All Logits Are You Need", 2024.
void StepSampler::keep_within_sigmas() {
  if (options_.top_n_sigma == 0) return;
  undecided_ = rest_below_.has_value();  // the deviation is that of all logits
  if (undecided_) return;
  sort();
  const auto count = static_cast<double>(candidates_.size());
  double mean = 0, squares = 0;
  for (const Candidate& c : candidates_) mean += static_cast<double>(c.logit);
  mean /= count;
  for (const Candidate& c : candidates_) {
    const double d = static_cast<double>(c.logit) - mean;
    squares += d * d;
  }
  const double least = static_cast<double>(candidates_.front().logit) -
                       static_cast<double>(options_.top_n_sigma) * std::sqrt(squares / count);
  size_t kept = 1;
  while (kept < candidates_.size() && static_cast<double>(candidates_[kept].logit) >= least) ++kept;
  keep(kept);
}

/// Keeps the tokens whose surprise −log(p) is nearest to the entropy. Source: Meister et al.,
/// "Locally Typical Sampling", 2022.
void StepSampler::keep_typical() {
  if (options_.typical_p == 1) return;
  const uint64_t total = weigh_all();
  if (undecided_) return;
  const double expected = entropy(total);
  const auto distance_of = [&](uint64_t weight) {
    return -math::log(static_cast<double>(weight) / static_cast<double>(total)) - expected;
  };
  // Other tokens are farther than this. The margin is above the rounding errors of the logarithm.
  constexpr double kMargin = 1e-9, kInf = std::numeric_limits<double>::infinity();
  const uint64_t heaviest = most_of_rest();
  const double most = heaviest == 0 ? kInf : distance_of(heaviest) - kMargin;
  std::vector<std::pair<double, size_t>> distances;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].weight == 0) continue;
    distances.emplace_back(std::fabs(distance_of(candidates_[i].weight)), i);
  }
  std::sort(distances.begin(), distances.end());
  const double wanted = static_cast<double>(options_.typical_p) * static_cast<double>(total);
  std::vector<size_t> kept;
  uint64_t sum = 0;
  for (const auto& [distance, i] : distances) {
    if (!(distance < most)) break;
    kept.push_back(i);
    sum += candidates_[i].weight;
    if (static_cast<double>(sum) > wanted) break;
  }
  undecided_ = static_cast<double>(sum) <= wanted && most < kInf;
  std::sort(kept.begin(), kept.end());
  std::vector<Candidate> typical;
  for (const size_t i : kept) typical.push_back(candidates_[i]);
  candidates_ = std::move(typical);
  rest_below_.reset();
}

void StepSampler::keep_top_p() {
  if (options_.top_p == 1) return;
  const double wanted = static_cast<double>(options_.top_p) * static_cast<double>(weigh_all());
  uint64_t sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && static_cast<double>(sum) < wanted) {
    sum += candidates_[kept++].weight;
  }
  undecided_ = undecided_ || (rest_below_ && static_cast<double>(sum) < wanted);
  keep(std::max(kept, size_t{1}));
}

void StepSampler::keep_min_p() {
  if (options_.min_p == 0) return;
  weigh();
  const double least = static_cast<double>(options_.min_p) * math::kTopWeight;
  const auto is_likely = [&](uint64_t weight) { return static_cast<double>(weight) >= least; };
  if (rest_below_ && is_likely(most_of_rest())) undecided_ = true;
  size_t kept = 1;
  while (kept < candidates_.size() && is_likely(candidates_[kept].weight)) ++kept;
  keep(kept);
}

/// XTC, "exclude top choices". Source: p-e-w, 2024.
void StepSampler::exclude_top_choices() {
  const SamplerOptions& o = options_;
  if (o.xtc_probability == 0 || o.xtc_threshold > 0.5f ||
      random_of_step(o.seed, draws_) >= static_cast<double>(o.xtc_probability)) {
    return;
  }
  const double likely = static_cast<double>(o.xtc_threshold) * static_cast<double>(weigh_all());
  const auto is_likely = [&](uint64_t weight) { return static_cast<double>(weight) >= likely; };
  if (rest_below_ && is_likely(most_of_rest())) undecided_ = true;
  size_t count = 0;
  while (count < candidates_.size() && is_likely(candidates_[count].weight)) ++count;
  if (count < 2 || undecided_) return;
  candidates_.erase(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(count) - 1);
}

/// Multiplies the temperature at which the following steps see the logits. With a range, the
/// temperature grows with the entropy. Source of the latter: kalomaze, "Dynamic Temperature", 2024.
void StepSampler::heat() {
  const SamplerOptions& o = options_;
  double temperature = o.temperature;
  if (temperature == 0) {
    sort();
    return keep(1);
  }
  if (o.dynamic_range > 0) {
    const uint64_t total = weigh_all(), count = candidate_count();
    if (undecided_) return;
    const double most = math::log(static_cast<double>(std::max<uint64_t>(count, 2)));
    const double part = std::clamp(entropy(total) / most, 0.0, 1.0);
    const double range = o.dynamic_range;
    const double grown =
        part == 0 ? 0 : math::exp(static_cast<double>(o.dynamic_exponent) * math::log(part));
    temperature = temperature - range + 2 * range * grown;
    if (temperature <= 0) temperature = 1e-6;
  }
  heat_ *= temperature;
}

/// The number of tokens that version 1 of mirostat keeps of `all`: it estimates the exponent of a
/// Zipf law from the likeliest tokens.
size_t StepSampler::kept_by_zipf(uint64_t all) const {
  double products = 0, squares = 0;
  const size_t count = std::min(kLikeliest, candidates_.size());
  for (size_t i = 0; i + 1 < count && candidates_[i + 1].weight > 0; ++i) {
    const double t = math::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    const double b = math::log(static_cast<double>(candidates_[i].weight) /
                               static_cast<double>(candidates_[i + 1].weight));
    products += t * b;
    squares += t * t;
  }
  const double s = squares > 0 ? products / squares : 1;
  const double epsilon = s - 1, n = static_cast<double>(all);
  const double power = math::exp(static_cast<double>(surprise_limit_) * kLn2);  // 2^μ
  const double k = std::fabs(epsilon) < 1e-9 || s <= 0
                       ? n
                       : math::exp(math::log(std::fabs(epsilon * power /
                                                       (1 - math::exp(-epsilon * math::log(n))))) /
                                   s);
  return static_cast<size_t>(std::clamp(k, 1.0, n));
}

/// Sets the bound on the surprise to `bits`, or to the nearest f32 if they are beyond its range:
/// infinities would become NaN.
void StepSampler::limit_surprise(double bits) {
  constexpr double kMost = std::numeric_limits<float>::max();
  surprise_limit_ = static_cast<float>(std::clamp(bits, -kMost, kMost));
}

/// Truncates so that the surprise of drawn tokens approaches tau. Version 2 bounds the surprise
/// directly. Source: Basu et al., "Mirostat", 2020.
std::optional<int32_t> StepSampler::draw_by_mirostat() {
  const SamplerOptions& o = options_;
  uint64_t total = o.mirostat == 1 ? weigh() : weigh_all();
  const auto bits = [](uint64_t weight, uint64_t of) {
    return -math::log(static_cast<double>(std::max<uint64_t>(weight, 1)) /
                      static_cast<double>(of)) /
           kLn2;
  };
  size_t kept = 1;
  if (o.mirostat == 1) {
    const uint64_t all = candidate_count();
    undecided_ = undecided_ || certain() < std::min<uint64_t>(kLikeliest, all);
    kept = kept_by_zipf(all);
  } else {
    const double limit = surprise_limit_;
    if (rest_below_ && bits(most_of_rest(), total) <= limit) undecided_ = true;
    while (kept < candidates_.size() && bits(candidates_[kept].weight, total) <= limit) ++kept;
  }
  keep(kept);
  if (undecided_) return std::nullopt;
  total = weigh();
  const uint64_t point = math::draw_point(total, o.seed, draws_++);
  uint64_t sum = 0;
  for (const Candidate& c : candidates_) {
    sum += c.weight;
    if (sum <= point) continue;
    const double error = bits(c.weight, total) - static_cast<double>(o.mirostat_tau);
    limit_surprise(static_cast<double>(surprise_limit_) -
                   static_cast<double>(o.mirostat_eta) * error);
    return c.id;
  }
  return candidates_.back().id;
}

}  // namespace wick
