#include "wick/text/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "wick/base/error.h"
#include "wick/math/random.h"

namespace wick::text {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The definition in sampler.h, implemented naively: sorts all tokens, uses libm, and makes one pass
// per filter.
class NaiveSampler {
 public:
  explicit NaiveSampler(const SamplerOptions& options) : o_(options) {}

  int32_t sample(std::vector<float> logits, std::vector<int32_t> history) {
    if (o_.penalty_window >= 0) {
      while (history.size() > static_cast<size_t>(o_.penalty_window)) {
        history.erase(history.begin());
      }
    }
    std::map<int32_t, int> counts;
    for (const auto id : history) ++counts[id];
    for (const auto& [id, count] : counts) {
      float& l = logits[static_cast<size_t>(id)];
      l = l > 0 ? l / o_.repetition_penalty : l * o_.repetition_penalty;
      l -= static_cast<float>(count) * o_.frequency_penalty;
      l -= o_.presence_penalty;
    }
    std::vector<int32_t> ids;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > -kInf) ids.push_back(static_cast<int32_t>(i));
    }
    const auto logit = [&](int32_t id) {
      return static_cast<double>(logits[static_cast<size_t>(id)]);
    };
    std::stable_sort(ids.begin(), ids.end(), [&](auto a, auto b) { return logit(a) > logit(b); });
    if (o_.temperature == 0) return ids[0];
    if (o_.top_k > 0 && ids.size() > static_cast<size_t>(o_.top_k)) {
      ids.resize(static_cast<size_t>(o_.top_k));
    }
    const double top = logit(ids[0]);
    double total = 0;
    for (const auto id : ids) total += std::exp(logit(id) - top);
    if (o_.top_p < 1) {
      double sum = 0;
      size_t n = 0;
      while (n < ids.size() && sum < static_cast<double>(o_.top_p) * total) {
        sum += std::exp(logit(ids[n++]) - top);
      }
      ids.resize(n);
    }
    while (std::exp(logit(ids.back()) - top) < static_cast<double>(o_.min_p)) ids.pop_back();
    kept = ids;
    const double t = static_cast<double>(o_.temperature);
    total = 0;
    for (const auto id : ids) total += std::exp((logit(id) - top) / t);
    const auto r = math::philox(o_.seed, 0, draws_++);
    const double point = std::ldexp(r.v[0], -32) + std::ldexp(r.v[1], -64);
    double sum = 0;
    for (const auto id : ids) {
      sum += std::exp((logit(id) - top) / t);
      if (sum > point * total) return id;
    }
    return ids.back();
  }

  std::vector<int32_t> kept;

 private:
  SamplerOptions o_;
  uint64_t draws_ = 0;
};

std::vector<float> random_logits(std::mt19937& rng, size_t count) {
  std::vector<float> logits(count);
  // Coarse steps make ties likely.
  const float step = rng() % 2 == 0 ? 0.25f : 0.001f;
  for (float& l : logits) {
    l = step * static_cast<float>(static_cast<int>(rng() % 12000) - 6000) *
        (step > 0.1f ? 0.01f : 1.0f);
    if (rng() % 20 == 0) l = -kInf;
  }
  logits[rng() % count] = 1;
  return logits;
}

void compare(const SamplerOptions& options, std::mt19937& rng, size_t count) {
  Sampler sampler(options);
  NaiveSampler naive(options);
  std::vector<int32_t> history;
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> logits = random_logits(rng, count);
    const int32_t expected = naive.sample(logits, history);
    ASSERT_EQ(sampler.sample(logits, history), expected)
        << "draw " << i << " of " << count << ": T " << options.temperature << " k "
        << options.top_k << " p " << options.top_p << " min_p " << options.min_p;
    history.push_back(expected);
    history.push_back(static_cast<int32_t>(rng() % count));
  }
}

SamplerOptions plain() {
  SamplerOptions o;
  o.temperature = 1;
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 0;
  return o;
}

constexpr size_t kSizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 300, 1024, 5000};

TEST(Sampler, EachFilterFollowsTheDefinition) {
  std::mt19937 rng(1);
  for (const size_t count : kSizes) {
    compare(plain(), rng, count);
    for (const int k : {1, 2, 5, 40, 64, 1000, 1 << 30}) {
      SamplerOptions o = plain();
      o.top_k = k;
      compare(o, rng, count);
    }
    for (const float p : {1e-6f, 0.1f, 0.5f, 0.9f, 0.999f}) {
      SamplerOptions o = plain();
      o.top_p = p;
      compare(o, rng, count);
      o = plain();
      o.min_p = p;
      compare(o, rng, count);
    }
    for (const float t : {0.0f, 1e-6f, 0.1f, 0.7f, 1.5f, 100.0f}) {
      SamplerOptions o = plain();
      o.temperature = t;
      compare(o, rng, count);
    }
  }
}

TEST(Sampler, PenaltiesFollowTheDefinition) {
  std::mt19937 rng(2);
  for (const size_t count : kSizes) {
    for (const int window : {-1, 0, 1, 7, 64}) {
      SamplerOptions o = plain();
      o.penalty_window = window;
      o.repetition_penalty = 1.3f;
      compare(o, rng, count);
      o.repetition_penalty = 1;
      o.presence_penalty = 0.7f;
      compare(o, rng, count);
      o.frequency_penalty = -0.4f;
      o.temperature = 0;
      compare(o, rng, count);
    }
  }
}

TEST(Sampler, TogetherTheyFollowTheDefinition) {
  std::mt19937 rng(3);
  const auto pick = [&](std::initializer_list<float> values) {
    return values.begin()[rng() % values.size()];
  };
  for (int round = 0; round < 300; ++round) {
    SamplerOptions o;
    o.temperature = pick({0.2f, 0.8f, 1.0f, 2.0f});
    o.top_k = static_cast<int>(pick({0, 3, 40, 200}));
    o.top_p = pick({0.3f, 0.95f, 1.0f});
    o.min_p = pick({0.0f, 0.05f, 0.5f, 1.0f});
    o.repetition_penalty = pick({1.0f, 1.1f, 0.9f});
    o.presence_penalty = pick({0.0f, 0.5f});
    o.frequency_penalty = pick({0.0f, 0.2f});
    o.seed = rng();
    compare(o, rng, kSizes[rng() % std::size(kSizes)]);
  }
}

// Compares the frequencies of 100,000 draws with the softmax. Chi-squared with 9 degrees of freedom
// stays below 27.9 in 99.9 % of samples; the seed is fixed.
TEST(Sampler, Distribution) {
  const std::vector<float> logits = {0, 1, 2, -1, 0.5f, 1.5f, -2, 0, 1, 0.25f};
  for (const float temperature : {0.5f, 1.0f, 3.0f}) {
    SamplerOptions o = plain();
    o.temperature = temperature;
    o.seed = 42;
    Sampler sampler(o);
    constexpr int kDraws = 100000;
    std::vector<int> counts(logits.size());
    for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(sampler.sample(logits))];
    double total = 0, chi = 0;
    for (const float l : logits) total += std::exp(static_cast<double>(l / temperature));
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected =
          kDraws * std::exp(static_cast<double>(logits[i] / temperature)) / total;
      chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi, 27.9) << "temperature " << temperature;
  }
}

// These draws are equal on every machine. A change would change the text of every published seed.
TEST(Sampler, PinnedDraws) {
  std::vector<float> logits(49152);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * 2654435761u % 65536) * 0x1p-12f;
  }
  const auto draw = [&](const SamplerOptions& o) {
    Sampler sampler(o);
    std::vector<int32_t> ids;
    for (int i = 0; i < 10; ++i) ids.push_back(sampler.sample(logits, ids));
    return ids;
  };
  SamplerOptions o;
  o.seed = 2024;
  EXPECT_THAT(draw(o), ::testing::ElementsAre(29826, 31997, 41939, 46910, 41310, 12742, 37597, 2800,
                                              17084, 3429));
  o.seed = 0xffffffffffffffffu;
  o.repetition_penalty = 1.2f;
  EXPECT_THAT(draw(o), ::testing::ElementsAre(49081, 4971, 46281, 5600, 34797, 12742, 36968, 41939,
                                              1258, 9942));
  o = plain();
  o.temperature = 0.7f;
  EXPECT_THAT(draw(o), ::testing::ElementsAre(9740, 45212, 30455, 47562, 24312, 1117, 25263, 40338,
                                              4586, 20616));
}

TEST(Sampler, Greedy) {
  SamplerOptions o;
  o.temperature = 0;
  Sampler sampler(o);
  for (const size_t count : {1u, 15u, 16u, 17u, 1023u, 1024u, 1025u, 5000u}) {
    for (size_t at = 0; at < count; at += 1 + count / 37) {
      std::vector<float> logits(count, -1.0f);
      logits[at] = logits.back() = 2.0f;
      logits[0] = std::max(logits[0], -kInf);
      EXPECT_EQ(sampler.sample(logits), static_cast<int32_t>(at));
    }
  }
  EXPECT_EQ(sampler.sample(std::vector<float>{-1.0f, -0.0f, 0.0f}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-kInf, -3.0f, -kInf}), 1);
}

TEST(Sampler, BadLogits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0f, 0.8f}) {
    SamplerOptions o;
    o.temperature = temperature;
    o.presence_penalty = 0.1f;
    Sampler sampler(o);
    for (const float bad : {nan, -nan, kInf}) {
      for (const size_t at : {0u, 5u, 63u, 64u, 99u}) {
        std::vector<float> logits(100, 0.5f);
        logits[at] = bad;
        try {
          sampler.sample(logits);
          ADD_FAILURE();
        } catch (const Error& e) {
          EXPECT_THAT(e.what(), ::testing::StartsWith("sample: bad logit: "));
          EXPECT_THAT(e.what(), ::testing::HasSubstr("for token " + std::to_string(at) + ":"));
        }
      }
    }
    EXPECT_THROW(sampler.sample(std::vector<float>(7, -kInf)), Error);
    EXPECT_THROW(sampler.sample({}), Error);
    const std::vector<int32_t> low = {-1}, high = {100};
    EXPECT_THROW(sampler.sample(std::vector<float>(100), low), Error);
    EXPECT_THROW(sampler.sample(std::vector<float>(100), high), Error);
  }
}

TEST(Sampler, BadOptions) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto error = [](auto&& change) -> std::string {
    SamplerOptions o;
    change(o);
    try {
      Sampler sampler(o);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error([](auto&) {}), "");
  EXPECT_EQ(error([](auto& o) { o.temperature = -1; }),
            "sampler: option out of range: temperature = -1: need 0 <= temperature < inf");
  EXPECT_EQ(error([](auto& o) { o.top_k = -2; }),
            "sampler: option out of range: top_k = -2: need top_k >= 0 (0: all tokens)");
  for (const float bad : {nan, kInf, -kInf}) {
    EXPECT_NE(error([&](auto& o) { o.temperature = bad; }), "");
    EXPECT_NE(error([&](auto& o) { o.top_p = bad; }), "");
    EXPECT_NE(error([&](auto& o) { o.min_p = bad; }), "");
    EXPECT_NE(error([&](auto& o) { o.repetition_penalty = bad; }), "");
    EXPECT_NE(error([&](auto& o) { o.presence_penalty = bad; }), "");
    EXPECT_NE(error([&](auto& o) { o.frequency_penalty = bad; }), "");
  }
  EXPECT_NE(error([](auto& o) { o.top_p = 0; }), "");
  EXPECT_NE(error([](auto& o) { o.top_p = 1.5f; }), "");
  EXPECT_NE(error([](auto& o) { o.min_p = -0.1f; }), "");
  EXPECT_NE(error([](auto& o) { o.min_p = 1.1f; }), "");
  EXPECT_NE(error([](auto& o) { o.repetition_penalty = 0; }), "");
  EXPECT_NE(error([](auto& o) { o.penalty_window = -2; }), "");
}

}  // namespace
}  // namespace wick::text
