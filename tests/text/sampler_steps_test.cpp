// The steps of samplers whose options aren't basic, against definitions written with libm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "tests/expect_error.h"
#include "wick/serve/stop_text.h"
#include "wick/text/sampler.h"

namespace wick::text {
namespace {

using testing::HasSubstr;
using Logits = std::vector<float>;

SamplerOptions all_tokens() { return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}; }

Logits normal_logits(std::mt19937& random, size_t count) {
  std::normal_distribution<float> normal(0, 2);
  Logits logits(count);
  for (float& x : logits) x = normal(random);
  return logits;
}

/// The probabilities at temperature 1.
std::vector<double> probabilities(const Logits& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  for (const float x : logits) p.push_back(std::exp(static_cast<double>(x) - top));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double x : p) sum -= x > 0 ? x * std::log(x) : 0;
  return sum;
}

/// The tokens that are drawn in many draws.
std::set<int32_t> drawn(const SamplerOptions& options, const Logits& logits,
                        const std::vector<int32_t>& history = {}) {
  SamplerOptions hot = options;
  Sampler sampler(hot);
  std::set<int32_t> tokens;
  for (int i = 0; i < 20000; ++i) tokens.insert(sampler.sample(logits, history));
  return tokens;
}

/// Tokens of a set that are likely enough to be drawn in drawn() almost surely.
std::set<int32_t> likely(const std::set<int32_t>& tokens, const Logits& logits) {
  const std::vector<double> p = probabilities(logits);
  std::set<int32_t> result;
  for (const int32_t t : tokens) {
    if (p[static_cast<size_t>(t)] > 2e-3) result.insert(t);
  }
  return result;
}

void expect_set(const SamplerOptions& options, const Logits& logits,
                const std::set<int32_t>& expected) {
  const std::set<int32_t> got = drawn(options, logits);
  EXPECT_TRUE(std::includes(expected.begin(), expected.end(), got.begin(), got.end()));
  const std::set<int32_t> sure = likely(expected, logits);
  EXPECT_TRUE(std::includes(got.begin(), got.end(), sure.begin(), sure.end()));
}

std::set<int32_t> indices_where(size_t count, const auto& keep) {
  std::set<int32_t> result;
  for (size_t i = 0; i < count; ++i) {
    if (keep(i)) result.insert(static_cast<int32_t>(i));
  }
  return result;
}

// A bias of 0 makes the options not basic without any other effect.
TEST(SamplerSteps, GiveTheTokensOfBasicOptions) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    SamplerOptions basic{.temperature = static_cast<float>(random() % 4) * 0.5f,
                         .top_k = static_cast<int>(random() % 3) * 20,
                         .top_p = 1.0f - static_cast<float>(random() % 3) * 0.2f,
                         .min_p = static_cast<float>(random() % 3) * 0.05f,
                         .repetition_penalty = 1.0f + static_cast<float>(random() % 2),
                         .seed = random()};
    ASSERT_TRUE(basic.is_basic());
    SamplerOptions steps = basic;
    steps.logit_bias = {{3, 0.0f}};
    ASSERT_FALSE(steps.is_basic());
    Sampler one(basic), other(steps);
    const std::vector<int32_t> history = {1, 5, 5, 9};
    for (int i = 0; i < 20; ++i) {
      const Logits logits = normal_logits(random, 100);
      ASSERT_EQ(one.sample(logits, history), other.sample(logits, history)) << round;
    }
  }
}

TEST(SamplerSteps, LogitBias) {
  SamplerOptions o = all_tokens();
  o.logit_bias = {{2, -INFINITY}, {7, 100.0f}};
  EXPECT_EQ(drawn(o, Logits(10, 0.0f)), (std::set<int32_t>{7}));
  o.logit_bias = {{2, -INFINITY}};
  EXPECT_EQ(drawn(o, Logits(4, 0.0f)), (std::set<int32_t>{0, 1, 3}));
  o.logit_bias = {{1, 1.0f}, {1, 1.5f}};  // biases of one token add up
  o.temperature = 0;
  EXPECT_EQ(Sampler(o).sample(Logits{2, 0, 1}), 1);
}

TEST(SamplerSteps, TypicalP) {
  std::mt19937 random(2);
  for (const float wanted : {0.2f, 0.5f, 0.9f}) {
    const Logits logits = normal_logits(random, 40);
    const std::vector<double> p = probabilities(logits);
    const double expected = entropy(p);
    std::vector<size_t> by_distance(p.size());
    std::iota(by_distance.begin(), by_distance.end(), 0);
    const auto distance = [&](size_t i) { return std::fabs(-std::log(p[i]) - expected); };
    std::sort(by_distance.begin(), by_distance.end(),
              [&](size_t a, size_t b) { return distance(a) < distance(b); });
    std::set<int32_t> kept;
    double sum = 0;
    for (const size_t i : by_distance) {
      kept.insert(static_cast<int32_t>(i));
      sum += p[i];
      if (sum > static_cast<double>(wanted)) break;
    }
    SamplerOptions o = all_tokens();
    o.typical_p = wanted;
    expect_set(o, logits, kept);
  }
}

/// A penalty makes a logit -inf: the token has no weight, and no part in the entropy.
TEST(SamplerSteps, EntropyWithoutExcludedTokens) {
  SamplerOptions o = all_tokens();
  o.typical_p = 0.04F;
  o.repetition_penalty = 1e38F;
  const Logits logits = {0, -3, -10};
  // The tokens' entropy is 0.19. The first has 0.05, the second 3.05 nats.
  EXPECT_EQ(std::set<int32_t>{0}, drawn(o, logits, {2}));
}

/// Penalties and biases make logits that float can't hold.
TEST(SamplerSteps, LogitsStayFinite) {
  SamplerOptions o = all_tokens();
  o.repetition_penalty = 1e-38F;
  o.logit_bias = {{1, 0.5F}};
  EXPECT_EQ(std::set<int32_t>{0}, drawn(o, {10, 0}, {0}));
  o = all_tokens();
  o.logit_bias = {{1, 3e38F}};
  EXPECT_EQ(std::set<int32_t>{1}, drawn(o, {10, 3e38F, 0}));
}

TEST(SamplerSteps, TopNSigma) {
  std::mt19937 random(3);
  const Logits logits = normal_logits(random, 60);
  double mean = 0, squares = 0;
  for (const float x : logits) mean += static_cast<double>(x) / 60;
  for (const float x : logits) squares += std::pow(static_cast<double>(x) - mean, 2) / 60;
  const double top = *std::max_element(logits.begin(), logits.end());
  SamplerOptions o = all_tokens();
  o.top_n_sigma = 1;
  expect_set(o, logits, indices_where(60, [&](size_t i) {
               return static_cast<double>(logits[i]) >= top - std::sqrt(squares);
             }));
}

TEST(SamplerSteps, Xtc) {
  const Logits logits = {2, 1.5f, 1, 0, -1, -2};
  const std::vector<double> p = probabilities(logits);
  SamplerOptions o = all_tokens();
  o.xtc_probability = 1;
  o.xtc_threshold = 0.15f;  // tokens 0, 1 and 2
  ASSERT_GT(p[2], 0.15);
  ASSERT_LT(p[3], 0.15);
  EXPECT_EQ(drawn(o, logits), (std::set<int32_t>{2, 3, 4, 5}));
  o.xtc_threshold = 0.3f;  // one likely token stays
  EXPECT_EQ(drawn(o, logits).count(0), 1U);
  o.xtc_threshold = 0.15f;
  o.xtc_probability = 0.25f;  // in a quarter of the draws
  Sampler sampler(o);
  int top = 0;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) top += sampler.sample(logits) == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(top) / kDraws, 0.75 * p[0], 0.01);
}

/// The longest sequence that ends the history, occurred before, and was followed by the token.
int repeated(const std::vector<int32_t>& history, int32_t token, int most) {
  const auto n = static_cast<int>(history.size());
  int best = 0;
  for (int i = 0; i + 1 < n; ++i) {
    if (history[static_cast<size_t>(i) + 1] != token) continue;
    int length = 0;
    while (length <= i && length < most &&
           history[static_cast<size_t>(i - length)] ==
               history[static_cast<size_t>(n - 1 - length)]) {
      ++length;
    }
    best = std::max(best, length);
  }
  return best;
}

TEST(SamplerSteps, Dry) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> history;
    for (int i = 0; i < 60; ++i) history.push_back(static_cast<int32_t>(random() % 3));
    const bool breaks = round % 2 == 1;
    SamplerOptions o = all_tokens();
    o.temperature = 0;
    o.dry_multiplier = 0.5f;
    o.dry_base = 1.5f;
    if (breaks) o.dry_breakers = {2};
    int unbroken = 0;
    while (breaks && unbroken < 60 && history[static_cast<size_t>(59 - unbroken)] != 2) ++unbroken;
    Logits logits = normal_logits(random, 4), expected = logits;
    for (int32_t t = 0; t < 4; ++t) {
      if (breaks && t == 2) continue;
      const int length = repeated(history, t, breaks ? unbroken : 1000);
      if (length < 2 || length == 0) continue;
      expected[static_cast<size_t>(t)] -= static_cast<float>(0.5 * std::pow(1.5, length - 2));
    }
    const auto best = std::max_element(expected.begin(), expected.end()) - expected.begin();
    ASSERT_EQ(Sampler(o).sample(logits, history), best) << round;
  }
  // Nothing is penalised without a history, or after a breaker.
  SamplerOptions o = all_tokens();
  o.temperature = 0;
  o.dry_multiplier = 10;
  EXPECT_EQ(Sampler(o).sample(Logits{1, 2}), 1);
  o.dry_breakers = {0};
  EXPECT_EQ(Sampler(o).sample(Logits{1, 2}, std::vector<int32_t>{1, 1, 1, 0, 1, 1, 1, 0}), 1);
}

TEST(SamplerSteps, DynamicTemperature) {
  const Logits logits = {2, 1, 0, -1};
  const double part = entropy(probabilities(logits)) / std::log(4.0);
  SamplerOptions o = all_tokens();
  o.temperature = 1.5f;
  o.dynamic_range = 1;
  o.dynamic_exponent = 2;
  const double temperature = 0.5 + 2 * part * part;
  Logits heated;
  for (const float x : logits) heated.push_back(static_cast<float>(x / temperature));
  const std::vector<double> p = probabilities(heated);
  Sampler sampler(o);
  std::vector<int> counts(4);
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(sampler.sample(logits))];
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i] / double{kDraws}, p[i], 0.01) << i;
}

// The surprise is measured among the tokens that are kept, so its mean is the entropy of the drawn
// tokens.
TEST(SamplerSteps, Mirostat) {
  std::mt19937 random(5);
  const Logits logits = normal_logits(random, 500);
  for (const int version : {1, 2}) {
    for (const float target : {3.0f, 6.0f}) {
      SamplerOptions o = all_tokens();
      o.mirostat = version;
      o.mirostat_tau = target;
      Sampler sampler(o);
      std::vector<double> counts(logits.size());
      constexpr int kWarm = 200, kDraws = 8000;
      for (int i = 0; i < kWarm + kDraws; ++i) {
        const auto token = static_cast<size_t>(sampler.sample(logits));
        if (i >= kWarm) counts[token] += 1.0 / kDraws;
      }
      EXPECT_NEAR(entropy(counts) / std::log(2.0), static_cast<double>(target), 0.4)
          << version << " " << target;
    }
  }
}

// Products of the largest options exceed f32.
TEST(SamplerSteps, MirostatsLimitStaysFinite) {
  std::mt19937 random(5);
  const Logits logits = normal_logits(random, 50);
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const int version : {1, 2}) {
    for (const float target : {0.0f, 1.0f, kMost}) {
      SamplerOptions o = all_tokens();
      o.mirostat = version;
      o.mirostat_tau = target;
      o.mirostat_eta = kMost;
      Sampler sampler(o);
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(std::isfinite(sampler.surprise_limit())) << version << " " << target;
        EXPECT_LT(sampler.sample(logits), 50);
      }
    }
  }
  Sampler sampler(all_tokens());
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    EXPECT_THAT(test::error_of([&] { sampler.set_surprise_limit(bad); }),
                HasSubstr("surprise_limit"));
  }
}

TEST(SamplerSteps, OrderIsSettable) {
  const Logits logits = {3, 2, 1, 0};
  SamplerOptions o = all_tokens();
  o.temperature = 10;
  o.top_p = 0.8f;
  o.order = {SamplerStep::top_p, SamplerStep::temperature};
  EXPECT_EQ(drawn(o, logits), (std::set<int32_t>{0, 1}));
  o.order = {SamplerStep::temperature, SamplerStep::top_p};
  EXPECT_EQ(drawn(o, logits), (std::set<int32_t>{0, 1, 2, 3}));
  o.order = {};
  EXPECT_EQ(drawn(o, logits), (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(parse_sampler_step("xtc"), SamplerStep::xtc);
  EXPECT_EQ(test::error_of([] { parse_sampler_step("best"); }),
            "sampler: unknown step: 'best': use penalties, dry, top_n_sigma, top_k, typical_p, "
            "top_p, min_p, xtc, temperature");
}

TEST(SamplerSteps, BadOptionsAndLogits) {
  const auto error = [](auto change) {
    SamplerOptions o = all_tokens();
    change(o);
    return test::error_of([&] { Sampler{o}; });
  };
  for (const float bad : {-1.0f, NAN, INFINITY}) {
    EXPECT_THAT(error([=](auto& o) { o.typical_p = bad; }), HasSubstr("typical_p"));
    EXPECT_THAT(error([=](auto& o) { o.top_n_sigma = bad; }), HasSubstr("top_n_sigma"));
    EXPECT_THAT(error([=](auto& o) { o.xtc_probability = bad; }), HasSubstr("xtc_probability"));
    EXPECT_THAT(error([=](auto& o) { o.xtc_threshold = bad; }), HasSubstr("xtc_threshold"));
    EXPECT_THAT(error([=](auto& o) { o.dynamic_range = bad; }), HasSubstr("dynamic_range"));
    EXPECT_THAT(error([=](auto& o) { o.dynamic_exponent = bad; }), HasSubstr("dynamic_exponent"));
    EXPECT_THAT(error([=](auto& o) { o.dry_multiplier = bad; }), HasSubstr("dry_multiplier"));
    EXPECT_THAT(error([=](auto& o) { o.dry_base = bad; }), HasSubstr("dry_base"));
    EXPECT_THAT(error([=](auto& o) { o.mirostat_tau = bad; }), HasSubstr("mirostat_tau"));
    EXPECT_THAT(error([=](auto& o) { o.mirostat_eta = bad; }), HasSubstr("mirostat_eta"));
  }
  EXPECT_THAT(error([](auto& o) { o.dynamic_range = 1.5f; }), HasSubstr("dynamic_range"));
  EXPECT_THAT(error([](auto& o) { o.mirostat = 3; }), HasSubstr("mirostat"));
  EXPECT_THAT(error([](auto& o) { o.dry_allowed_length = -1; }), HasSubstr("dry_allowed_length"));
  EXPECT_THAT(error([](auto& o) { o.dry_window = -2; }), HasSubstr("dry_window"));
  EXPECT_THAT(error([](auto& o) { o.logit_bias = {{-1, 1.0f}}; }), HasSubstr("logit_bias"));
  EXPECT_THAT(error([](auto& o) { o.logit_bias = {{1, NAN}}; }), HasSubstr("logit_bias"));
  SamplerOptions o = all_tokens();
  o.logit_bias = {{0, -INFINITY}, {1, -INFINITY}};
  EXPECT_THAT(test::error_of([&] {
                Sampler(o).sample(Logits{1, 2});
              }),
              HasSubstr("every logit is -inf"));
  EXPECT_THAT(test::error_of([&] { Sampler(o).sample(Logits{1, NAN}); }), HasSubstr("bad logit"));
  EXPECT_THAT(test::error_of([&] { sampler_words(o); }), HasSubstr("need the host's sampler"));
}

TEST(StopText, HoldsBackWhatMayBeAStopString) {
  using serve::StopText;
  StopText stop({"</end>", "STOP", ""});
  EXPECT_EQ(stop.push("a <"), "a ");
  EXPECT_EQ(stop.push("b"), "<b");
  EXPECT_EQ(stop.push("</en"), "");
  EXPECT_EQ(stop.push("x ST"), "</enx ");
  EXPECT_FALSE(stop.found());
  EXPECT_EQ(stop.push("OP more"), "");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.push("x"), "");
  EXPECT_EQ(stop.finish(), "");
  StopText end({"abc"});
  EXPECT_EQ(end.push("xab"), "x");
  EXPECT_EQ(end.finish(), "ab");
  StopText first({"bc", "abcd"});
  EXPECT_EQ(first.push("xabcd"), "x");  // the stop string that begins first
  StopText none({});
  EXPECT_EQ(none.push("text"), "text");
}

}  // namespace
}  // namespace wick::text
