// The candidates of a sampler by steps: the tokens whose logits the options change, and the
// likeliest others. The rest of the tokens stays in the source, which sums their weights; each of
// them ranks below `rest_below_`. Weights and their sums are integers, so they don't depend on the
// number of candidates.
#include "wick/base/sampling/step_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "wick/base/error.h"
#include "wick/base/sampling/likeliest.h"
#include "wick/math/sampling.h"

namespace wick {
namespace {

constexpr size_t kFirstCandidates = 256;  // if no step tells how many are needed

}  // namespace

/// Whether a step of the order does anything.
bool StepSampler::applies(SamplerStep step) const {
  const SamplerOptions& o = options_;
  if (std::find(o.order.begin(), o.order.end(), step) == o.order.end()) return false;
  switch (step) {
    case SamplerStep::penalties:
      return o.penalizes();
    case SamplerStep::dry:
      return o.dry_multiplier != 0;
    case SamplerStep::temperature:
      return true;
    default:
      break;
  }
  if (o.mirostat != 0) return false;
  switch (step) {
    case SamplerStep::top_n_sigma:
      return o.top_n_sigma != 0;
    case SamplerStep::top_k:
      return o.top_k != 0;
    case SamplerStep::typical_p:
      return o.typical_p != 1;
    case SamplerStep::top_p:
      return o.top_p != 1;
    case SamplerStep::min_p:
      return o.min_p != 0;
    case SamplerStep::xtc:
      return o.xtc_probability != 0 && o.xtc_threshold <= 0.5f;
    default:
      return true;
  }
}

/// How many of the likeliest tokens the first step that drops tokens may keep, besides those whose
/// logits change; a guess if that depends on the logits.
size_t StepSampler::wanted_candidates() const {
  const SamplerOptions& o = options_;
  for (const SamplerStep step : o.order) {
    if (!applies(step) || step == SamplerStep::penalties || step == SamplerStep::dry) continue;
    if (step == SamplerStep::top_k) return static_cast<size_t>(o.top_k);
    if (step == SamplerStep::top_n_sigma) return std::numeric_limits<size_t>::max();
    if (step != SamplerStep::temperature || o.dynamic_range > 0) break;
    if (o.temperature == 0) return 1;
  }
  return kFirstCandidates;
}

StepSampler::StepSampler(const SamplerOptions& options) : options_(options) {
  check_sampler_options(options);
  limit_surprise(2 * static_cast<double>(options.mirostat_tau));
}

void StepSampler::set_surprise_limit(float bits) {
  if (!std::isfinite(bits)) {
    throw Error("sampler", "option out of range", fmt::format("surprise_limit = {}", bits),
                "need a finite number");
  }
  surprise_limit_ = bits;
}

int32_t StepSampler::sample(LogitSource& logits, std::span<const int32_t> history) {
  check_count(logits.size());
  if (!logits.good()) throw_bad_logits(logits.all());
  source_ = &logits;
  find_changed(logits, history);
  size_t count = wanted_candidates();
  while (true) {
    // Of so many tokens, at least `count` keep their logits.
    const bool all = count >= logits.size() / 4 || count + changed_.size() >= logits.size() / 2;
    collect(logits, all ? logits.size() : count + changed_.size());
    if (const std::optional<int32_t> token = choose(history)) return *token;
    count *= 16;
  }
}

/// Sets the candidates to the `count` likeliest tokens and those whose logits change, with biases.
void StepSampler::collect(LogitSource& logits, size_t count) {
  std::unordered_map<int32_t, float> bias;
  for (const auto& [token, add] : options_.logit_bias) bias[token] += add;
  candidates_.clear();
  const auto add = [&](int32_t id, float logit) {
    if (const auto it = bias.find(id); it != bias.end()) {
      logit = math::largest_finite(logit + it->second);
    }
    if (logit > kExcluded) candidates_.push_back({logit, id, 0});
  };
  rest_below_.reset(), rest_.reset();
  if (count >= logits.size()) {
    const std::vector<float> all = logits.all();
    for (size_t i = 0; i < all.size(); ++i) add(static_cast<int32_t>(i), all[i]);
  } else {
    std::unordered_set<int32_t> changed;
    for (const auto& [id, logit] : changed_) {
      changed.insert(id);
      add(id, logit);
    }
    const std::vector<LogitSource::Token> top = logits.top(count);
    for (const auto& [logit, id] : top) {
      if (!changed.contains(id)) add(id, logit);
    }
    if (top.size() == count && top.back().logit > kExcluded) rest_below_ = top.back();
  }
  if (candidates_.empty()) {
    throw Error("sample", "every logit is -inf", fmt::format("{} logits", logits.size()));
  }
  heat_ = 1;
  undecided_ = false;
}

/// Runs the steps and draws a token. Nothing if that needs more candidates; nothing is drawn then.
std::optional<int32_t> StepSampler::choose(std::span<const int32_t> history) {
  for (const SamplerStep step : options_.order) {
    const bool with_mirostat = step == SamplerStep::penalties || step == SamplerStep::dry ||
                               step == SamplerStep::temperature;
    if (options_.mirostat == 0 || with_mirostat) apply(step, history);
    if (undecided_) return std::nullopt;
  }
  return options_.mirostat != 0 && options_.temperature != 0 ? draw_by_mirostat() : draw_by_rank();
}

std::optional<int32_t> StepSampler::draw_by_rank() {
  const uint64_t total = weigh_all();
  const uint64_t point = math::draw_point(total, options_.seed, draws_);
  const size_t known = rest_below_ ? certain() : candidates_.size();
  uint64_t sum = 0;
  for (size_t i = 0; i < known && !undecided_; ++i) {
    sum += candidates_[i].weight;
    if (sum <= point) continue;
    ++draws_;
    return candidates_[i].id;
  }
  if (rest_below_) return std::nullopt;
  ++draws_;
  return candidates_.back().id;
}

void StepSampler::sort() {
  std::sort(candidates_.begin(), candidates_.end(), ranks_before<Candidate, Candidate>);
}

/// The number of candidates that rank above all tokens that aren't candidates; they are sorted.
size_t StepSampler::certain() const {
  if (!rest_below_) return candidates_.size();
  const auto end =
      std::partition_point(candidates_.begin(), candidates_.end(),
                           [&](const Candidate& c) { return !ranks_before(*rest_below_, c); });
  return static_cast<size_t>(end - candidates_.begin());
}

/// Keeps the first candidates of the sorted list and drops all other tokens.
void StepSampler::keep(size_t count) {
  undecided_ = undecided_ || (rest_below_ && count > certain());
  candidates_.resize(std::min(count, candidates_.size()));
  rest_below_.reset();
}

/// Sorts the candidates and sets their weights; returns the sum. The most likely token must be a
/// candidate.
uint64_t StepSampler::weigh() {
  sort();
  undecided_ = undecided_ || certain() == 0;
  const double top = candidates_.front().logit;
  uint64_t total = 0;
  for (Candidate& c : candidates_) {
    c.weight = math::token_weight((static_cast<double>(c.logit) - top) / heat_);
    total += c.weight;
  }
  return total;
}

/// weigh(), but returns the sum of the weights of all tokens.
uint64_t StepSampler::weigh_all() {
  const uint64_t total = weigh();
  return rest_below_ && !undecided_ ? total + sums_of_rest().weights : total;
}

/// The sums of the tokens that aren't candidates, after weigh(). Those of the source include tokens
/// whose logits changed, which are candidates.
const LogitSource::Sums& StepSampler::sums_of_rest() {
  const double top = candidates_.front().logit;
  if (rest_ && rest_top_ == top && rest_heat_ == heat_) return *rest_;
  rest_top_ = top, rest_heat_ = heat_;
  LogitSource::Sums sums = source_->below(*rest_below_, top, heat_);
  for (const auto& [id, logit] : changed_) {
    if (logit == kExcluded || !ranks_before(*rest_below_, Changed{id, logit})) continue;
    const double less = (static_cast<double>(logit) - top) / heat_;
    const uint64_t weight = math::token_weight(less);
    --sums.count;
    sums.weights -= weight;
    sums.distances -= math::weighted_distance(weight, less);
  }
  rest_ = sums;
  return *rest_;
}

/// The largest weight that a token may have that isn't a candidate, after weigh().
uint64_t StepSampler::most_of_rest() const {
  if (!rest_below_ || undecided_) return 0;
  const double top = candidates_.front().logit;
  return math::token_weight((static_cast<double>(rest_below_->logit) - top) / heat_);
}

uint64_t StepSampler::candidate_count() {
  if (!rest_below_ || undecided_) return candidates_.size();
  return candidates_.size() + sums_of_rest().count;
}

/// The entropy of all tokens' weights, in nats, after weigh_all(): with p = w / Σw and w = 2^40 ·
/// exp(less), it is log(Σw / 2^40) + Σ(w · −less) / Σw.
double StepSampler::entropy(uint64_t total) {
  const double top = candidates_.front().logit;
  uint64_t distances = rest_below_ && !undecided_ ? sums_of_rest().distances : 0;
  for (const Candidate& c : candidates_) {
    distances += math::weighted_distance(c.weight, (static_cast<double>(c.logit) - top) / heat_);
  }
  const double sum = static_cast<double>(total);
  return math::log(sum / math::kTopWeight) + static_cast<double>(distances) / sum;
}

}  // namespace wick
