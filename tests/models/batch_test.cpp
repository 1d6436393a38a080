// Steps with several sequences, on the CPU and on the devices that WICK_TEST_DEVICES names. A row's
// bits must be those of its sequence alone, independent of the other rows in the batch.
#include "wick/models/batch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/test_devices.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::error_of;
using test::TinyLlama;
using testing::HasSubstr;

using Tokens = std::vector<int32_t>;

std::unique_ptr<CausalLm> load(TinyLlama& tiny, const TempFolder& folder, Device device) {
  tiny.write(folder.path("m.gguf"));
  return CausalLm::load(*io::Gguf::open(folder.path("m.gguf")), {.device = device, .progress = {}});
}

Tokens tokens_of(int64_t count, int64_t seed) {
  Tokens tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 31 + seed * 17 + 5) % 40));
  }
  return tokens;
}

/// Returns the logits of a conversation's tokens, all in one step.
std::vector<float> alone(const CausalLm& model, const Tokens& tokens) {
  nn::KvCache cache = model.make_cache(1000, DType::f16);
  return model.forward(tokens, cache, Logits::all).to_vector<float>();
}

struct Conversation {
  Tokens tokens;
  int64_t run = 0;  // number of tokens that have run
};

class BatchTest : public testing::Test {
 protected:
  void SetUp() override { setenv("WICK_REPRODUCIBLE", "1", 1); }
  TempFolder folder_;
};

/// Expects equal bits. With float weights on a GPU, GEMMs choose their order by the number of
/// rows (docs/design/numerics/matmul.md), so the numbers only need to be close.
void expect_row(const std::vector<float>& row, const std::vector<float>& wanted, bool exact,
                const std::string& what) {
  if (exact) {
    ASSERT_EQ(row, wanted) << what;
    return;
  }
  ASSERT_EQ(row.size(), wanted.size());
  for (size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], wanted[i], 2e-5f) << what;
}

/// Prompts and single tokens of sequences that join and leave, in a different combination in each
/// step.
TEST_F(BatchTest, RowsDoNotDependOnWhatSharesTheBatch) {
  for (const DType dtype : {DType::q8_0, DType::f32}) {
    TinyLlama tiny{.context = 1000, .dtype = dtype};
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(device.str() + " " + std::string(name(dtype)));
      const auto model = load(tiny, folder_, device);
      const int64_t vocabulary = model->vocab_size();
      std::vector<Conversation> all;
      for (const int64_t length : {3, 300, 1, 40, 257}) {
        all.push_back({tokens_of(length, static_cast<int64_t>(all.size()))});
      }
      std::vector<std::vector<float>> expected;
      for (const Conversation& c : all) expected.push_back(alone(*model, c.tokens));

      nn::KvCache cache = model->make_cache(1000, DType::f16, 5);
      for (int64_t step = 0;; ++step) {
        std::vector<BatchInput> inputs;
        std::vector<int64_t> ends;
        for (int64_t s = 0; s < 5; ++s) {
          Conversation& c = all[static_cast<size_t>(s)];
          const auto left = static_cast<int64_t>(c.tokens.size()) - c.run;
          if (left == 0 || (step + s) % 4 == 3) continue;
          // Most of a prompt runs at once, then single tokens, some together with larger pieces of
          // other sequences.
          const int64_t count = left > 12             ? left - 10
                                : (s + step) % 5 == 0 ? std::min<int64_t>(left, 3)
                                                      : 1;
          inputs.push_back({s, std::span(c.tokens).subspan(static_cast<size_t>(c.run),
                                                           static_cast<size_t>(count))});
          c.run += count;
          ends.push_back(c.run);
        }
        if (inputs.empty() && step > 40) break;
        if (inputs.empty()) continue;
        const auto logits = model->forward(inputs, cache, Logits::last).to_vector<float>();
        ASSERT_EQ(logits.size(), inputs.size() * static_cast<size_t>(vocabulary));
        for (size_t i = 0; i < inputs.size(); ++i) {
          const auto& wanted = expected[static_cast<size_t>(inputs[i].sequence)];
          const auto from = wanted.begin() + (ends[i] - 1) * vocabulary;
          const std::vector<float> row(logits.begin() + static_cast<ptrdiff_t>(i) * vocabulary,
                                       logits.begin() + static_cast<ptrdiff_t>(i + 1) * vocabulary);
          expect_row(row, std::vector<float>(from, from + vocabulary),
                     dtype != DType::f32 || device.kind == DeviceKind::cpu,
                     fmt::format("step {} sequence {} at {}", step, inputs[i].sequence, ends[i]));
          if (HasFatalFailure()) return;
        }
      }
      for (int64_t s = 0; s < 5; ++s) {
        EXPECT_EQ(cache.length(s), static_cast<int64_t>(all[static_cast<size_t>(s)].tokens.size()));
      }
    }
  }
}

/// Tokens sampled for several sequences at once, each with its own options.
TEST_F(BatchTest, DecoderOfSeveralDrawsWhatEachDrawsAlone) {
  TinyLlama tiny{.context = 600, .dtype = DType::q8_0};
  const std::vector<Tokens> prompts = {tokens_of(250, 1), tokens_of(3, 2), tokens_of(90, 3)};
  std::vector<SamplerOptions> options(3);
  options[0].temperature = 0;
  options[1] = {.temperature = 1.2f, .repetition_penalty = 1.3f, .seed = 11};
  options[2] = {.temperature = 0.9f, .top_k = 0, .seed = 12};
  constexpr int kTokens = 30;  // the first sequence crosses a page boundary
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder_, device);
    std::vector<Tokens> expected;
    for (size_t i = 0; i < prompts.size(); ++i) {
      nn::KvCache cache = model->make_cache(600, DType::f16);
      Decoder decoder(*model, cache);
      const Decoder::Sampling sampling{prompts[i], options[i]};
      decoder.start(model->forward(prompts[i], cache, Logits::last), {&sampling, 1});
      Tokens drawn;
      for (int n = 0; n < kTokens; ++n) drawn.push_back(decoder.next(n + 1 < kTokens).front());
      expected.push_back(drawn);
    }
    nn::KvCache cache = model->make_cache(600, DType::f16, 4);
    const int64_t sequences[] = {2, 0, 3};
    std::vector<BatchInput> inputs;
    std::vector<Decoder::Sampling> sampling;
    for (size_t i = 0; i < prompts.size(); ++i) {
      inputs.push_back({sequences[i], prompts[i]});
      sampling.push_back({prompts[i], options[i]});
    }
    const Tensor first = model->forward(inputs, cache, Logits::last);
    Decoder decoder(*model, cache, sequences);
    decoder.start(first, sampling);
    std::vector<Tokens> drawn(3);
    for (int n = 0; n < kTokens; ++n) {
      const Tokens row = decoder.next(n + 1 < kTokens);
      for (size_t i = 0; i < 3; ++i) drawn[i].push_back(row[i]);
    }
    EXPECT_EQ(drawn, expected);
    EXPECT_EQ(cache.length(1), 0);
  }
}

TEST_F(BatchTest, WhatCannotBeIsRefused) {
  TinyLlama tiny{.context = 600, .dtype = DType::q8_0};
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder_, device);
    nn::KvCache cache = model->make_cache(300, DType::f16, 2);
    const Tokens some = tokens_of(4, 1), none, many = tokens_of(301, 1), wrong = {1, 1 << 20};
    const auto refusal = [&](std::vector<BatchInput> inputs) {
      return error_of([&] { model->forward(inputs, cache, Logits::last); });
    };
    EXPECT_EQ(refusal({}), "forward: no sequences");
    EXPECT_EQ(refusal({{0, some}, {1, none}}), "forward: no tokens");
    EXPECT_EQ(refusal({{0, some}, {0, some}}), "forward: a sequence is given twice: 0");
    EXPECT_EQ(refusal({{0, some}, {2, some}}), "kv cache: no such sequence: 2: there are 2");
    EXPECT_EQ(refusal({{-1, some}}), "kv cache: no such sequence: -1: there are 2");
    EXPECT_THAT(refusal({{1, some}, {0, many}}), HasSubstr("context is full"));
    EXPECT_THAT(refusal({{1, wrong}}), HasSubstr("token id out of range: 1048576"));
    EXPECT_EQ(cache.length(0), 0);
    EXPECT_EQ(cache.length(1), 0);

    const int64_t twice[] = {1, 1}, unknown[] = {0, 5};
    EXPECT_EQ(error_of([&] { Decoder(*model, cache, twice); }),
              "decode: a sequence is given twice");
    EXPECT_THAT(error_of([&] { Decoder(*model, cache, unknown); }), HasSubstr("no such sequence"));
    EXPECT_EQ(error_of([&] { Decoder(*model, cache, std::span<const int64_t>{}); }),
              "decode: no sequences");
    Decoder decoder(*model, cache);
    EXPECT_THAT(error_of([&] { decoder.step(some); }),
                HasSubstr("numbers of tokens and sequences differ"));
    EXPECT_THAT(error_of([&] { decoder.next(true); }), HasSubstr("no token was drawn"));
  }
}

}  // namespace
}  // namespace wick::models
