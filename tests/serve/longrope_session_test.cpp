// Sessions of a model with LongRoPE: a sequence beyond the original context of 16 positions has
// other angles from its first position on, so its tokens are run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/tiny_model.h"
#include "tests/serve/session_fixture.h"
#include "tests/test_devices.h"

namespace wick::serve {
namespace {

using test::some_tokens;

class LongRopeSession : public SessionFixture {
 protected:
  std::shared_ptr<const Engine> longrope(Device device = {}, DType dtype = DType::q8_0) {
    test::TinyModel tiny = test::TinyModel::read("phi3-longrope");
    tiny.dtype = dtype;
    tiny.write(path());
    return Engine::load(path(), {.device = device});
  }
};

std::vector<float> newest(Session& s) { return {s.logits().begin(), s.logits().end()}; }

std::vector<float> fresh_logits(const std::shared_ptr<const Engine>& e,
                                std::span<const int32_t> tokens) {
  Session fresh(e, {.context = 60});
  fresh.feed(tokens);
  return newest(fresh);
}

/// Sampling that the device can do, or that the host does.
GenerateOptions drawing(int64_t count, bool on_host) {
  GenerateOptions o = greedy(count);
  o.sampler.temperature = 1;
  o.sampler.seed = 5;
  if (on_host) o.sampler.typical_p = 0.9f;
  return o;
}

// generate() of transformers runs all tokens again where the factors change.
TEST_F(LongRopeSession, TokenByTokenIsTransformers) {
  const test::TinyModel tiny = test::TinyModel::read("long/phi3-longrope-generated");
  const std::vector<int32_t> tokens = some_tokens(tiny.tokens);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto e = longrope(device, DType::f32);
    Session s(e, {.context = 30, .cache_dtype = DType::f32});
    const size_t row = tiny.logits.size() / tiny.positions.size();
    size_t compared = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      s.feed(std::span(tokens).subspan(i, 1));
      const std::vector<float> logits = newest(s);
      if (tiny.positions[compared] != static_cast<int64_t>(i)) continue;
      for (size_t j = 0; j < row; ++j) {
        EXPECT_NEAR(logits[j], tiny.logits[compared * row + j], 1e-4) << i;
      }
      ++compared;
    }
    EXPECT_EQ(compared, tiny.positions.size());
  }
}

// Each token is the likeliest after all tokens before it, which a fresh session runs at once.
TEST_F(LongRopeSession, GeneratesFromTheLogitsOfWholeSequences) {
  const std::vector<int32_t> prompt = some_tokens(6);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto e = longrope(device);
    Session s(e, {.context = 60});
    s.feed(prompt);
    const std::vector<int32_t> made = s.generate(greedy(20)).tokens;
    ASSERT_EQ(made.size(), 20U);
    EXPECT_EQ(newest(s), fresh_logits(e, s.tokens()));
    std::vector<int32_t> all = prompt;
    for (const int32_t token : made) {
      Session fresh(e, {.context = 60});
      fresh.feed(all);
      EXPECT_EQ(fresh.generate(greedy(1)).tokens.front(), token) << all.size();
      all.push_back(token);
    }
  }
}

// The draws go on where tokens run again.
TEST_F(LongRopeSession, DrawsDontDependOnCalls) {
  for (const Device device : test::cpu_and_devices()) {
    const auto e = longrope(device);
    for (const bool on_host : {false, true}) {
      SCOPED_TRACE(device.str() + (on_host ? " host" : " device"));
      Session s(e, {.context = 60}), steps(e, {.context = 27, .batch = 4});
      s.feed(some_tokens(6));
      steps.feed(some_tokens(6));
      const std::vector<int32_t> made = s.generate(drawing(20, on_host)).tokens;
      std::vector<int32_t> drawn;
      while (drawn.size() < made.size()) {
        GenerateOptions one = drawing(1, on_host);
        one.resume = !drawn.empty();
        drawn.push_back(steps.generate(one).tokens.at(0));
        if (drawn.size() % 2 == 0) {
          EXPECT_EQ(newest(steps), fresh_logits(e, steps.tokens()));
        }
      }
      EXPECT_EQ(drawn, made);
    }
  }
}

TEST_F(LongRopeSession, TokensDontDependOnTheContext) {
  const auto e = longrope();
  const std::vector<int32_t> prompt = some_tokens(6);
  std::vector<std::vector<int32_t>> all;
  for (const int64_t context : {16, 17, 60, 0}) {
    Session s(e, {.context = context});
    s.feed(prompt);
    all.push_back(s.generate(drawing(10, false)).tokens);
    EXPECT_EQ(all.back(), all.front()) << context;
  }
}

TEST_F(LongRopeSession, DropsAndReplacesTokens) {
  const auto e = longrope();
  Session s(e, {.context = 60, .batch = 7});
  const std::vector<int32_t> all = some_tokens(40);
  for (const size_t count : {30, 10, 16, 17, 16, 40, 12, 15, 18, 33}) {
    const auto part = std::span(all).first(count);
    ASSERT_TRUE(s.feed_whole(part));
    EXPECT_EQ(newest(s), fresh_logits(e, part)) << count;
  }
  for (const int64_t length : {20, 17, 16, 4}) {
    s.truncate(length);
    EXPECT_EQ(newest(s), fresh_logits(e, std::span(all).first(static_cast<size_t>(length))))
        << length;
  }
}

TEST_F(LongRopeSession, CancelledPromptsLeaveWhatRan) {
  const auto e = longrope();
  const std::vector<int32_t> all = some_tokens(40);
  for (const int batches : {0, 1, 2, 3, 4}) {
    SCOPED_TRACE(batches);
    int calls = 0;
    const auto stops = [&] { return ++calls > batches; };
    Session s(e, {.context = 60, .batch = 6});
    EXPECT_FALSE(s.feed(std::span(all).first(30), stops));
    EXPECT_EQ(s.length(), batches * 6);
    if (s.length() > 0) {
      EXPECT_EQ(newest(s), fresh_logits(e, s.tokens()));
    }
    // A sequence that was short before keeps its tokens.
    Session other(e, {.context = 60, .batch = 6});
    other.feed(std::span(all).first(14));
    calls = 0;
    EXPECT_FALSE(other.feed(std::span(all).subspan(14, 20), stops));
    EXPECT_EQ(other.length(), std::max(14, batches * 6));
    EXPECT_EQ(newest(other), fresh_logits(e, other.tokens()));
    other.feed_whole(all);
    EXPECT_EQ(newest(other), fresh_logits(e, all));
  }
}

TEST_F(LongRopeSession, SavedSessionsGoOn) {
  const auto e = longrope();
  const std::string file = folder_.path("s.session");
  for (const int64_t made_before : {3, 10, 11, 12}) {  // of 16 in all, and beyond
    SCOPED_TRACE(made_before);
    Session whole(e, {.context = 60});
    whole.feed(some_tokens(6));
    const std::vector<int32_t> expected = whole.generate(drawing(20, false)).tokens;
    Session s(e, {.context = 60});
    s.feed(some_tokens(6));
    std::vector<int32_t> made = s.generate(drawing(made_before, false)).tokens;
    s.save(file);
    Session other(e, {.context = 40});
    other.load(file);
    GenerateOptions rest = drawing(20 - made_before, false);
    rest.resume = true;
    for (const int32_t id : other.generate(rest).tokens) made.push_back(id);
    EXPECT_EQ(made, expected);
  }
}

// Perplexity's chunks are whole sequences, however many tokens a step has.
TEST_F(LongRopeSession, PerplexityDoesNotDependOnBatches) {
  const auto e = longrope();
  const std::vector<int32_t> tokens = some_tokens(40);
  const std::vector<double> expected = perplexity(*e, tokens, {.context = 30}).nll;
  for (const int64_t batch : {1, 7, 16}) {
    EXPECT_EQ(perplexity(*e, tokens, {.context = 30, .batch = batch}).nll, expected) << batch;
  }
}

}  // namespace
}  // namespace wick::serve
