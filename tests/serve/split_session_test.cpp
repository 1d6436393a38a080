// Conversations with models split between the CPU and the GPUs that WICK_TEST_DEVICES names.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/models/tiny_model.h"
#include "tests/serve/session_fixture.h"
#include "tests/test_devices.h"

namespace wick::serve {
namespace {

using test::some_tokens;
using test::TinyLlama;
using test::TinyModel;

class SplitSessions : public SessionFixture {
 protected:
  void SetUp() override { setenv("WICK_REPRODUCIBLE", "1", 1); }

  /// The tokens of a conversation that goes on, back, and on again.
  static std::vector<int32_t> conversation(const std::shared_ptr<const Engine>& engine) {
    Session session(engine, {.context = 64, .batch = 7});
    GenerateOptions options = greedy(5);
    options.sampler.temperature = 1.0f;
    options.sampler.seed = 3;
    session.feed(some_tokens(16));
    std::vector<int32_t> all = session.generate(options).tokens;
    const auto add = [&](const std::vector<int32_t>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    session.truncate(9);
    add(session.generate(options).tokens);
    std::vector<int32_t> other = some_tokens(12);
    other.back() = 3;
    session.feed_whole(other);
    options.sampler.typical_p = 0.9f;  // the host samples
    add(session.generate(options).tokens);
    add(session.tokens());
    return all;
  }

  void expect_same_conversation() {
    const auto whole = Engine::load(path());
    const std::vector<int32_t> expected = conversation(whole);
    EXPECT_EQ(expected.size(), 15U + 17U);
    const Perplexity score = perplexity(*whole, some_tokens(30), {.context = 16});
    for (const Device device : test::devices()) {
      SCOPED_TRACE(device.str());
      models::LoadOptions options;
      options.device = device;
      options.split.gpu_layers = 1;
      const auto engine = Engine::load(path(), options);
      EXPECT_EQ(engine->model().pieces(), device == Device::cpu() ? 1U : 2U);
      EXPECT_EQ(conversation(engine), expected);
      EXPECT_NEAR(perplexity(*engine, some_tokens(30), {.context = 16}).mean_nll, score.mean_nll,
                  1e-5);
    }
  }
};

TEST_F(SplitSessions, HaveTheTokensOfTheWholeModel) {
  TinyLlama tiny{.layers = 3, .dtype = DType::q8_0};
  tiny.write(path());
  expect_same_conversation();
}

TEST_F(SplitSessions, WithRecurrentStates) {
  TinyModel tiny = TinyModel::read("falcon-h1");
  tiny.dtype = DType::q8_0;
  tiny.write(path());
  expect_same_conversation();
}

}  // namespace
}  // namespace wick::serve
