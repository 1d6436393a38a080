// Sessions that several threads and their own callbacks call concurrently, and engines whose file
// changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "tests/expect_error.h"
#include "tests/serve/session_fixture.h"
#include "wick/io/convert.h"

namespace wick::serve {
namespace {

using test::error_of;
using test::TinyLlama;
using testing::HasSubstr;
using testing::StartsWith;

const std::vector<int32_t> kPrompt = {5, 22, 0, 17, 34, 12};

class SessionThreads : public SessionFixture {};

TEST_F(SessionThreads, NeedsAnEngineAndStaysWhereItIs) {
  EXPECT_EQ(error_of([] { Session(nullptr); }), "session: no engine: need a loaded one");
  Session first(engine());
  first.feed(kPrompt);
  Session second(std::move(first));
  EXPECT_EQ(second.length(), 6);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { first.feed(kPrompt); }, [&] { first.generate(greedy(1)); },
           [&] { first.logits(); }, [&] { first.truncate(0); }, [&] { (void)first.length(); },
           [&] { (void)first.tokens(); }, [&] { (void)first.context(); },
           [&] { first.feed_whole(kPrompt); }}) {
    EXPECT_EQ(error_of(call), "session: was moved from");  // NOLINT: tests use after move
  }
  first = std::move(second);
  EXPECT_EQ(first.length(), 6);
}

TEST_F(SessionThreads, CallbacksMustLeaveItAlone) {
  Session session(engine());
  session.feed(kPrompt);
  int asked = 0;
  GenerateOptions options = greedy(3);
  options.cancelled = [&] {
    ++asked;
    EXPECT_GE(session.length(), 6);
    EXPECT_EQ(static_cast<int64_t>(session.tokens().size()), session.length());
    EXPECT_GT(session.context(), 6);
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { session.feed(kPrompt); }, [&] { session.generate(greedy(1)); },
             [&] { session.logits(); }, [&] { session.truncate(0); },
             [&] { session.feed_whole(kPrompt); }}) {
      EXPECT_THAT(error_of(call), StartsWith("session: busy: called from its own callback"));
    }
    return false;
  };
  EXPECT_EQ(session.generate(options).tokens.size(), 3u);
  EXPECT_GE(asked, 3);
  // An exception in a callback ends the call; the session remains usable.
  options.cancelled = []() -> bool { throw std::runtime_error("odd"); };
  EXPECT_THROW(session.generate(options), std::runtime_error);
  EXPECT_EQ(session.generate(greedy(2)).tokens.size(), 2u);
}

TEST_F(SessionThreads, OneAtATimeWhoeverCalls) {
  const auto e = engine();
  Session alone(e);
  alone.feed(kPrompt);
  const std::vector<int32_t> right = alone.generate(greedy(12)).tokens;
  Session shared(e);
  std::atomic<int> done{0}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(t);
      Session own(e);  // an engine serves many sessions
      own.feed(kPrompt);
      if (own.generate(greedy(12)).tokens != right) ++wrong;
      for (int i = 0; i < 60; ++i) {
        try {
          switch (rng() % 7) {
            case 0:
              shared.feed(std::span(kPrompt).first(rng() % 6));
              break;
            case 1:
              shared.truncate(static_cast<int64_t>(rng() % 8));
              break;
            case 2:
              shared.generate(greedy(2));
              break;
            case 3:
              shared.feed_whole(kPrompt);
              break;
            case 4:
              shared.logits();
              break;
            case 5:
              (void)shared.length();
              break;
            default:
              (void)shared.context();
          }
          ++done;
        } catch (const Error& error) {
          const std::string_view what = error.what();
          if (what.find("busy") == what.npos && what.find("nothing was fed") == what.npos &&
              what.find("longer than the context") == what.npos) {
            ++wrong;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(done, 0);
  shared.truncate(0);
  shared.feed(kPrompt);
  EXPECT_EQ(shared.generate(greedy(12)).tokens, right);
}

/// Waits until the file system's clock has advanced since the file's last change, because a change
/// within the same tick isn't detected. On a busy machine a tick may take long.
void await_next_tick(const std::string& file) {
  const std::string other = file + ".tick";
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ofstream(other) << 'x';
  } while (std::filesystem::last_write_time(other) == std::filesystem::last_write_time(file));
}

// The file is truncated, overwritten or extended at random times during loading and generation. The
// result must be an error that names the file, or the tokens of the original file.
TEST_F(SessionThreads, FilesThatChange) {
  TinyLlama{.dtype = DType::f32}.write(folder_.path("whole.gguf"));
  std::ifstream in(folder_.path("whole.gguf"), std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  // Set when a file's first layer has been loaded. A file that is overwritten before it is opened
  // is simply another file with other tokens.
  std::atomic<bool> is_open{false};
  const auto tokens_of = [&](const std::string& file) {
    Session session(
        Engine::load(file, {.device = {}, .progress = [&](int64_t, int64_t) { is_open = true; }}));
    session.feed(kPrompt);
    return session.generate(greedy(40)).tokens;
  };
  const std::vector<int32_t> right = tokens_of(folder_.path("whole.gguf"));
  // Changes come within one and a half times the duration of a run, so that most of them come
  // before its end on a fast machine too.
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokens_of(folder_.path("whole.gguf")), right);
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(
                           1.5 * (std::chrono::steady_clock::now() - start))
                           .count();
  std::mt19937 rng(3);
  int errors = 0, results = 0;
  for (int round = 0; round < 120; ++round) {
    const std::string file = folder_.path("m" + std::to_string(round % 4) + ".gguf");
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary) << whole;
    await_next_tick(file);
    const unsigned kind = rng() % 3;
    const auto pause = static_cast<int64_t>(rng()) % longest;
    const auto at = static_cast<off_t>(rng() % whole.size());
    is_open = false;
    std::thread writer([&] {
      while (kind == 1 && !is_open) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
      if (kind == 0) {
        if (::truncate(file.c_str(), at) != 0) std::abort();
      } else {
        std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(kind == 1 ? at : static_cast<off_t>(whole.size()));
        out << std::string(4000, '\x7f') << std::flush;
      }
    });
    try {
      // A result must be correct, whether the change came after it or had no effect on it.
      EXPECT_EQ(tokens_of(file), right) << round;
      ++results;
    } catch (const Error& e) {
      ++errors;
      EXPECT_EQ(e.kind() == ErrorKind::file || std::string_view(e.what()).find("gguf") == 0, true)
          << e.what();
    }
    is_open = true;
    writer.join();
  }
  EXPECT_GT(errors, 0);
  EXPECT_EQ(errors + results, 120);
}

TEST_F(SessionThreads, AFileThatChangesAfterLoading) {
  TinyLlama{.dtype = DType::q8_0}.write(path());
  const auto e = Engine::load(path());
  Session session(e);
  session.feed(kPrompt);
  ASSERT_EQ(::truncate(path().c_str(), 100), 0);
  const std::string changed =
      "forward: file was changed while it was in use: " + path() + ": load it again";
  EXPECT_EQ(error_of([&] {
              session.generate(greedy(3));
              session.logits();
            }),
            changed);
  EXPECT_EQ(error_of([&] { Session(e).feed(kPrompt); }), changed);
  EXPECT_EQ(error_of([&] { perplexity(*e, kPrompt, {}); }), changed);
}

TEST_F(SessionThreads, AFileThatChangesWhileItIsConverted) {
  for (const bool cut : {true, false}) {
    TinyLlama{.dtype = DType::f32}.write(path());
    await_next_tick(path());
    bool done = false;
    const std::string error = error_of([&] {
      io::quantize_gguf(path(), folder_.path("out.gguf"), DType::q8_0, [&](const auto&) {
        if (!done) {
          done = true;
          if (cut) {
            if (::truncate(path().c_str(), 5000) != 0) std::abort();
          } else {
            std::ofstream(path(), std::ios::binary | std::ios::app) << "more";
          }
        }
        return true;
      });
    });
    EXPECT_EQ(error,
              "quantize: file was changed while it was in use: " + path() + ": load it again");
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out.gguf")));
  }
}

}  // namespace
}  // namespace wick::serve
