// Saved sessions: what they continue, and that damaged files and files of other models are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "tests/expect_error.h"
#include "tests/models/tiny_model.h"
#include "tests/serve/session_fixture.h"
#include "tests/test_devices.h"
#include "wick/base/checksum.h"

namespace wick::serve {
namespace {

using test::error_of;
using test::some_tokens;
using test::TinyLlama;
using testing::HasSubstr;

class SessionFiles : public SessionFixture {
 protected:
  std::string file() const { return folder_.path("s.session"); }
  /// The bytes of a session file with a checksum that fits them.
  static std::string with_checksum(std::string bytes) {
    constexpr size_t kLast = 32;  // the tensor of the checksum
    Checksum sum;
    sum.add(std::as_bytes(std::span(bytes).first(bytes.size() - kLast)));
    const uint64_t value = sum.value();
    std::memcpy(bytes.data() + bytes.size() - kLast, &value, sizeof value);
    return bytes;
  }
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
  EXPECT_EQ(error_of([&] { s.save(path()); }),
            "save: input and output are the same file: " + path());
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
    folder_.write("bad.session", with_checksum(bytes));
    EXPECT_THAT(error_of([&] { s.load(folder_.path("bad.session")); }),
                HasSubstr("option out of range: surprise_limit = "));
  }
}

TEST_F(SessionFiles, OfOtherVersionsAreRefused) {
  const auto e = long_engine();
  Session s(e);
  s.feed(some_tokens(5));
  s.save(file());
  std::string bytes = folder_.read("s.session");
  const std::string key = "session.version";
  const size_t at = bytes.find(key) + key.size() + sizeof(uint32_t);
  bytes[at] = 1;
  folder_.write("old.session", with_checksum(bytes));
  EXPECT_EQ(error_of([&] { s.load(folder_.path("old.session")); }),
            folder_.path("old.session") +
                ": session of another version: 1: this version of wick reads 2");
  // Files of version 1 have no checksum.
  io::GgufWriter w(folder_.path("old.session"));
  w.set_string("general.type", "session");
  w.set_u32("session.version", 1);
  w.finish();
  EXPECT_THAT(error_of([&] { s.load(folder_.path("old.session")); }),
              HasSubstr("session of another version: 1: this version of wick reads 2"));
}

// The same ids would be other texts.
TEST_F(SessionFiles, OfAnotherVocabularyAreRefused) {
  const auto error = [&](const std::function<void(io::GgufWriter&)>& edit) {
    Session s(engine());
    s.feed(some_tokens(5));
    s.save(file());
    TinyLlama tiny{.dtype = DType::q8_0};
    tiny.edit = edit;
    Session other(engine(std::move(tiny)));
    return error_of([&] { other.load(file()); });
  };
  EXPECT_THAT(error([](auto& w) {
                std::vector<std::string_view> names(TinyLlama::tokens().begin(),
                                                    TinyLlama::tokens().end());
                std::swap(names[1], names[2]);
                w.set_strings("tokenizer.ggml.tokens", names);
              }),
              HasSubstr("session of another model or adapters: m.gguf ("));
  EXPECT_THAT(error([](auto& w) {
                w.set_strings("tokenizer.ggml.merges", std::vector<std::string_view>{"t h"});
              }),
              HasSubstr("session of another model"));
  EXPECT_EQ(error([](auto& w) { w.set_string("tokenizer.chat_template", "x"); }), "no error");
}

TEST_F(SessionFiles, CompleteACharacterThatWasCut) {
  const auto e = engine();
  const int32_t first = *e->tokenizer().token_id("\xc3"), second = *e->tokenizer().token_id("\xa9");
  ASSERT_EQ(e->tokenizer().decode(std::vector<int32_t>{first, second}), "\u00e9");
  const auto only = [](int32_t id) {
    GenerateOptions options = greedy(1);
    options.sampler.logit_bias = {{id, 1e6f}};
    return options;
  };
  Session s(e);
  s.feed(some_tokens(5));
  EXPECT_EQ(s.generate(only(first)).text, "\ufffd");
  s.save(file());
  Session other(e);
  other.load(file());
  std::string shown;
  GenerateOptions options = only(second);
  options.on_text = [&](std::string_view text) { shown += text; };
  EXPECT_EQ(other.generate(options).text, "\u00e9");
  EXPECT_EQ(shown, "\u00e9");
  EXPECT_EQ(other.generate(only(second)).text, "\ufffd");  // it completes nothing
  // Control tokens in between have no text; other text ends the character.
  for (const bool control : {true, false}) {
    other.load(file());
    other.feed(std::vector<int32_t>{control ? *e->tokenizer().token_id("<|im_end|>") : 3});
    EXPECT_EQ(other.generate(only(second)).text, control ? "\u00e9" : "\ufffd");
  }
}

// Another target of mirostat starts with its own bound, and the same one goes on.
TEST_F(SessionFiles, GoOnWithOtherOptions) {
  const auto e = long_engine();
  GenerateOptions options = greedy(6);
  options.sampler.temperature = 1.5f;
  options.sampler.mirostat = 2;
  Session s(e);
  s.feed(some_tokens(5));
  s.generate(options);
  s.save(file());
  const auto go_on = [&](float tau, bool resume) {
    Session other(e);
    other.load(file());
    GenerateOptions changed = options;
    changed.sampler.mirostat_tau = tau;
    changed.resume = resume;
    changed.max_tokens = 0;
    other.generate(changed);
    other.save(folder_.path("after.session"));
    return *read_session(folder_.path("after.session")).sampler;
  };
  const SamplerState saved = *read_session(file()).sampler;
  EXPECT_EQ(saved.draws, 6u);
  EXPECT_EQ(go_on(5, true).draws, 6u);
  EXPECT_EQ(go_on(5, true).surprise_limit, saved.surprise_limit);
  EXPECT_EQ(go_on(3, true).draws, 6u);
  EXPECT_EQ(go_on(3, true).surprise_limit, go_on(3, false).surprise_limit);
}

// Any changed bit, and cut files, give an error of the file.
TEST_F(SessionFiles, DamagedFilesChangeNothing) {
  const auto e = long_engine();
  Session s(e, {.context = 64});
  s.feed(some_tokens(30));
  s.generate(greedy(3));
  s.save(file());
  const std::string good = folder_.read("s.session");
  Session other(e, {.context = 64});
  other.feed(some_tokens(4));
  int loaded = 0;
  const auto attempt = [&](const std::string& bytes) {
    folder_.write("bad.session", bytes);
    const std::string message = error_of([&] { other.load(folder_.path("bad.session")); });
    if (message == "no error") ++loaded;
    EXPECT_THAT(message, HasSubstr("bad.session"));
    EXPECT_EQ(other.tokens(), some_tokens(4));
    return message;
  };
  for (size_t cut = 0; cut < good.size(); cut += 1 + cut / 16) attempt(good.substr(0, cut));
  std::mt19937 random(1);
  const size_t data = static_cast<size_t>(io::Gguf::open(file())->tensors().front().offset);
  for (size_t at = 0; at < good.size(); at += at < data ? 3 : 1 + good.size() / 500) {
    std::string bad = good;
    bad[at] = static_cast<char>(static_cast<unsigned>(bad[at]) ^ (1U << (random() % 8)));
    const std::string message = attempt(bad);
    if (at >= data) {
      EXPECT_THAT(message, HasSubstr("bad.session: the session file is damaged"));
    }
  }
  for (size_t last = 1; last <= 32; ++last) {  // the checksum
    std::string bad = good;
    bad[good.size() - last] ^= 1;
    EXPECT_THAT(attempt(bad), HasSubstr("the session file is damaged"));
  }
  EXPECT_EQ(loaded, 0);
}

}  // namespace
}  // namespace wick::serve
