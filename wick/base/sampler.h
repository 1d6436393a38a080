#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "wick/base/export.h"

namespace wick {

/// How the next token is drawn. The steps apply in this order: penalties, top-k, top-p, min-p,
/// temperature.
struct SamplerOptions {
  float temperature = 0.8f;         ///< ≥ 0; 0: always choose the most likely token
  int top_k = 40;                   ///< ≥ 0: keep the k most likely tokens; 0: all
  float top_p = 0.95f;              ///< (0, 1]: keep the fewest tokens of this probability; 1: all
  float min_p = 0.05f;              ///< [0, 1]: least probability relative to the largest
  float repetition_penalty = 1.0f;  ///< > 0: divides positive logits of seen tokens; 1: no effect
  float presence_penalty = 0.0f;    ///< subtracted from the logit of a seen token
  float frequency_penalty = 0.0f;   ///< subtracted from the logit once per occurrence
  int penalty_window = 64;  ///< ≥ -1: number of history tokens that count as seen; -1: all
  uint64_t seed = 0;

  /// Whether any penalty is set, so that the history matters.
  bool penalizes() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  bool operator==(const SamplerOptions&) const = default;
};

/// SamplerOptions in the form that devices read: math::SamplerWords.
inline constexpr int64_t kSamplerWords = 12;
/// Errors: those of Sampler's constructor.
WICK_API std::array<uint32_t, kSamplerWords> sampler_words(const SamplerOptions& options);
WICK_API SamplerOptions sampler_options(const std::array<uint32_t, kSamplerWords>& words);

/// Draws tokens from logits. One seed gives the same sequence of draws on every machine.
///
/// Weights are integer multiples of 2^-40 of the most likely token's probability, computed with
/// wick's own exp, so their sums don't depend on the order of summation. Draw i uses the i-th
/// Philox4x32-10 block of the seed. Tokens with equal logits rank by id, lowest first. A sampler
/// must not be used by several threads at once.
class WICK_API Sampler {
 public:
  /// Errors: an option is out of range; the message names it and its value.
  explicit Sampler(const SamplerOptions& options);

  /// Returns the next token. logits [vocabulary]; a logit of -inf excludes a token. history: the
  /// tokens so far, oldest first, which only the penalties read. Errors: there are no logits, or
  /// 2^21 or more; a logit is NaN or +inf; all logits are -inf; an id of the history is out of
  /// range.
  int32_t sample(std::span<const float> logits, std::span<const int32_t> history = {});

  /// Whether tokens are drawn at random; at temperature 0 they aren't.
  bool draws() const { return options_.temperature != 0; }
  /// Continues as if `count` draws had been made.
  void set_draws(uint64_t count) { draws_ = count; }

  const SamplerOptions& options() const { return options_; }

 private:
  struct Candidate {
    float logit;
    int32_t id;
    uint64_t weight;
  };

  std::span<const float> penalize(std::span<const float> logits, std::span<const int32_t> history);
  void select(std::span<const float> logits);
  void sort_prefix(size_t count);
  void truncate();
  int32_t draw();

  SamplerOptions options_;
  uint64_t draws_ = 0;
  std::vector<float> penalized_;
  std::vector<int32_t> seen_;
  std::vector<Candidate> candidates_;  // the first sorted_ are in order and rank before the others
  size_t sorted_ = 0;
};

}  // namespace wick
