#include "wick/base/sampling/sampler_options.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "wick/base/error.h"
#include "wick/math/sampling.h"

namespace wick {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

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

[[noreturn]] void throw_option(const char* name, double value, const char* rule) {
  throw Error("sampler", "option out of range", fmt::format("{} = {}", name, value), rule);
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

void check_sampler_options(const SamplerOptions& o) {
  const auto need = [](bool good, const char* name, double value, const char* rule) {
    if (!good) throw_option(name, value, rule);
  };
  // The comparisons are written so that NaN fails them.
  need(o.temperature >= 0 && o.temperature < kInfinity, "temperature", o.temperature,
       "need 0 <= temperature < inf");
  need(o.top_k >= 0, "top_k", o.top_k, "need top_k >= 0 (0: all tokens)");
  need(o.top_p > 0 && o.top_p <= 1, "top_p", o.top_p, "need 0 < top_p <= 1");
  need(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "need 0 <= min_p <= 1");
  need(o.repetition_penalty > 0 && o.repetition_penalty < kInfinity, "repetition_penalty",
       o.repetition_penalty, "need 0 < repetition_penalty < inf");
  need(std::isfinite(o.presence_penalty), "presence_penalty", o.presence_penalty,
       "need a finite number");
  need(std::isfinite(o.frequency_penalty), "frequency_penalty", o.frequency_penalty,
       "need a finite number");
  need(o.penalty_window >= -1, "penalty_window", o.penalty_window,
       "need penalty_window >= -1 (-1: all tokens)");
  need(o.typical_p > 0 && o.typical_p <= 1, "typical_p", o.typical_p, "need 0 < typical_p <= 1");
  need(o.top_n_sigma >= 0 && o.top_n_sigma < kInfinity, "top_n_sigma", o.top_n_sigma,
       "need 0 <= top_n_sigma < inf");
  need(o.xtc_probability >= 0 && o.xtc_probability <= 1, "xtc_probability", o.xtc_probability,
       "need 0 <= xtc_probability <= 1");
  need(o.xtc_threshold >= 0 && o.xtc_threshold <= 1, "xtc_threshold", o.xtc_threshold,
       "need 0 <= xtc_threshold <= 1");
  need(o.dynamic_range >= 0 && o.dynamic_range <= o.temperature, "dynamic_range", o.dynamic_range,
       "need 0 <= dynamic_range <= temperature");
  need(o.dynamic_exponent > 0 && o.dynamic_exponent < kInfinity, "dynamic_exponent",
       o.dynamic_exponent, "need 0 < dynamic_exponent < inf");
  need(o.dry_multiplier >= 0 && o.dry_multiplier < kInfinity, "dry_multiplier", o.dry_multiplier,
       "need 0 <= dry_multiplier < inf");
  need(o.dry_base >= 1 && o.dry_base < kInfinity, "dry_base", o.dry_base,
       "need 1 <= dry_base < inf");
  need(o.dry_allowed_length >= 0, "dry_allowed_length", o.dry_allowed_length,
       "need dry_allowed_length >= 0");
  need(o.dry_window >= -1, "dry_window", o.dry_window, "need dry_window >= -1 (-1: all tokens)");
  need(o.mirostat >= 0 && o.mirostat <= 2, "mirostat", o.mirostat, "need 0, 1 or 2");
  need(o.mirostat_tau >= 0 && o.mirostat_tau < kInfinity, "mirostat_tau", o.mirostat_tau,
       "need 0 <= mirostat_tau < inf");
  need(o.mirostat_eta >= 0 && o.mirostat_eta < kInfinity, "mirostat_eta", o.mirostat_eta,
       "need 0 <= mirostat_eta < inf");
  for (const auto& [token, bias] : o.logit_bias) {
    need(token >= 0, "logit_bias", token, "need token ids of at least 0");
    need(bias < kInfinity, "logit_bias", bias, "need finite numbers or -inf");
  }
}

static_assert(kSamplerWords == math::kSamplerWords);

std::array<uint32_t, kSamplerWords> sampler_words(const SamplerOptions& o) {
  check_sampler_options(o);
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

}  // namespace wick
