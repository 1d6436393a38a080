// The options of commands that sample, and the model file's recommendations for them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>
#include <utility>

#include "common.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::cli {

void SamplingOptions::add_to(CLI::App& command) {
  command_ = &command;
  text::SamplerOptions& s = sampler;
  auto option = [&](const char* name, auto& value, const char* help) {
    return add_number(command, name, value, help)->capture_default_str()->group("Sampling");
  };
  option("--temp", s.temperature, "Temperature; 0 always chooses the most likely token");
  option("--top-k", s.top_k, "Keep the k most likely tokens; 0 keeps all");
  option("--top-p", s.top_p, "Keep the most likely tokens that together reach this probability");
  option("--min-p", s.min_p, "Drop tokens less likely than this fraction of the most likely token");
  option("--repetition-penalty", s.repetition_penalty, "Divides logits of recent tokens; 1 is off");
  option("--presence-penalty", s.presence_penalty, "Subtracted from logits of recent tokens");
  option("--frequency-penalty", s.frequency_penalty, "Subtracted once per recent occurrence");
  option("--penalty-window", s.penalty_window, "Number of recent tokens; -1: all tokens");
  option("--seed", s.seed, "Random seed; the same seed gives the same text on every machine");
  option("--typical-p", s.typical_p,
         "Keep tokens of this probability with the most typical surprise");
  option("--top-n-sigma", s.top_n_sigma,
         "Keep logits within this many standard deviations of the largest; 0 is off");
  option("--xtc-probability", s.xtc_probability,
         "Probability of dropping all likely tokens except the least likely of them");
  option("--xtc-threshold", s.xtc_threshold, "Probability from which xtc sees a token as likely");
  option("--dynamic-range", s.dynamic_range, "Vary the temperature by +- this with the entropy");
  option("--dynamic-exponent", s.dynamic_exponent, "Exponent of the entropy's influence");
  option("--dry-multiplier", s.dry_multiplier, "Penalty of tokens that continue a repetition");
  option("--dry-base", s.dry_base, "Base of the growth of that penalty with the length");
  option("--dry-allowed-length", s.dry_allowed_length, "Length of repetitions without a penalty");
  option("--dry-window", s.dry_window, "Number of recent tokens for dry; -1: all tokens");
  option("--mirostat", s.mirostat, "Mirostat version 1 or 2, in place of top-k, top-p and min-p");
  option("--mirostat-tau", s.mirostat_tau, "Mirostat's target surprise in bits");
  option("--mirostat-eta", s.mirostat_eta, "Mirostat's learning rate");
  const auto texts = [&](const char* name, auto& value, const char* help) {
    return require_value(command.add_option(name, value, help))->group("Sampling");
  };
  texts("--dry-breaker", breakers, "Texts that end repetitions (default: newline : \" *)")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  texts("--logit-bias", biases, "Add to the logit of a token: ID=NUMBER; -inf excludes it")
      ->type_name("ID=N")
      ->expected(1)
      ->take_all();
  texts("--samplers", steps, "Steps and their order, separated by commas")->type_name("STEPS");
}

text::SamplerOptions SamplingOptions::with_steps() const {
  text::SamplerOptions options = sampler;
  if (!steps.empty()) {
    options.order.clear();
    for (const std::string_view step : split(steps, ',')) {
      options.order.push_back(parse_sampler_step(step));
    }
  }
  for (const std::string& bias : biases) {
    const size_t equals = bias.find('=');
    int32_t token = 0;
    float value = 0;
    const char* const end = bias.data() + bias.size();
    const bool split = equals != std::string::npos;
    const auto id = std::from_chars(bias.data(), bias.data() + (split ? equals : 0), token);
    const auto number = std::from_chars(split ? bias.data() + equals + 1 : end, end, value);
    if (!split || id.ec != std::errc{} || id.ptr != bias.data() + equals ||
        number.ec != std::errc{} || number.ptr != end) {
      throw Error("--logit-bias", "not a bias", fmt::format("'{}'", printable(bias)),
                  "need ID=NUMBER");
    }
    options.logit_bias.emplace_back(token, value);
  }
  return options;
}

text::SamplerOptions SamplingOptions::for_vocabulary(const text::Tokenizer& tokenizer) const {
  return complete(with_steps(), tokenizer);
}

text::SamplerOptions SamplingOptions::for_vocabulary(const text::Tokenizer& tokenizer,
                                                     text::SamplerOptions saved) const {
  const text::SamplerOptions given = with_steps();
  for_each_option(saved, [&](std::string_view name, auto& to) {
    if (!was_given(name)) return;
    for_each_option(given, [&](std::string_view other, const auto& from) {
      if constexpr (std::is_same_v<decltype(to), std::remove_cvref_t<decltype(from)>&>) {
        if (other == name) to = from;
      }
    });
  });
  if (was_given("samplers")) saved.order = given.order;
  if (was_given("logit_bias")) saved.logit_bias = given.logit_bias;
  if (was_given("dry_breaker")) saved.dry_breakers.clear();
  return complete(std::move(saved), tokenizer);
}

text::SamplerOptions SamplingOptions::complete(text::SamplerOptions options,
                                               const text::Tokenizer& tokenizer) const {
  for (const auto& [token, bias] : options.logit_bias) {
    if (token >= 0 && token < tokenizer.vocab_size()) continue;
    throw Error("--logit-bias", "token id out of range", fmt::format("{}", token),
                fmt::format("the vocabulary has {} tokens", tokenizer.vocab_size()));
  }
  if (options.dry_multiplier > 0 && options.dry_breakers.empty()) {
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string_view piece = tokenizer.piece(id);
      const bool breaks = std::any_of(breakers.begin(), breakers.end(), [&](const auto& text) {
        return piece.find(text) != std::string_view::npos;
      });
      if (breaks) options.dry_breakers.push_back(id);
    }
  }
  return options;
}

bool SamplingOptions::was_given(std::string_view name) const {
  std::string option = name == "temperature" ? "--temp" : fmt::format("--{}", name);
  std::replace(option.begin(), option.end(), '_', '-');
  return command_->get_option(option)->count() > 0;
}

void SamplingOptions::take_defaults(const serve::SamplingDefaults& defaults) {
  for (const std::string& warning : defaults.warnings) warn(warning);
  serve::for_each_recommended([&](const char* name, auto member, const char*) {
    if (!defaults.recommends(name) || was_given(name)) return;
    sampler.*member = defaults.options.*member;
    recommended += fmt::format("{}{}", recommended.empty() ? "" : " ", name);
  });
}

}  // namespace wick::cli
