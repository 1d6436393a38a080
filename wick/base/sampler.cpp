#include "wick/base/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "wick/base/error.h"
#include "wick/base/step_sampler.h"
#include "wick/math/sampling.h"

namespace wick {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

[[noreturn]] void throw_option(const char* name, double value, const char* rule) {
  throw Error("sampler", "option out of range", fmt::format("{} = {}", name, value), rule);
}

[[noreturn]] void throw_logit(std::span<const float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < kInf)) {
      throw Error("sample", "bad logit", fmt::format("{} for token {}", logits[i], i),
                  "need finite numbers or -inf");
    }
  }
  throw Error("sample", "every logit is -inf", fmt::format("{} logits", logits.size()));
}

struct Largest {
  float value;
  bool bad;
  void add(float x) {
    value = x > value ? x : value;
    bad |= !(x < kInf);  // true for NaN too
  }
};

// Finds the largest of `count` logits and whether one is NaN or +inf. It uses the compiler's vector
// types, because g++ 12 doesn't vectorise the plain loop and greedy decoding spends all its time
// here.
Largest largest(const float* x, size_t count) {
  using Floats = float __attribute__((vector_size(16)));
  using Masks = int32_t __attribute__((vector_size(16)));
  constexpr size_t kVectors = 4, kStep = 4 * kVectors;
  Floats top[kVectors];
  Masks good[kVectors];
  for (size_t j = 0; j < kVectors; ++j) {
    top[j] = Floats{} - kInf;
    good[j] = Masks{} == 0;
  }
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (size_t j = 0; j < kVectors; ++j) {
      Floats v;
      std::memcpy(&v, x + i + 4 * j, sizeof(v));
      top[j] = v > top[j] ? v : top[j];
      good[j] &= v < kInf;
    }
  }
  Largest all{-kInf, false};
  for (size_t j = 0; j < kVectors; ++j) {
    for (size_t lane = 0; lane < 4; ++lane) {
      all.value = top[j][lane] > all.value ? top[j][lane] : all.value;
      all.bad |= good[j][lane] == 0;
    }
  }
  for (; i < count; ++i) all.add(x[i]);
  return all;
}

int32_t most_likely(std::span<const float> logits) {
  constexpr size_t kBlock = 1024;
  float best = -kInf;
  size_t block = 0;
  for (size_t i = 0; i < logits.size(); i += kBlock) {
    const Largest here = largest(logits.data() + i, std::min(kBlock, logits.size() - i));
    if (here.bad) throw_logit(logits);
    if (here.value > best) {
      best = here.value;
      block = i;
    }
  }
  if (best == -kInf) throw_logit(logits);
  while (logits[block] != best) ++block;
  return static_cast<int32_t>(block);
}

constexpr auto kBefore = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

}  // namespace

static_assert(kSamplerWords == math::kSamplerWords);

std::array<uint32_t, kSamplerWords> sampler_words(const SamplerOptions& o) {
  const Sampler checked(o);
  if (!o.is_basic()) {
    throw Error(ErrorKind::not_implemented, "sampler", "not on devices",
                "these options need the host's sampler");
  }
  const math::SamplerWords words = {
      .temperature = o.temperature,
      .top_p = o.top_p,
      .min_p = o.min_p,
      .repetition = o.repetition_penalty,
      .presence = o.presence_penalty,
      .frequency = o.frequency_penalty,
      .top_k = static_cast<uint32_t>(o.top_k),
      .window = static_cast<uint32_t>(o.penalty_window),
      .seed_low = static_cast<uint32_t>(o.seed),
      .seed_high = static_cast<uint32_t>(o.seed >> 32),
      .penalizes = o.penalizes() ? 1U : 0U,
      .unused = 0,
  };
  return std::bit_cast<std::array<uint32_t, kSamplerWords>>(words);
}

SamplerOptions sampler_options(const std::array<uint32_t, kSamplerWords>& from) {
  const auto words = std::bit_cast<math::SamplerWords>(from);
  return {.temperature = words.temperature,
          .top_k = static_cast<int>(words.top_k),
          .top_p = words.top_p,
          .min_p = words.min_p,
          .repetition_penalty = words.repetition,
          .presence_penalty = words.presence,
          .frequency_penalty = words.frequency,
          .penalty_window = static_cast<int>(words.window),
          .seed = uint64_t{words.seed_high} << 32 | words.seed_low};
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  const auto check = [](bool good, const char* name, double value, const char* rule) {
    if (!good) throw_option(name, value, rule);
  };
  const SamplerOptions& o = options;
  // The comparisons are written so that NaN fails them.
  check(o.temperature >= 0 && o.temperature < kInf, "temperature", o.temperature,
        "need 0 <= temperature < inf");
  check(o.top_k >= 0, "top_k", o.top_k, "need top_k >= 0 (0: all tokens)");
  check(o.top_p > 0 && o.top_p <= 1, "top_p", o.top_p, "need 0 < top_p <= 1");
  check(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "need 0 <= min_p <= 1");
  check(o.repetition_penalty > 0 && o.repetition_penalty < kInf, "repetition_penalty",
        o.repetition_penalty, "need 0 < repetition_penalty < inf");
  check(std::isfinite(o.presence_penalty), "presence_penalty", o.presence_penalty,
        "need a finite number");
  check(std::isfinite(o.frequency_penalty), "frequency_penalty", o.frequency_penalty,
        "need a finite number");
  check(o.penalty_window >= -1, "penalty_window", o.penalty_window,
        "need penalty_window >= -1 (-1: all tokens)");
  check(o.typical_p > 0 && o.typical_p <= 1, "typical_p", o.typical_p, "need 0 < typical_p <= 1");
  check(o.top_n_sigma >= 0 && o.top_n_sigma < kInf, "top_n_sigma", o.top_n_sigma,
        "need 0 <= top_n_sigma < inf");
  check(o.xtc_probability >= 0 && o.xtc_probability <= 1, "xtc_probability", o.xtc_probability,
        "need 0 <= xtc_probability <= 1");
  check(o.xtc_threshold >= 0 && o.xtc_threshold <= 1, "xtc_threshold", o.xtc_threshold,
        "need 0 <= xtc_threshold <= 1");
  check(o.dynamic_range >= 0 && o.dynamic_range <= o.temperature, "dynamic_range", o.dynamic_range,
        "need 0 <= dynamic_range <= temperature");
  check(o.dynamic_exponent > 0 && o.dynamic_exponent < kInf, "dynamic_exponent", o.dynamic_exponent,
        "need 0 < dynamic_exponent < inf");
  check(o.dry_multiplier >= 0 && o.dry_multiplier < kInf, "dry_multiplier", o.dry_multiplier,
        "need 0 <= dry_multiplier < inf");
  check(o.dry_base >= 1 && o.dry_base < kInf, "dry_base", o.dry_base, "need 1 <= dry_base < inf");
  check(o.dry_allowed_length >= 0, "dry_allowed_length", o.dry_allowed_length,
        "need dry_allowed_length >= 0");
  check(o.dry_window >= -1, "dry_window", o.dry_window, "need dry_window >= -1 (-1: all tokens)");
  check(o.mirostat >= 0 && o.mirostat <= 2, "mirostat", o.mirostat, "need 0, 1 or 2");
  check(o.mirostat_tau >= 0 && o.mirostat_tau < kInf, "mirostat_tau", o.mirostat_tau,
        "need 0 <= mirostat_tau < inf");
  check(o.mirostat_eta >= 0 && o.mirostat_eta < kInf, "mirostat_eta", o.mirostat_eta,
        "need 0 <= mirostat_eta < inf");
  for (const auto& [token, bias] : o.logit_bias) {
    check(token >= 0, "logit_bias", token, "need token ids of at least 0");
    check(bias < kInf, "logit_bias", bias, "need finite numbers or -inf");
  }
  limit_surprise(2 * static_cast<double>(o.mirostat_tau));
}

void Sampler::set_surprise_limit(float bits) {
  if (!std::isfinite(bits)) throw_option("surprise_limit", bits, "need a finite number");
  surprise_limit_ = bits;
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const int32_t> history) {
  if (logits.empty()) throw Error("sample", "no logits");
  if (logits.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()) / 1024) {
    throw Error("sample", "too many logits", fmt::format("{}", logits.size()), "need < 2^21");
  }
  if (!options_.is_basic()) return sample_by_steps(logits, history);
  logits = penalize(logits, history);
  if (options_.temperature == 0) return most_likely(logits);
  select(logits);
  truncate();
  return draw();
}

int32_t Sampler::sample_by_steps(std::span<const float> logits, std::span<const int32_t> history) {
  SpanLogits source(logits);
  StepSampler steps(options_);
  steps.set_draws(draws_);
  steps.set_surprise_limit(surprise_limit_);
  const int32_t token = steps.sample(source, history);
  draws_ = steps.draw_count();
  surprise_limit_ = steps.surprise_limit();
  return token;
}

// Applies the penalties to each seen token once: l > 0 ? l / r : l · r; then minus count ·
// frequency, minus presence.
std::span<const float> Sampler::penalize(std::span<const float> logits,
                                         std::span<const int32_t> history) {
  const SamplerOptions& o = options_;
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
  const size_t k = options_.top_k == 0
                       ? logits.size()
                       : std::min(static_cast<size_t>(options_.top_k), logits.size());
  // Keeps up to twice top_k candidates. When the buffer is full, the lower half is dropped, and the
  // best dropped logit becomes a lower bound for later logits. A later logit equal to the bound has
  // a higher id, so it ranks lower.
  const size_t full = 2 * k + 64;
  constexpr size_t kBlock = 64;
  float bound = -kInf;
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); i += kBlock) {
    const size_t count = std::min(kBlock, logits.size() - i);
    const Largest here = largest(logits.data() + i, count);
    if (here.bad) throw_logit(logits);
    if (!(here.value > bound)) continue;
    for (size_t j = i; j < i + count; ++j) {
      if (logits[j] > bound) candidates_.push_back({logits[j], static_cast<int32_t>(j), 0});
    }
    if (candidates_.size() >= full) {
      const auto kth = candidates_.begin() + static_cast<ptrdiff_t>(k) - 1;
      std::nth_element(candidates_.begin(), kth, candidates_.end(), kBefore);
      bound = kth->logit;
      candidates_.resize(k);
    }
  }
  if (candidates_.empty()) throw_logit(logits);
  sorted_ = 0;
  if (candidates_.size() > k) {
    sort_prefix(k);
    candidates_.resize(k);
    sorted_ = k;
  }
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
  const double least = static_cast<double>(options_.min_p) * math::kTopWeight;
  if (options_.top_p == 1 && options_.min_p == 0) return;
  sort_prefix(1);
  const double top = candidates_[0].logit;
  uint64_t total = 0;
  for (Candidate& c : candidates_) {
    c.weight = math::token_weight(static_cast<double>(c.logit) - top);
    total += c.weight;
  }
  if (options_.top_p == 1) {
    const auto unlikely = [&](const Candidate& c) { return static_cast<double>(c.weight) < least; };
    std::erase_if(candidates_, unlikely);  // keeps the order of the rest
    sorted_ = std::min(sorted_, candidates_.size());
    return;
  }
  const double wanted = static_cast<double>(options_.top_p) * static_cast<double>(total);
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
  const double top = candidates_[0].logit, temperature = options_.temperature;
  uint64_t total = 0;
  for (Candidate& c : candidates_) {
    c.weight = math::token_weight((static_cast<double>(c.logit) - top) / temperature);
    total += c.weight;
  }
  const uint64_t point = math::draw_point(total, options_.seed, draws_++);
  uint64_t sum = 0;
  for (size_t i = 0;; ++i) {
    sort_prefix(i + 1);
    sum += candidates_[i].weight;
    if (sum > point) return candidates_[i].id;
  }
}

/// Sets the bound on the surprise to `bits`, or to the nearest f32 if they are beyond its range:
/// infinities would become NaN.
void Sampler::limit_surprise(double bits) {
  constexpr double kMost = std::numeric_limits<float>::max();
  surprise_limit_ = static_cast<float>(std::clamp(bits, -kMost, kMost));
}

}  // namespace wick
