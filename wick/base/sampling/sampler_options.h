#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/base/export.h"

namespace wick {

/// The steps that change or drop candidates before a token is drawn.
enum class SamplerStep : uint8_t {
  penalties,    ///< repetition, presence and frequency penalties
  dry,          ///< penalties of tokens that would continue a repeated sequence
  top_n_sigma,  ///< keeps logits within n standard deviations of the largest
  top_k,
  typical_p,  ///< keeps tokens whose surprise is near the expected one
  top_p,
  min_p,
  xtc,  ///< sometimes drops all likely tokens except the least likely of them
  temperature,
};

/// How the next token is drawn. The steps apply in `order`; those at their neutral values do
/// nothing. With mirostat, only penalties, dry and temperature apply.
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

  float typical_p = 1;         ///< (0, 1]: keep tokens of this probability; 1: all
  float top_n_sigma = 0;       ///< ≥ 0: standard deviations; 0: off
  float xtc_probability = 0;   ///< [0, 1]: of applying xtc at a token
  float xtc_threshold = 0.1f;  ///< [0, 1]: probability of a likely token; above 0.5: off
  float dynamic_range = 0;     ///< [0, temperature]: temperatures vary by ± this with the entropy
  float dynamic_exponent = 1;  ///< > 0: exponent of the normalised entropy
  float dry_multiplier = 0;    ///< ≥ 0: penalty of a token that continues a repetition; 0: off
  float dry_base = 1.75f;  ///< ≥ 1: the penalty is multiplier · base^(length − allowed length)
  int dry_allowed_length = 2;  ///< ≥ 0: repetitions up to this length aren't penalised
  int dry_window = -1;         ///< ≥ -1: number of history tokens; -1: all
  std::vector<int32_t> dry_breakers = {};                  ///< tokens at which repetitions end
  int mirostat = 0;                                        ///< 0: off; 1 or 2: the version
  float mirostat_tau = 5;                                  ///< target surprise in bits
  float mirostat_eta = 0.1f;                               ///< learning rate
  std::vector<std::pair<int32_t, float>> logit_bias = {};  ///< added to the logits of tokens
  std::vector<SamplerStep> order = default_order();

  /// The order of llama.cpp.
  WICK_API static const std::vector<SamplerStep>& default_order();

  /// Whether only penalties, top-k, top-p, min-p and temperature are used, in this order, which
  /// devices can do.
  WICK_API bool is_basic() const;
  /// Whether any penalty is set, so that the history matters.
  bool penalizes() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  bool operator==(const SamplerOptions&) const = default;
};

/// Calls visit(name, member) for the options that is_basic() allows to differ from their defaults.
template <class Options, class Visit>
void for_each_basic_option(Options& o, const Visit& visit) {
  visit("temperature", o.temperature);
  visit("top_k", o.top_k);
  visit("top_p", o.top_p);
  visit("min_p", o.min_p);
  visit("repetition_penalty", o.repetition_penalty);
  visit("presence_penalty", o.presence_penalty);
  visit("frequency_penalty", o.frequency_penalty);
  visit("penalty_window", o.penalty_window);
  visit("seed", o.seed);
}

/// Calls visit(name, member) for all options that are numbers: all except dry_breakers, logit_bias
/// and order.
template <class Options, class Visit>
void for_each_option(Options& o, const Visit& visit) {
  for_each_basic_option(o, visit);
  visit("typical_p", o.typical_p);
  visit("top_n_sigma", o.top_n_sigma);
  visit("xtc_probability", o.xtc_probability);
  visit("xtc_threshold", o.xtc_threshold);
  visit("dynamic_range", o.dynamic_range);
  visit("dynamic_exponent", o.dynamic_exponent);
  visit("dry_multiplier", o.dry_multiplier);
  visit("dry_base", o.dry_base);
  visit("dry_allowed_length", o.dry_allowed_length);
  visit("dry_window", o.dry_window);
  visit("mirostat", o.mirostat);
  visit("mirostat_tau", o.mirostat_tau);
  visit("mirostat_eta", o.mirostat_eta);
}

/// Errors: an option is out of range; the message names it and its value.
WICK_API void check_sampler_options(const SamplerOptions& options);

/// The step of a name such as "top_k". Errors: there is no such step; the message lists them.
WICK_API SamplerStep parse_sampler_step(std::string_view name);

/// The name of a step.
WICK_API std::string_view sampler_step_name(SamplerStep step);

/// Basic SamplerOptions in the form that devices read: math::SamplerWords.
inline constexpr int64_t kSamplerWords = 12;
/// Errors: those of check_sampler_options(); the options aren't basic.
WICK_API std::array<uint32_t, kSamplerWords> sampler_words(const SamplerOptions& options);
WICK_API SamplerOptions sampler_options(const std::array<uint32_t, kSamplerWords>& words);

}  // namespace wick
