#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "wick/base/export.h"
#include "wick/base/sampling/logit_source.h"
#include "wick/base/sampling/sampler_options.h"

namespace wick {

struct SamplerCandidate {
  float logit;
  int32_t id;
  uint64_t weight = 0;
};

/// Draws tokens by any steps in any order, from logits of which it reads some: the tokens whose
/// logits penalties, dry and biases change, and the likeliest others. The number of the latter
/// follows from top_k, or from a temperature of 0, if no other step that drops tokens comes first.
/// Otherwise it grows until no step needs another token; sums over all tokens come from the source.
/// top_n_sigma reads all logits unless top_k precedes it. Sampler gives the same tokens.
class WICK_API StepSampler {
 public:
  /// Errors: those of check_sampler_options().
  explicit StepSampler(const SamplerOptions& options);

  /// Returns the next token. history: the tokens so far, oldest first; ids outside the logits are
  /// ignored. Errors: those of Sampler::sample.
  int32_t sample(LogitSource& logits, std::span<const int32_t> history = {});

  /// See Sampler.
  uint64_t draw_count() const { return draws_; }
  void set_draws(uint64_t count) { draws_ = count; }
  float surprise_limit() const { return surprise_limit_; }
  /// Errors: the bound isn't finite.
  void set_surprise_limit(float bits);
  const SamplerOptions& options() const { return options_; }

 private:
  using Candidate = SamplerCandidate;
  /// A token whose logit a step may change, with its logit in the source.
  struct Changed {
    int32_t id;
    float logit;
  };

  bool applies(SamplerStep step) const;
  size_t wanted_candidates() const;
  void find_changed(LogitSource& logits, std::span<const int32_t> history);
  void collect(LogitSource& logits, size_t count);
  std::optional<int32_t> choose(std::span<const int32_t> history);
  std::optional<int32_t> draw_by_rank();

  void apply(SamplerStep step, std::span<const int32_t> history);
  void penalize(std::span<const int32_t> history);
  void penalize_repetitions();
  void keep_within_sigmas();
  void keep_typical();
  void keep_top_p();
  void keep_min_p();
  void exclude_top_choices();
  void heat();
  std::optional<int32_t> draw_by_mirostat();
  void limit_surprise(double bits);
  size_t kept_by_zipf(uint64_t all) const;

  void sort();
  size_t certain() const;
  void keep(size_t count);
  uint64_t weigh();
  uint64_t weigh_all();
  const LogitSource::Sums& sums_of_rest();
  uint64_t most_of_rest() const;
  uint64_t candidate_count();
  double entropy(uint64_t total);

  SamplerOptions options_;
  uint64_t draws_ = 0;
  float surprise_limit_ = 0;  // mirostat's μ, in bits

  // Of one token:
  LogitSource* source_ = nullptr;
  std::vector<Candidate> candidates_;
  std::vector<Changed> changed_;
  std::unordered_map<int32_t, size_t> repeated_;  // see repetitions()
  std::optional<LogitSource::Token> rest_below_;  // the source has further tokens, below this one
  std::optional<LogitSource::Sums> rest_;         // of these, for rest_top_ and rest_heat_
  double rest_top_ = 0, rest_heat_ = 0;
  double heat_ = 1;         // the temperature that has been applied
  bool undecided_ = false;  // a step depends on tokens that aren't candidates
};

}  // namespace wick
