// Saved sessions: what they continue, and that damaged files and files of other models are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/expect_error.h"
#include "tests/models/tiny_model.h"
#include "tests/serve/session_fixture.h"
#include "tests/test_devices.h"

namespace wick::serve {
namespace {

using test::error_of;
using test::some_tokens;
using test::TinyLlama;
using testing::HasSubstr;

class SessionFiles : public SessionFixture {
 protected:
  std::string file() const { return folder_.path("s.session"); }
  std::shared_ptr<const Engine> long_engine(Device device = {}) {
    TinyLlama tiny{.dtype = DType::q8_0};
    tiny.context = 700;
    tiny.write(path());
    return Engine::load(path(), {.device = device});
  }
};

std::vector<float> newest_logits(Session& s) { return {s.logits().begin(), s.logits().end()}; }

std::vector<GenerateOptions> options_of_all_kinds() {
  std::vector<GenerateOptions> all(4, greedy(0));
  for (size_t i = 1; i < all.size(); ++i) all[i].sampler.temperature = 1.5f;
  all[1].sampler.seed = 7;
  all[1].sampler.repetition_penalty = 1.3f;
  all[2].sampler.mirostat = 2;
  all[3].sampler.xtc_probability = 0.5f;
  all[3].sampler.logit_bias = {{3, -1.5f}};
  all[3].sampler.dry_multiplier = 1;
  all[3].sampler.dry_breakers = {1, 2};
  all[3].sampler.order = {SamplerStep::dry, SamplerStep::xtc, SamplerStep::temperature};
  return all;
}

// Lengths around the pages' 256 positions; the newest token may wait to be run.
TEST_F(SessionFiles, GoOnAsIfTheyHadNotEnded) {
  const auto e = long_engine();
  for (const int64_t length : {1, 20, 255, 256, 257, 600}) {
    for (GenerateOptions options : options_of_all_kinds()) {
      SCOPED_TRACE(length);
      options.max_tokens = 24;
      Session whole(e);
      whole.feed(some_tokens(length));
      const std::vector<int32_t> expected = whole.generate(options).tokens;
      Session first(e);
      first.feed(some_tokens(length));
      options.max_tokens = 9;
      std::vector<int32_t> made = first.generate(options).tokens;
      first.save(file(), "text");
      Session second(e, {.context = 690});
      second.feed(some_tokens(3));
      EXPECT_EQ(second.load(file()), "text");
      EXPECT_EQ(second.tokens(), first.tokens());
      ASSERT_TRUE(second.last_sampler());
      EXPECT_EQ(*second.last_sampler(), options.sampler);
      options.max_tokens = 15;
      options.resume = true;
      options.sampler = *second.last_sampler();
      for (const int32_t id : second.generate(options).tokens) made.push_back(id);
      EXPECT_EQ(made, expected);
      EXPECT_EQ(newest_logits(second), newest_logits(whole));
    }
  }
}

TEST_F(SessionFiles, KeepWhatWasFed) {
  const auto e = long_engine();
  for (const DType type : {DType::f16, DType::bf16, DType::f32}) {
    Session s(e, {.cache_dtype = type});
    s.save(file());  // an empty one
    Session other(e, {.cache_dtype = type});
    other.feed(some_tokens(5));
    other.load(file());
    EXPECT_EQ(other.length(), 0);
    s.feed(some_tokens(300));
    s.save(file());
    other.load(file());
    EXPECT_EQ(newest_logits(other), newest_logits(s));
    other.truncate(200);
    s.truncate(200);
    EXPECT_EQ(other.generate(greedy(5)).tokens, s.generate(greedy(5)).tokens);
  }
}

TEST_F(SessionFiles, KeepRecurrentStates) {
  for (const char* family : {"falcon-h1", "mamba2", "lfm2", "qwen3next"}) {
    SCOPED_TRACE(family);
    test::TinyModel tiny = test::TinyModel::read(family);
    tiny.dtype = DType::q8_0;
    tiny.write(path());
    const auto e = Engine::load(path());
    Session s(e, {.context = 60});
    s.feed(some_tokens(20));
    s.save(file());
    Session other(e, {.context = 60});
    other.load(file());
    EXPECT_EQ(newest_logits(other), newest_logits(s));
    EXPECT_EQ(other.generate(greedy(12)).tokens, s.generate(greedy(12)).tokens);
  }
}

TEST_F(SessionFiles, GoOnOnAnotherDevice) {
  const auto cpu = long_engine();
  Session whole(cpu);
  whole.feed(some_tokens(300));
  const std::vector<int32_t> expected = whole.generate(greedy(20)).tokens;
  const std::vector<Device> devices = test::cpu_and_devices();
  for (const Device from : devices) {
    const auto source = Engine::load(path(), {.device = from});
    Session first(source);
    first.feed(some_tokens(300));
    std::vector<int32_t> begin = first.generate(greedy(8)).tokens;
    first.save(file());
    for (const Device to : devices) {
      SCOPED_TRACE(from.str() + " to " + to.str());
      Session second(Engine::load(path(), {.device = to}));
      second.load(file());
      std::vector<int32_t> made = begin;
      for (const int32_t id : second.generate(greedy(12)).tokens) made.push_back(id);
      EXPECT_EQ(made, expected);
    }
  }
}

TEST_F(SessionFiles, OfOthersAreRefused) {
  const auto e = long_engine();
  Session s(e);
  s.feed(some_tokens(30));
  s.save(file());
  const auto error = [&](const std::shared_ptr<const Engine>& engine, SessionOptions options) {
    Session other(engine, options);
    other.feed(some_tokens(4));
    const std::string message = error_of([&] { other.load(file()); });
    EXPECT_THAT(message, HasSubstr(file()));
    EXPECT_EQ(other.tokens(), some_tokens(4));
    return message;
  };
  EXPECT_THAT(error(e, {.context = 20}),
              HasSubstr("session longer than the context: 30 tokens, 20 positions"));
  EXPECT_THAT(error(e, {.cache_dtype = DType::f32}),
              HasSubstr("session with another cache type: f16: this session's is f32"));
  EXPECT_EQ(
      error_of([&] { s.load(path()); }),
      path() + ": not a session: general.type = 'model': need a file that was saved as a session");
  EXPECT_THAT(error_of([&] { s.load(folder_.path("none")); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of([&] { s.save(folder_.path("no/such")); }), HasSubstr("no/such"));
  // Other weights of the same shapes, and other weights of another type.
  for (const DType type : {DType::q8_0, DType::f32}) {
    TinyLlama tiny{.dtype = type, .seed = 2};
    tiny.context = 700;
    tiny.write(folder_.path("other.gguf"));
    EXPECT_THAT(error(Engine::load(folder_.path("other.gguf")), {}),
                HasSubstr("session of another model or adapters: m.gguf ("));
  }
}

// Pages keep the bytes of sequences before, and new ones are uninitialised; files have neither.
TEST_F(SessionFiles, OfEqualSessionsAreEqual) {
  TinyLlama tiny{.key_size = 64, .value_size = 64, .context = 700, .rope_dims = 64};
  tiny.write(path());
  const auto e = Engine::load(path());
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::q8_0, DType::q4_0}) {
    SCOPED_TRACE(name(type));
    Session reused(e, {.cache_dtype = type});
    for (int i = 0; i < 3; ++i) {
      std::vector<int32_t> other = some_tokens(512);
      std::rotate(other.begin(), other.begin() + 7 * (i + 1), other.end());
      reused.feed_whole(other);
      reused.truncate(0);
    }
    for (const int64_t length : {1, 100, 255, 256, 300}) {
      SCOPED_TRACE(length);
      Session fresh(e, {.cache_dtype = type});
      fresh.feed(some_tokens(length));
      fresh.save(folder_.path("fresh.session"));
      reused.truncate(0);
      reused.feed(some_tokens(length));
      reused.save(folder_.path("reused.session"));
      EXPECT_EQ(folder_.read("fresh.session"), folder_.read("reused.session"));
      Session loaded(e, {.cache_dtype = type});
      loaded.load(folder_.path("reused.session"));
      EXPECT_EQ(newest_logits(loaded), newest_logits(fresh));
      EXPECT_EQ(loaded.generate(greedy(4)).tokens, fresh.generate(greedy(4)).tokens);
    }
  }
}

TEST_F(SessionFiles, WithASurpriseLimitThatIsntFiniteAreRefused) {
  const auto e = long_engine();
  Session s(e);
  s.feed(some_tokens(5));
  GenerateOptions options = greedy(2);
  options.sampler.temperature = 1;
  options.sampler.mirostat = 1;
  s.generate(options);
  s.save(file());
  std::string bytes = folder_.read("s.session");
  const std::string key = "session.sampler.surprise_limit";
  const size_t at =
      bytes.find(key) + key.size() + sizeof(uint32_t);  // after the number of the type
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::memcpy(bytes.data() + at, &bad, sizeof(bad));
    folder_.write("bad.session", bytes);
    EXPECT_THAT(error_of([&] { s.load(folder_.path("bad.session")); }),
                HasSubstr("option out of range: surprise_limit = "));
  }
}

// Changed bytes of the header, and cut files, give an error of the file or a session that runs.
TEST_F(SessionFiles, DamagedFilesChangeNothing) {
  const auto e = long_engine();
  Session s(e, {.context = 64});
  s.feed(some_tokens(30));
  s.generate(greedy(3));
  s.save(file());
  const std::string good = folder_.read("s.session");
  Session other(e, {.context = 64});
  other.feed(some_tokens(4));
  int refused = 0, loaded = 0;
  const auto attempt = [&](const std::string& bytes) {
    folder_.write("bad.session", bytes);
    const std::string message = error_of([&] { other.load(folder_.path("bad.session")); });
    if (message != "no error") {
      ++refused;
      EXPECT_THAT(message, HasSubstr("bad.session"));
      EXPECT_EQ(other.tokens(), some_tokens(4));
      return;
    }
    ++loaded;
    error_of([&] { other.generate(greedy(2)); });
    other.truncate(0);
    other.feed(some_tokens(4));
  };
  for (size_t cut = 0; cut < good.size(); cut += 1 + cut / 16) attempt(good.substr(0, cut));
  EXPECT_EQ(loaded, 0);
  std::mt19937 random(1);
  const size_t header = std::min<size_t>(good.size(), 4096);
  for (size_t at = 0; at < header; at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(static_cast<unsigned>(bad[at]) ^ (1U << (random() % 8)));
    attempt(bad);
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace wick::serve
