#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <string_view>

#include "tests/expect_error.h"
#include "tests/serve/session_fixture.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/base/log.h"
#include "wick/text/stream_decoder.h"

namespace wick::serve {
namespace {

using test::error_of;
using test::some_tokens;
using test::TinyLlama;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ServeTest : public SessionFixture {
 protected:
  std::string load_error(std::function<void(io::GgufWriter&)> edit) {
    TinyLlama tiny;
    tiny.edit = std::move(edit);
    return error_of([&] { engine(std::move(tiny)); });
  }
};

GenerateOptions sampled(int64_t count, uint64_t seed) {
  GenerateOptions o = greedy(count);
  o.sampler.temperature = 1.0f;
  o.sampler.seed = seed;
  return o;
}

Generated run(const std::shared_ptr<const Engine>& e, const GenerateOptions& o,
              SessionOptions session = {}) {
  Session s(e, session);
  s.feed(some_tokens(20));
  return s.generate(o);
}

TEST_F(ServeTest, SameSeedSameText) {
  const auto e = engine();
  const Generated first = run(e, sampled(30, 7));
  EXPECT_EQ(first.tokens.size(), 30u);
  EXPECT_EQ(first.finish, FinishReason::max_tokens);
  text::StreamDecoder decoder(e->tokenizer());  // sampled bytes may be invalid UTF-8
  std::string text;
  for (const int32_t id : first.tokens) text += decoder.push(id);
  EXPECT_EQ(first.text, text + decoder.finish());
  EXPECT_EQ(run(e, sampled(30, 7)).tokens, first.tokens);
  EXPECT_NE(run(e, sampled(30, 8)).tokens, first.tokens);
  // Neither the batch size nor the number of threads changes the tokens.
  EXPECT_EQ(run(e, sampled(30, 7), {.batch = 1}).tokens, first.tokens);
  EXPECT_EQ(run(e, sampled(30, 7), {.batch = 7}).tokens, first.tokens);
  const int before = cpu::threads();
  for (int threads : {1, 2}) {
    cpu::set_threads(threads);
    EXPECT_EQ(run(e, sampled(30, 7)).tokens, first.tokens);
  }
  cpu::set_threads(before);
}

TEST_F(ServeTest, StreamsWhatItReturns) {
  const auto e = engine();
  std::string streamed;
  GenerateOptions o = sampled(40, 3);
  o.on_text = [&](std::string_view piece) { streamed += piece; };
  const Generated result = run(e, o);
  EXPECT_EQ(streamed, result.text);
  EXPECT_FALSE(streamed.empty());
}

TEST_F(ServeTest, GreedyTakesTheLikeliest) {
  const auto e = engine();
  Session s(e);
  s.feed(some_tokens(20));
  const auto logits = s.logits();
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  EXPECT_EQ(s.generate(greedy(1)).tokens.front(), best);
}

TEST_F(ServeTest, TheContextFillsUp) {
  const auto e = engine();
  Session s(e, {.context = 25});
  s.feed(some_tokens(20));
  const Generated result = s.generate(greedy(100));
  EXPECT_EQ(result.finish, FinishReason::context_full);
  EXPECT_EQ(result.tokens.size(), 6u);  // the cache has no room for the last token
  EXPECT_EQ(s.length(), 25);
  EXPECT_EQ(error_of([&] { s.feed(some_tokens(1)); }),
            "session: prompt longer than the context: 1 tokens, 0 of 25 positions left: shorten it "
            "or ask for a longer context");
  const Generated longer = run(e, greedy(6));
  EXPECT_EQ(longer.tokens, result.tokens);
  // A prompt that fills the context still gives one token.
  Session full(e, {.context = 20});
  full.feed(some_tokens(20));
  EXPECT_THAT(full.generate(greedy(-1)).tokens, ElementsAre(longer.tokens[0]));
  EXPECT_EQ(full.generate(greedy(-1)).finish, FinishReason::context_full);
}

TEST_F(ServeTest, GenerationsContinueEachOther) {
  const auto e = engine();
  const Generated whole = run(e, greedy(12));
  Session s(e);
  s.feed(some_tokens(20));
  std::vector<int32_t> parts;
  for (int64_t n : {1, 0, 5, 6}) {
    const Generated part = s.generate(greedy(n));
    parts.insert(parts.end(), part.tokens.begin(), part.tokens.end());
  }
  EXPECT_EQ(parts, whole.tokens);
  EXPECT_EQ(s.length(), 32);
}

TEST_F(ServeTest, TruncatingGoesBackInTime) {
  const auto e = engine();
  const Generated whole = run(e, greedy(8));
  Session s(e);
  s.feed(some_tokens(20));
  s.generate(greedy(10));
  s.truncate(20);
  EXPECT_EQ(s.length(), 20);
  EXPECT_EQ(s.generate(greedy(8)).tokens, whole.tokens);
  s.truncate(10);
  s.feed(std::span<const int32_t>(some_tokens(20)).subspan(10));
  EXPECT_EQ(s.generate(greedy(8)).tokens, whole.tokens);
  s.truncate(1000);
  EXPECT_EQ(s.length(), 28);
  s.truncate(0);
  EXPECT_EQ(error_of([&] { s.generate(greedy(1)); }), "session: nothing was fed yet");
}

TEST_F(ServeTest, LogitsAreThoseOfTheNewestToken) {
  const auto e = engine();
  Session s(e);
  EXPECT_EQ(error_of([&] { s.logits(); }), "session: nothing was fed yet");
  s.feed(some_tokens(20));
  const Generated made = s.generate(greedy(3));
  const std::vector<float> after(s.logits().begin(), s.logits().end());
  Session fresh(e);
  auto tokens = some_tokens(20);
  tokens.insert(tokens.end(), made.tokens.begin(), made.tokens.end());
  fresh.feed(tokens);
  EXPECT_EQ(after, std::vector<float>(fresh.logits().begin(), fresh.logits().end()));
}

TEST_F(ServeTest, FeedWholeRunsWhatDiffers) {
  const auto e = engine();
  Session s(e, {.context = 60});
  auto check = [&](const std::vector<int32_t>& tokens) {
    ASSERT_TRUE(s.feed_whole(tokens));
    EXPECT_EQ(s.tokens(), tokens);
    Session fresh(e);
    fresh.feed(tokens);
    EXPECT_EQ(std::vector<float>(s.logits().begin(), s.logits().end()),
              std::vector<float>(fresh.logits().begin(), fresh.logits().end()));
  };
  auto tokens = some_tokens(30);
  check(tokens);
  check(tokens);
  tokens[12] = 1;
  check(tokens);
  tokens.resize(5);
  check(tokens);
  s.generate(greedy(4));
  tokens = some_tokens(40);
  check(tokens);
  // A prompt that is too long changes nothing.
  EXPECT_THAT(error_of([&] { s.feed_whole(some_tokens(61)); }),
              HasSubstr("longer than the context"));
  EXPECT_EQ(s.tokens(), tokens);
  EXPECT_TRUE(s.feed_whole({}));
  EXPECT_EQ(error_of([&] { s.generate(greedy(1)); }), "session: nothing was fed yet");
}

TEST_F(ServeTest, BadTokensAreNotHeld) {
  const auto e = engine();
  Session s(e);
  s.feed(some_tokens(5));
  EXPECT_THAT(error_of([&] {
                s.feed(std::vector<int32_t>{1, 2, 99});
              }),
              HasSubstr("token id out of range: 99"));
  EXPECT_EQ(s.length(), 5);
  EXPECT_EQ(s.generate(greedy(2)).tokens.size(), 2u);
}

TEST_F(ServeTest, Cancelling) {
  const auto e = engine();
  Session s(e, {.batch = 4});
  int asked = 0;
  EXPECT_FALSE(s.feed(some_tokens(20), [&] { return ++asked > 2; }));
  EXPECT_EQ(s.length(), 8);  // only whole batches
  GenerateOptions o = greedy(100);
  asked = 0;
  o.cancelled = [&] { return ++asked > 3; };
  const Generated result = s.generate(o);
  EXPECT_EQ(result.finish, FinishReason::cancelled);
  EXPECT_EQ(result.tokens.size(), 3u);
  EXPECT_EQ(s.length(), 11);
}

TEST_F(ServeTest, EndsWhereTheModelDoes) {
  TinyLlama tiny{.seed = 1};
  tiny.edit = [](io::GgufWriter& w) {
    w.set_u32("tokenizer.ggml.eos_token_id", 0);  // a likely token
  };
  const auto e = engine(tiny);
  // One of the seeds samples the end token within 60 tokens.
  bool ended = false;
  for (uint64_t seed = 0; seed < 20 && !ended; ++seed) {
    GenerateOptions o = sampled(60, seed);
    o.ignore_end = false;
    const Generated result = run(e, o);
    for (int32_t token : result.tokens) EXPECT_NE(token, 0);
    ended = result.finish == FinishReason::end_of_generation;
  }
  EXPECT_TRUE(ended);
}

TEST_F(ServeTest, PaddingRowsAreNeverDrawn) {
  TinyLlama tiny{.padding_rows = 400};
  const auto e = engine(tiny);
  EXPECT_EQ(e->model().vocab_size(), 440);
  for (int32_t token : run(e, sampled(60, 1)).tokens) EXPECT_LT(token, 40);
}

TEST_F(ServeTest, CacheGrowsPastItsFirstSize) {
  const auto e = engine({.context = 1200, .dtype = DType::q4_0});
  Session s(e, {.batch = 100});
  s.feed(some_tokens(700));
  Session small(e, {.batch = 64});
  small.feed(some_tokens(700));
  EXPECT_EQ(s.generate(greedy(5)).tokens, small.generate(greedy(5)).tokens);
}

// A bias of 0 changes nothing but where tokens are drawn.
TEST_F(ServeTest, TheHostsSamplerDrawsTheDevicesTokens) {
  const auto e = engine({});
  GenerateOptions options{.max_tokens = 30, .ignore_end = true};
  options.sampler.temperature = 1.5f;
  options.sampler.repetition_penalty = 1.2f;
  const auto generated = [&] {
    Session session(e);
    session.feed(some_tokens(5));
    std::vector<int32_t> tokens = session.generate(options).tokens;
    const std::vector<int32_t> more = session.generate(options).tokens;
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
  };
  const std::vector<int32_t> expected = generated();
  options.sampler.logit_bias = {{0, 0.0f}};
  EXPECT_EQ(generated(), expected);
}

TEST_F(ServeTest, StopStringsEndTheText) {
  const auto e = engine({});
  GenerateOptions options{.max_tokens = 60, .ignore_end = true};
  options.sampler.temperature = 2;
  Session whole(e);
  whole.feed(some_tokens(5));
  const std::string text = whole.generate(options).text;
  ASSERT_GT(text.size(), 20U);
  const std::string stop = text.substr(10, 3);
  options.stop = {"not in the text", stop};
  std::string shown;
  options.on_text = [&](std::string_view piece) { shown += piece; };
  Session session(e);
  session.feed(some_tokens(5));
  const Generated result = session.generate(options);
  EXPECT_EQ(result.finish, FinishReason::stop_string);
  EXPECT_EQ(result.text, text.substr(0, text.find(stop)));
  EXPECT_EQ(shown, result.text);
  EXPECT_EQ(session.length(), 5 + static_cast<int64_t>(result.tokens.size()));
}

TEST_F(ServeTest, SentencePieceVocabularies) {
  TinyLlama tiny;
  std::vector<std::string> names = TinyLlama::tokens();
  for (std::string& name : names) {  // SentencePiece marks a space with U+2581
    if (name.starts_with("\u0120")) name = "\u2581" + name.substr(2);
  }
  const auto edit = [&](io::GgufWriter& w) {
    w.set_string("tokenizer.ggml.model", "llama");
    w.remove("tokenizer.ggml.pre");
    w.remove("tokenizer.ggml.merges");
    const std::vector<std::string_view> views(names.begin(), names.end());
    w.set_strings("tokenizer.ggml.tokens", views);
    std::vector<float> scores;
    for (size_t i = 0; i < names.size(); ++i) scores.push_back(-static_cast<float>(i));
    w.set_f32s("tokenizer.ggml.scores", scores);
  };
  tiny.edit = edit;
  const auto e = engine(tiny);
  const auto id = [&](const char* text) { return *e->tokenizer().token_id(text); };
  // As in Llama 2's files: a BOS token and a space precede the text.
  EXPECT_EQ(e->tokenizer().encode("the a"),
            (std::vector<int32_t>{37, id(" "), id("th"), id("e"), id(" a")}));
  EXPECT_EQ(e->tokenizer().decode(e->tokenizer().encode("the a"), true), "the a");
  EXPECT_EQ(run(e, greedy(12)).tokens.size(), 12u);
  // Neither a token nor byte tokens: the unknown token is 0 if the file doesn't tell.
  const auto unknown = [&] {
    return engine(tiny)->tokenizer().encode("a\u4f60\u597da", {.add_bos = false}).at(1);
  };
  EXPECT_EQ(unknown(), 0);
  tiny.edit = [&](io::GgufWriter& w) {
    edit(w);
    std::vector<int32_t> types(names.size(), 1);
    types[5] = 2;
    w.set_i32s("tokenizer.ggml.token_type", types);
  };
  EXPECT_EQ(unknown(), 5);
  tiny.edit = [&](io::GgufWriter& w) {
    edit(w);
    w.set_u32("tokenizer.ggml.unknown_token_id", 7);
  };
  EXPECT_EQ(unknown(), 7);

  tiny.edit = [&](io::GgufWriter& w) {  // as in Gemma's files
    edit(w);
    w.set_bool("tokenizer.ggml.add_space_prefix", false);
    w.set_bool("tokenizer.ggml.add_bos_token", false);
  };
  EXPECT_EQ(engine(tiny)->tokenizer().encode("the a"),
            (std::vector<int32_t>{id("th"), id("e"), id(" a")}));
  tiny.edit = [&](io::GgufWriter& w) {
    edit(w);
    w.remove("tokenizer.ggml.scores");
  };
  EXPECT_THAT(error_of([&] { engine(tiny); }), HasSubstr("40 tokens, 0 scores"));
}

TEST_F(ServeTest, SessionOptionsOutOfRange) {
  const auto e = engine();
  EXPECT_THAT(error_of([&] { Session(e, {.context = -1}); }), StartsWith("session: options out"));
  EXPECT_THAT(error_of([&] { Session(e, {.batch = 0}); }), StartsWith("session: options out"));
  EXPECT_THAT(error_of([&] { Session(e, {.cache_dtype = DType::i32}); }), HasSubstr("i32"));
  EXPECT_THAT(error_of([&] { Session(e, {.context = 1'000'000'000'000}); }),
              HasSubstr("kv cache: "));
  EXPECT_EQ(Session(e, {}).context(), 96);
  GenerateOptions o = greedy(1);
  o.sampler.top_p = 2;
  Session s(e);
  s.feed(some_tokens(2));
  EXPECT_THAT(error_of([&] { s.generate(o); }), HasSubstr("top_p"));
  for (const int32_t id : {-1, 40, INT32_MAX}) {
    o = greedy(1);
    o.sampler.logit_bias = {{3, 1.0f}, {id, 1.0f}};
    EXPECT_EQ(
        error_of([&] { s.generate(o); }),
        fmt::format("generate: logit_bias: token id out of range: {}: the vocabulary has 40 tokens",
                    id));
    o = greedy(1);
    o.sampler.dry_breakers = {id};
    EXPECT_EQ(
        error_of([&] { s.generate(o); }),
        fmt::format(
            "generate: dry_breakers: token id out of range: {}: the vocabulary has 40 tokens", id));
  }
}

/// The scores of chunks; with `bos`, texts of the vocabulary begin with that token.
void check_perplexity(const std::string& path, bool bos) {
  TinyLlama tiny;
  tiny.edit = [&](io::GgufWriter& w) { w.set_bool("tokenizer.ggml.add_bos_token", bos); };
  tiny.write(path);
  const auto e = Engine::load(path);
  const auto tokens = some_tokens(61);
  const Perplexity got = perplexity(*e, tokens, {.context = 20, .cache_dtype = DType::f32});
  EXPECT_EQ(got.tokens, 61);
  std::vector<double> expected;
  for (size_t start = 0; start < tokens.size(); start += 20) {
    std::vector<int32_t> part(
        tokens.begin() + static_cast<int64_t>(start),
        tokens.begin() + static_cast<int64_t>(std::min(start + 20, tokens.size())));
    if (bos && start > 0) part.front() = e->tokenizer().bos().value();
    const auto logits = tiny.reference(part);
    for (size_t i = 0; i + 1 < part.size(); ++i) {
      double sum = 0;
      for (double v : logits[i]) sum += std::exp(v);
      expected.push_back(std::log(sum) - logits[i][static_cast<size_t>(part[i + 1])]);
    }
  }
  ASSERT_EQ(got.nll.size(), 57u);  // three chunks of 20; a single last token has no score
  ASSERT_EQ(expected.size(), 57u);
  double mean = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(got.nll[i], expected[i], 1e-5) << i;
    mean += expected[i] / 57;
  }
  EXPECT_NEAR(got.mean_nll, mean, 1e-5);
}

TEST_F(ServeTest, PerplexityFollowsTheEquations) {
  check_perplexity(path(), false);
  check_perplexity(path(), true);
}

TEST_F(ServeTest, PerplexityErrors) {
  const auto e = engine();
  auto error = [&](std::vector<int32_t> tokens, SessionOptions o = {}) {
    return error_of([&] { perplexity(*e, tokens, o); });
  };
  EXPECT_EQ(error({}),
            "perplexity: nothing to score: 0 tokens, context 96, batch 512: need at "
            "least 2 tokens and a context of 2");
  EXPECT_THAT(error({1}), HasSubstr("1 tokens"));
  EXPECT_THAT(error({1, 2, 3}, {.context = 1}), HasSubstr("context 1"));
  EXPECT_THAT(error({1, 2, 3}, {.batch = 0}), HasSubstr("batch 0"));
  EXPECT_THAT(error({1, 2, 99}), HasSubstr("token id out of range: 99"));
  EXPECT_THAT(error({-1, 2}), HasSubstr("token id out of range: -1"));
}

/// The functions that the command and Python use to make tokens.
TEST_F(ServeTest, ConversationsAndEmptyPrompts) {
  const std::vector<text::ChatMessage> messages = {{"user", "a b"}};
  const auto e = engine();  // the file's template gives ChatML's turns
  EXPECT_EQ(e->chat().built_in(), "");
  EXPECT_EQ(e->encode_chat(messages), text::ChatTemplate("", e->tokenizer()).encode(messages));
  const std::string with_system =
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
      "{{ '<|im_start|>system\nBe brief<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
      "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  TinyLlama tiny{.dtype = DType::q8_0};
  tiny.edit = [&](io::GgufWriter& w) { w.set_string("tokenizer.chat_template", with_system); };
  const auto brief = engine(tiny);
  EXPECT_EQ(brief->encode_chat(messages), e->encode_chat(std::vector<text::ChatMessage>{
                                              {"system", "Be brief"}, {"user", "a b"}}));
  EXPECT_NE(brief->encode_chat(messages), e->encode_chat(messages));
  tiny.edit = [](io::GgufWriter& w) { w.set_string("tokenizer.chat_template", ""); };
  const auto bare = engine(tiny);
  EXPECT_EQ(bare->chat().built_in(), "ChatML");
  EXPECT_EQ(bare->encode_chat(messages), e->encode_chat(messages));
  tiny.edit = [](io::GgufWriter& w) { w.set_string("tokenizer.chat_template", "{{ turns"); };
  const auto broken = engine(tiny);
  EXPECT_THAT(error_of([&] { broken->encode_chat(messages); }),
              HasSubstr(path() + ": chat template: a tag {{ isn't closed: line 1"));

  EXPECT_EQ(e->prompt_or_start({3, 4}), (std::vector<int32_t>{3, 4}));
  const std::optional<int32_t> bos = e->tokenizer().bos(), eos = e->tokenizer().eos();
  EXPECT_EQ(e->prompt_or_start({}), std::vector<int32_t>{bos ? *bos : eos.value()});
  tiny.edit = [](io::GgufWriter& w) {
    w.remove("tokenizer.ggml.bos_token_id");
    w.remove("tokenizer.ggml.eos_token_id");
  };
  const auto without = engine(tiny);
  EXPECT_THAT(error_of([&] { without->prompt_or_start({}); }),
              HasSubstr("generate: empty prompt: " + path()));
}

TEST_F(ServeTest, UnknownPreTokenizersAreWarnedOf) {
  TinyLlama tiny;
  tiny.edit = [](auto& w) { w.set_string("tokenizer.ggml.pre", "other"); };
  EXPECT_THAT(engine(std::move(tiny))->tokenizer().warning(), HasSubstr("'other'"));
  EXPECT_EQ(engine()->tokenizer().warning(), "");
}

// The digest of the weights is made after they were loaded.
TEST_F(ServeTest, FilesThatChangeBeforeTheDigest) {
  TinyLlama().write(path());
  set_log([&](std::string_view line) {
    if (line.starts_with("loaded ")) std::ofstream(path(), std::ios::app) << "x";
  });
  const std::string message = error_of([&] { Engine::load(path()); });
  set_log({});
  EXPECT_EQ(message, "load: file was changed while it was in use: " + path() + ": load it again");
}

TEST_F(ServeTest, VocabulariesThatDontFit) {
  EXPECT_THAT(load_error([](auto& w) { w.remove("tokenizer.ggml.tokens"); }),
              HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(load_error([](auto& w) { w.set_string("tokenizer.ggml.model", "rwkv"); }),
              HasSubstr("rwkv"));
  EXPECT_THAT(load_error([](auto& w) { w.set_u32("tokenizer.ggml.eos_token_id", 40); }),
              HasSubstr("40"));
  TinyLlama tiny;
  tiny.padding_rows = -1;
  EXPECT_THAT(error_of([&] { engine(tiny); }),
              HasSubstr("vocabulary larger than the embedding: 40 tokens, 39 rows"));
}

}  // namespace
}  // namespace wick::serve
