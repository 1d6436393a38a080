// The steps of a sampler whose options aren't basic. All candidates are kept in a list; sums over
// candidates run in order of rank, so they have the same value on every machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "wick/base/error.h"
#include "wick/base/sampler.h"
#include "wick/math/sampling.h"
#include "wick/math/scalar.h"

namespace wick {
namespace {

constexpr struct {
  const char* name;
  SamplerStep step;
} kSteps[] = {
    {"penalties", SamplerStep::penalties},
    {"dry", SamplerStep::dry},
    {"top_n_sigma", SamplerStep::top_n_sigma},
    {"top_k", SamplerStep::top_k},
    {"typical_p", SamplerStep::typical_p},
    {"top_p", SamplerStep::top_p},
    {"min_p", SamplerStep::min_p},
    {"xtc", SamplerStep::xtc},
    {"temperature", SamplerStep::temperature},
};

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

}  // namespace

const std::vector<SamplerStep>& SamplerOptions::default_order() {
  static const std::vector<SamplerStep> order = {
      SamplerStep::penalties, SamplerStep::dry,       SamplerStep::top_n_sigma,
      SamplerStep::top_k,     SamplerStep::typical_p, SamplerStep::top_p,
      SamplerStep::min_p,     SamplerStep::xtc,       SamplerStep::temperature};
  return order;
}

std::string_view sampler_step_name(SamplerStep step) {
  for (const auto& row : kSteps) {
    if (row.step == step) return row.name;
  }
  return {};
}

SamplerStep parse_sampler_step(std::string_view name) {
  std::string known;
  for (const auto& entry : kSteps) {
    if (entry.name == name) return entry.step;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
  }
  throw Error("sampler", "unknown step", fmt::format("'{}'", name), "use " + known);
}

bool SamplerOptions::is_basic() const {
  return typical_p == 1 && top_n_sigma == 0 && xtc_probability == 0 && dynamic_range == 0 &&
         dry_multiplier == 0 && mirostat == 0 && logit_bias.empty() && order == default_order();
}

int32_t Sampler::sample_by_steps(std::span<const float> logits, std::span<const int32_t> history) {
  std::unordered_map<int32_t, float> bias;
  for (const auto& [token, add] : options_.logit_bias) bias[token] += add;
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    float logit = logits[i];
    if (!(logit < std::numeric_limits<float>::infinity())) {
      throw Error("sample", "bad logit", fmt::format("{} for token {}", logit, i),
                  "need finite numbers or -inf");
    }
    if (const auto it = bias.find(id); it != bias.end()) logit += it->second;
    if (logit > -std::numeric_limits<float>::infinity()) candidates_.push_back({logit, id, 0});
  }
  if (candidates_.empty()) {
    throw Error("sample", "every logit is -inf", fmt::format("{} logits", logits.size()));
  }
  sorted_ = 0;
  heat_ = 1;
  for (const SamplerStep step : options_.order) {
    const bool with_mirostat = step == SamplerStep::penalties || step == SamplerStep::dry ||
                               step == SamplerStep::temperature;
    if (options_.mirostat == 0 || with_mirostat) apply(step, history);
  }
  if (options_.mirostat != 0 && options_.temperature != 0) return draw_by_mirostat();
  const uint64_t total = weigh();
  const uint64_t point = math::draw_point(total, options_.seed, draws_++);
  uint64_t sum = 0;
  for (const Candidate& c : candidates_) {
    sum += c.weight;
    if (sum > point) return c.id;
  }
  return candidates_.back().id;
}

void Sampler::apply(SamplerStep step, std::span<const int32_t> history) {
  const SamplerOptions& o = options_;
  switch (step) {
    case SamplerStep::penalties:
      return penalize_candidates(history);
    case SamplerStep::dry:
      return penalize_repetitions(history);
    case SamplerStep::top_n_sigma:
      return keep_within_sigmas();
    case SamplerStep::top_k:
      if (o.top_k == 0 || candidates_.size() <= static_cast<size_t>(o.top_k)) return;
      sort_prefix(static_cast<size_t>(o.top_k));
      candidates_.resize(static_cast<size_t>(o.top_k));
      sorted_ = candidates_.size();
      return;
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

/// Sorts all candidates and sets their weights; returns the sum.
uint64_t Sampler::weigh() {
  sort_prefix(candidates_.size());
  const double top = candidates_.front().logit;
  uint64_t total = 0;
  for (Candidate& c : candidates_) {
    c.weight = math::token_weight((static_cast<double>(c.logit) - top) / heat_);
    total += c.weight;
  }
  return total;
}

/// The entropy of the weights, in nats.
double Sampler::entropy(uint64_t total) const {
  double sum = 0;
  for (const Candidate& c : candidates_) {
    if (c.weight == 0) continue;
    const double p = static_cast<double>(c.weight) / static_cast<double>(total);
    sum -= p * math::log(p);
  }
  return sum;
}

void Sampler::penalize_candidates(std::span<const int32_t> history) {
  const SamplerOptions& o = options_;
  if (!o.penalizes()) return;
  if (o.penalty_window >= 0 && history.size() > static_cast<size_t>(o.penalty_window)) {
    history = history.last(static_cast<size_t>(o.penalty_window));
  }
  std::unordered_map<int32_t, uint32_t> seen;
  for (const int32_t id : history) ++seen[id];
  for (Candidate& c : candidates_) {
    const auto it = seen.find(c.id);
    if (it == seen.end()) continue;
    c.logit = math::penalized_logit(c.logit, it->second, o.repetition_penalty, o.frequency_penalty,
                                    o.presence_penalty);
  }
  sorted_ = 0;
}

/// DRY: a token that would continue a sequence which occurred before loses multiplier ·
/// base^(length − allowed length), where length is that of the longest such sequence. Source:
/// p-e-w, "DRY: a modern repetition penalty", 2024.
void Sampler::penalize_repetitions(std::span<const int32_t> history) {
  const SamplerOptions& o = options_;
  if (o.dry_multiplier == 0) return;
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
    size_t& best = longest[history[i + 1]];
    if (!breakers.contains(history[i + 1])) best = std::max(best, length);
  }
  for (Candidate& c : candidates_) {
    const auto it = longest.find(c.id);
    if (it == longest.end() || it->second == 0) continue;
    const auto over = static_cast<int64_t>(it->second) - o.dry_allowed_length;
    if (over < 0) continue;
    const double penalty =
        static_cast<double>(o.dry_multiplier) *
        std::min(math::exp(static_cast<double>(over) * math::log(static_cast<double>(o.dry_base))),
                 1e30);
    c.logit = static_cast<float>(static_cast<double>(c.logit) - penalty);
  }
  sorted_ = 0;
}

/// Source: Tang et al., "Top-nσ: Not All Logits Are You Need", 2024.
void Sampler::keep_within_sigmas() {
  if (options_.top_n_sigma == 0) return;
  sort_prefix(candidates_.size());
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
  candidates_.resize(kept);
  sorted_ = kept;
}

/// Source: Meister et al., "Locally Typical Sampling", 2022.
void Sampler::keep_typical() {
  if (options_.typical_p == 1) return;
  const uint64_t total = weigh();
  const double expected = entropy(total);
  std::vector<std::pair<double, size_t>> distances;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].weight == 0) continue;
    const double p = static_cast<double>(candidates_[i].weight) / static_cast<double>(total);
    distances.emplace_back(std::fabs(-math::log(p) - expected), i);
  }
  std::sort(distances.begin(), distances.end());
  const double wanted = static_cast<double>(options_.typical_p) * static_cast<double>(total);
  std::vector<size_t> kept;
  uint64_t sum = 0;
  for (const auto& [distance, i] : distances) {
    kept.push_back(i);
    sum += candidates_[i].weight;
    if (static_cast<double>(sum) > wanted) break;
  }
  std::sort(kept.begin(), kept.end());
  std::vector<Candidate> typical;
  for (const size_t i : kept) typical.push_back(candidates_[i]);
  candidates_ = std::move(typical);
  sorted_ = candidates_.size();
}

void Sampler::keep_top_p() {
  if (options_.top_p == 1) return;
  const double wanted = static_cast<double>(options_.top_p) * static_cast<double>(weigh());
  uint64_t sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && static_cast<double>(sum) < wanted) {
    sum += candidates_[kept++].weight;
  }
  candidates_.resize(std::max(kept, size_t{1}));
  sorted_ = candidates_.size();
}

void Sampler::keep_min_p() {
  if (options_.min_p == 0) return;
  weigh();
  const double least = static_cast<double>(options_.min_p) * math::kTopWeight;
  size_t kept = 1;
  while (kept < candidates_.size() && static_cast<double>(candidates_[kept].weight) >= least)
    ++kept;
  candidates_.resize(kept);
  sorted_ = kept;
}

/// XTC, "exclude top choices". Source: p-e-w, 2024.
void Sampler::exclude_top_choices() {
  const SamplerOptions& o = options_;
  if (o.xtc_probability == 0 || o.xtc_threshold > 0.5f ||
      random_of_step(o.seed, draws_) >= static_cast<double>(o.xtc_probability)) {
    return;
  }
  const double likely = static_cast<double>(o.xtc_threshold) * static_cast<double>(weigh());
  size_t count = 0;
  while (count < candidates_.size() && static_cast<double>(candidates_[count].weight) >= likely) {
    ++count;
  }
  if (count < 2) return;
  candidates_.erase(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(count) - 1);
  sorted_ = candidates_.size();
}

/// Multiplies the temperature at which the following steps see the logits. With a range, the
/// temperature grows with the entropy. Source of the latter: kalomaze, "Dynamic Temperature", 2024.
void Sampler::heat() {
  const SamplerOptions& o = options_;
  double temperature = o.temperature;
  if (temperature == 0) {
    sort_prefix(1);
    candidates_.resize(1);
    sorted_ = 1;
    return;
  }
  if (o.dynamic_range > 0 && candidates_.size() > 1) {
    const double most = math::log(static_cast<double>(candidates_.size()));
    const double part = std::clamp(entropy(weigh()) / most, 0.0, 1.0);
    const double range = o.dynamic_range;
    const double grown =
        part == 0 ? 0 : math::exp(static_cast<double>(o.dynamic_exponent) * math::log(part));
    temperature = temperature - range + 2 * range * grown;
    if (temperature <= 0) temperature = 1e-6;
  }
  heat_ *= temperature;
}

/// Truncates so that the surprise of drawn tokens approaches tau. Version 1 estimates the exponent
/// of a Zipf law from the likeliest tokens, version 2 bounds the surprise directly. Source: Basu et
/// al., "Mirostat", 2020.
int32_t Sampler::draw_by_mirostat() {
  constexpr double kLn2 = 0.6931471805599453;
  const SamplerOptions& o = options_;
  uint64_t total = weigh();
  const auto bits = [&](const Candidate& c, uint64_t of) {
    return -math::log(static_cast<double>(std::max<uint64_t>(c.weight, 1)) /
                      static_cast<double>(of)) /
           kLn2;
  };
  size_t kept = 1;
  if (o.mirostat == 1) {
    constexpr size_t kLikeliest = 100;
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
    const double epsilon = s - 1, n = static_cast<double>(candidates_.size());
    const double power = math::exp(static_cast<double>(surprise_limit_) * kLn2);  // 2^μ
    const double k =
        std::fabs(epsilon) < 1e-9 || s <= 0
            ? n
            : math::exp(
                  math::log(std::fabs(epsilon * power / (1 - math::exp(-epsilon * math::log(n))))) /
                  s);
    kept = static_cast<size_t>(std::clamp(k, 1.0, n));
  } else {
    while (kept < candidates_.size() &&
           bits(candidates_[kept], total) <= static_cast<double>(surprise_limit_)) {
      ++kept;
    }
  }
  candidates_.resize(kept);
  sorted_ = kept;
  total = weigh();
  const uint64_t point = math::draw_point(total, o.seed, draws_++);
  uint64_t sum = 0;
  for (const Candidate& c : candidates_) {
    sum += c.weight;
    if (sum <= point) continue;
    const double error = bits(c, total) - static_cast<double>(o.mirostat_tau);
    limit_surprise(static_cast<double>(surprise_limit_) -
                   static_cast<double>(o.mirostat_eta) * error);
    return c.id;
  }
  return candidates_.back().id;
}

/// Sets the bound on the surprise to `bits`, or to the nearest f32 if they are beyond its range:
/// infinities would become NaN.
void Sampler::limit_surprise(double bits) {
  constexpr double kMost = std::numeric_limits<float>::max();
  surprise_limit_ = static_cast<float>(std::clamp(bits, -kMost, kMost));
}

}  // namespace wick
