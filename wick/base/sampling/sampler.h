#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/base/sampling/sampler_options.h"
#include "wick/base/sampling/step_sampler.h"

namespace wick {

/// Draws tokens from logits. One seed gives the same sequence of draws on every machine.
///
/// Weights are integer multiples of 2^-40 of the most likely token's probability, computed with
/// wick's own exp, so their sums don't depend on the order of summation. Draw i uses the i-th
/// Philox4x32-10 block of the seed. Tokens with equal logits rank by id, lowest first. A sampler
/// must not be used by several threads at once.
class WICK_API Sampler {
 public:
  /// Errors: those of check_sampler_options().
  explicit Sampler(const SamplerOptions& options) : steps_(options) {}

  /// Returns the next token. logits [vocabulary]; a logit of -inf excludes a token. history: the
  /// tokens so far, oldest first, which only the penalties read. Errors: there are no logits, or
  /// 2^21 or more; a logit is NaN or +inf; all logits are -inf; an id of the history is out of
  /// range.
  int32_t sample(std::span<const float> logits, std::span<const int32_t> history = {});

  /// Whether tokens are drawn at random; at temperature 0 they aren't.
  bool draws() const { return options().temperature != 0; }
  /// The number of random draws so far.
  uint64_t draw_count() const { return steps_.draw_count(); }
  /// Continues as if `count` draws had been made.
  void set_draws(uint64_t count) { steps_.set_draws(count); }
  /// Mirostat's bound on the surprise of the next token, in bits; always finite.
  float surprise_limit() const { return steps_.surprise_limit(); }
  /// Errors: the bound isn't finite.
  void set_surprise_limit(float bits) { steps_.set_surprise_limit(bits); }

  const SamplerOptions& options() const { return steps_.options(); }

 private:
  std::span<const float> penalize(std::span<const float> logits, std::span<const int32_t> history);
  void select(std::span<const float> logits);
  void sort_prefix(size_t count);
  void truncate();
  int32_t draw();

  StepSampler steps_;  // has the options and the state
  std::vector<float> penalized_;
  std::vector<int32_t> seen_;
  std::vector<SamplerCandidate>
      candidates_;  // the first sorted_ are in order and rank before the others
  size_t sorted_ = 0;
};

}  // namespace wick
