#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "wick/base/export.h"

namespace wick {

/// How the next token is drawn. Applied in this order: penalties, top-k, top-p, min-p, temperature.
struct SamplerOptions {
  float temperature = 0.8f;         ///< ≥ 0; 0: always the most likely token
  int top_k = 40;                   ///< ≥ 0: the k most likely tokens; 0: all
  float top_p = 0.95f;              ///< (0, 1]: the fewest tokens of that total probability; 1: all
  float min_p = 0.05f;              ///< [0, 1]: tokens at least min_p times as likely as the first
  float repetition_penalty = 1.0f;  ///< > 0: divides positive logits of seen tokens; 1: none
  float presence_penalty = 0.0f;    ///< taken from the logit of a seen token
  float frequency_penalty = 0.0f;   ///< taken from it once per occurrence
  int penalty_window = 64;          ///< ≥ -1: tokens of history that count as seen; -1: all
  uint64_t seed = 0;

  /// Whether the tokens so far have a say.
  bool penalizes() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  bool operator==(const SamplerOptions&) const = default;
};

/// SamplerOptions as devices read them: math::SamplerWords.
inline constexpr int64_t kSamplerWords = 12;
/// Errors: those of Sampler's constructor.
WICK_API std::array<uint32_t, kSamplerWords> sampler_words(const SamplerOptions& options);
WICK_API SamplerOptions sampler_options(const std::array<uint32_t, kSamplerWords>& words);

/// Draws tokens from logits. One seed gives one sequence of draws, on every machine.
///
/// Probabilities are whole numbers of 2^-40 of the first token's, made by wick's own exp, so that
/// their sums do not depend on an order; draw i takes the i-th Philox4x32-10 block of the seed.
/// Equal logits rank by id, the lowest first. One sampler serves one thread.
class WICK_API Sampler {
 public:
  /// Errors: an option outside its range, named with its value.
  explicit Sampler(const SamplerOptions& options);

  /// The next token. logits: [vocabulary], -inf rules a token out; history: the tokens so far,
  /// oldest first, used by the penalties alone.
  /// Errors: no logits or 2^21 and more, a NaN or +inf among them, nothing but -inf, a history id
  /// outside them.
  int32_t sample(std::span<const float> logits, std::span<const int32_t> history = {});

  /// Whether tokens are drawn: at a temperature of 0 they aren't.
  bool draws() const { return options_.temperature != 0; }
  /// Goes on as if so many draws had been made.
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
  std::vector<Candidate> candidates_;  // the first sorted_ in order, the others all after them
  size_t sorted_ = 0;
};

}  // namespace wick
