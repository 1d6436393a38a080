// Samplers that read some tokens of a source choose the tokens that all logits give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/expect_error.h"
#include "tests/test_devices.h"
#include "wick/base/sampling/step_sampler.h"
#include "wick/math/sampling.h"
#include "wick/models/tensor_logits.h"

namespace wick::models {
namespace {

using testing::HasSubstr;
using Logits = std::vector<float>;

/// A source whose top() always gives all tokens, so that nothing is cut off or summed.
class WholeLogits final : public LogitSource {
 public:
  explicit WholeLogits(const Logits& logits) : logits_(logits) {}
  size_t size() const override { return logits_.size(); }
  bool good() override { return true; }
  std::vector<float> all() override { return logits_; }
  std::vector<float> at(std::span<const int32_t> ids) override {
    std::vector<float> values;
    for (const int32_t id : ids) values.push_back(logits_.at(static_cast<size_t>(id)));
    return values;
  }
  std::vector<Token> top(size_t) override {
    std::vector<Token> tokens;
    for (size_t i = 0; i < logits_.size(); ++i) {
      tokens.push_back({logits_[i], static_cast<int32_t>(i)});
    }
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const Token& a, const Token& b) { return a.logit > b.logit; });
    return tokens;
  }
  Sums below(Token, double, double) override { return {}; }

 private:
  Logits logits_;
};

/// Logits of many shapes: flat, peaked, with equal values, with excluded tokens.
Logits random_logits(std::mt19937& random, size_t count) {
  const float deviation = std::array{0.3f, 2.0f, 6.0f}[random() % 3];
  std::normal_distribution<float> normal(0, deviation);
  const bool rounded = random() % 3 == 0, excludes = random() % 3 == 0;
  Logits logits(count);
  for (float& x : logits) {
    x = normal(random);
    if (rounded) x = std::round(x * 2) / 2;
    if (excludes && random() % 4 == 0) x = -INFINITY;
  }
  logits[random() % count] = -0.0f;
  return logits;
}

/// A chain of steps in any order, with some of them at neutral values.
SamplerOptions random_options(std::mt19937& random, size_t count) {
  const auto some = [&] { return random() % 3 == 0; };
  SamplerOptions o{.temperature = static_cast<float>(random() % 5) * 0.4f,
                   .top_k = some() ? static_cast<int>(1 + random() % 60) : 0,
                   .top_p = some() ? 0.7f : 1.0f,
                   .min_p = some() ? 0.02f : 0.0f,
                   .repetition_penalty = some() ? 1.3f : 1.0f,
                   .presence_penalty = some() ? -2.0f : 0.0f,
                   .penalty_window = some() ? -1 : 20,
                   .seed = random()};
  if (some()) o.typical_p = 0.6f;
  if (random() % 8 == 0) o.top_n_sigma = 1.5f;
  if (some()) o.xtc_probability = 0.5f, o.xtc_threshold = 0.04f;
  if (some()) o.dynamic_range = o.temperature / 2;
  if (some()) o.dry_multiplier = 3;
  if (random() % 5 == 0) o.mirostat = 1 + static_cast<int>(random() % 2);
  for (int i = 0; some() && i < 5; ++i) {
    const float bias = i == 0 ? -INFINITY : 2.0f - static_cast<float>(i);
    o.logit_bias.emplace_back(static_cast<int32_t>(random() % count), bias);
  }
  std::shuffle(o.order.begin(), o.order.end(), random);
  o.order.resize(o.order.size() - random() % 3);
  return o;
}

std::vector<int32_t> random_history(std::mt19937& random, size_t count) {
  std::vector<int32_t> history;
  for (size_t i = 0; i < random() % 60; ++i) {
    history.push_back(static_cast<int32_t>(random() % (count < 100 ? count : 12)));
  }
  return history;
}

/// Samples some tokens of random chains from a source and from all logits.
template <class Source>
void expect_equal_tokens(int rounds, size_t count, const Source& source_of) {
  std::mt19937 random(static_cast<unsigned>(count));
  for (int round = 0; round < rounds; ++round) {
    const SamplerOptions o = random_options(random, count);
    StepSampler one(o), other(o);
    for (int i = 0; i < 4; ++i) {
      const Logits logits = random_logits(random, count);
      const std::vector<int32_t> history = random_history(random, count);
      WholeLogits whole(logits);
      auto source = source_of(logits);
      ASSERT_EQ(one.sample(source, history), other.sample(whole, history)) << round;
      ASSERT_EQ(one.draw_count(), other.draw_count());
      ASSERT_EQ(one.surprise_limit(), other.surprise_limit());
    }
  }
}

TEST(LogitSource, SpansGiveTheTokensOfAllLogits) {
  for (const size_t count : {30U, 300U, 3000U, 20000U}) {
    expect_equal_tokens(count > 10000 ? 20 : 150, count,
                        [](const Logits& logits) { return SpanLogits(logits); });
  }
}

TEST(LogitSource, TensorsGiveTheTokensOfAllLogits) {
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const bool emulated = device != Device::cpu();
    expect_equal_tokens(emulated ? 40 : 100, 3000, [&](const Logits& logits) {
      return TensorLogits(Tensor::from(logits, {static_cast<int64_t>(logits.size())}, device));
    });
  }
}

TEST(LogitSource, SumsAreThoseOfTheDefinition) {
  std::mt19937 random(7);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    Logits logits = random_logits(random, 500);
    logits[3] = logits[40] = 1.25f;
    const double top = *std::max_element(logits.begin(), logits.end());
    const LogitSource::Token last{1.25f, 3};
    LogitSource::Sums expected;
    for (size_t i = 0; i < logits.size(); ++i) {
      const bool ranks_below = logits[i] < 1.25f || (logits[i] == 1.25f && i > 3);
      if (!ranks_below || std::isinf(logits[i])) continue;
      const double less = (static_cast<double>(logits[i]) - top) / 0.7;
      const uint64_t weight = math::token_weight(less);
      ++expected.count;
      expected.weights += weight;
      expected.distances += math::weighted_distance(weight, less);
    }
    TensorLogits tensor(Tensor::from(logits, {500}, device));
    SpanLogits span(logits);
    for (LogitSource* source : std::initializer_list<LogitSource*>{&tensor, &span}) {
      const LogitSource::Sums got = source->below(last, top, 0.7);
      EXPECT_EQ(got.count, expected.count);
      EXPECT_EQ(got.weights, expected.weights);
      EXPECT_EQ(got.distances, expected.distances);
    }
  }
}

// With top_k, the candidates are as many as it keeps and the options change. Otherwise their number
// depends on the logits; here they are those of a model that is sure of its next token.
TEST(LogitSource, FewTokensAreCopied) {
  constexpr int64_t kCount = 50000;
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, 3);
  Logits logits(kCount);
  for (float& x : logits) x = normal(random);
  logits[77] = 25;
  const std::vector<int32_t> history = {1, 2, 3, 1, 2, 3, 1, 2};
  SamplerOptions off{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
  const auto with = [&](auto edit) {
    SamplerOptions o = off;
    edit(o);
    return o;
  };
  const std::pair<const char*, SamplerOptions> chains[] = {
      {"dry and top_k", with([](auto& o) { o.dry_multiplier = 2, o.top_k = 40; })},
      {"bias and greedy", with([](auto& o) {
         o.temperature = 0, o.logit_bias = {{5, 1.0f}};
       })},
      {"typical_p", with([](auto& o) { o.typical_p = 0.9f; })},
      {"xtc", with([](auto& o) { o.xtc_probability = 1; })},
      {"dynamic temperature", with([](auto& o) { o.dynamic_range = 0.5f; })},
      {"mirostat", with([](auto& o) { o.mirostat = 2; })},
      {"top_p, then penalties", with([](auto& o) {
         o.top_p = 0.9f, o.repetition_penalty = 1.5f;
         o.order = {SamplerStep::top_p, SamplerStep::penalties, SamplerStep::temperature};
       })}};
  for (const Device device : test::cpu_and_devices()) {
    const Tensor on_device = Tensor::from(logits, {kCount}, device);
    for (const auto& [name, options] : chains) {
      SCOPED_TRACE(std::string(name) + " " + device.str());
      TensorLogits source(on_device);
      WholeLogits whole(logits);
      EXPECT_EQ(StepSampler(options).sample(source, history),
                StepSampler(options).sample(whole, history));
      EXPECT_LT(source.bytes_copied(), 4096U);
    }
  }
}

TEST(LogitSource, BadLogits) {
  for (const Device device : test::cpu_and_devices()) {
    for (const float bad : {NAN, INFINITY}) {
      Logits logits(2000, 1.0f);
      logits[700] = bad;
      TensorLogits source(Tensor::from(logits, {2000}, device));
      EXPECT_THAT(test::error_of([&] { StepSampler({}).sample(source); }),
                  HasSubstr("for token 700: need finite numbers or -inf"));
    }
    TensorLogits none(Tensor::from(Logits(2000, -INFINITY), {2000}, device));
    EXPECT_THAT(test::error_of([&] { StepSampler({}).sample(none); }),
                HasSubstr("every logit is -inf: 2000 logits"));
  }
}

}  // namespace
}  // namespace wick::models
