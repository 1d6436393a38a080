// Sessions of a model whose cache has recurrent states: whatever is dropped, the tokens before it
// are run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/tiny_model.h"
#include "tests/serve/session_fixture.h"

namespace wick::serve {
namespace {

using test::some_tokens;

class RecurrentSession : public SessionFixture {
 protected:
  std::shared_ptr<const Engine> recurrent() {
    test::TinyModel tiny = test::TinyModel::read("falcon-h1");
    tiny.dtype = DType::q8_0;  // the bits of a row don't depend on the number of rows
    tiny.write(path());
    return Engine::load(path());
  }
};

std::vector<float> logits_of(Session& s) { return {s.logits().begin(), s.logits().end()}; }

std::vector<float> logits_after(const std::shared_ptr<const Engine>& e,
                                const std::vector<int32_t>& tokens) {
  Session fresh(e, {.context = 60});
  fresh.feed(tokens);
  return logits_of(fresh);
}

TEST_F(RecurrentSession, DropsAndReplacesTokens) {
  const auto e = recurrent();
  Session s(e, {.context = 60, .batch = 7});
  const std::vector<int32_t> prompt = some_tokens(20);
  s.feed(prompt);
  const std::vector<int32_t> made = s.generate(greedy(8)).tokens;
  ASSERT_EQ(made.size(), 8U);
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), made.begin(), made.end());
  EXPECT_EQ(logits_of(s), logits_after(e, all));
  s.truncate(20);
  EXPECT_EQ(s.generate(greedy(8)).tokens, made);
  s.truncate(10);
  EXPECT_EQ(s.length(), 10);
  s.feed(std::span<const int32_t>(prompt).subspan(10));
  EXPECT_EQ(s.generate(greedy(8)).tokens, made);
  for (const size_t count : {size_t{20}, size_t{24}, size_t{5}, size_t{28}}) {
    const std::vector<int32_t> part(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
    ASSERT_TRUE(s.feed_whole(part));
    EXPECT_EQ(s.tokens(), part);
    EXPECT_EQ(logits_of(s), logits_after(e, part));
  }
}

TEST_F(RecurrentSession, KeepsTokensThatWaitToRunAgain) {
  const auto e = recurrent();
  Session s(e, {.context = 60, .batch = 4});
  const std::vector<int32_t> prompt = some_tokens(20);
  s.feed(prompt);
  s.truncate(12);
  int calls = 0;
  EXPECT_FALSE(s.feed(std::span<const int32_t>(prompt).subspan(12), [&] { return ++calls > 1; }));
  EXPECT_EQ(s.tokens(), std::vector<int32_t>(prompt.begin(), prompt.begin() + 12));
  EXPECT_EQ(logits_of(s), logits_after(e, s.tokens()));
  s.feed(std::span<const int32_t>(prompt).subspan(12));
  EXPECT_EQ(logits_of(s), logits_after(e, prompt));
}

}  // namespace
}  // namespace wick::serve
