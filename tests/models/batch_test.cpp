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

/// Expects equal bits. With float weights on a GPU, gemms choose their order by the number of rows
/// of a sequence in a step (docs/design/numerics/matmul.md), so a prompt in pieces only needs to
/// give numbers close to those of the whole prompt.
void expect_row(const std::vector<float>& row, const std::vector<float>& wanted, bool exact,
                const std::string& what) {
  if (exact) {
    ASSERT_EQ(row, wanted) << what;
    return;
  }
  ASSERT_EQ(row.size(), wanted.size());
  for (size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], wanted[i], 2e-5f) << what;
}

/// The number of tokens of sequence s in a step. The pieces of sequences 0 and 1, which the test
/// compares, use every order of sums: single rows, few rows and many rows.
int64_t piece(int64_t s, int64_t step) {
  constexpr int64_t kPieces[][6] = {
      {20, 1, 70, 1, 6, 1}, {1, 33, 1, 9, 1, 2}, {1, 1, 5, 1, 66, 1}, {3, 1, 1, 12, 1, 1}};
  return kPieces[s % 4][step];
}

/// Returns the logits after each step of a sequence that runs alone.
std::vector<std::vector<float>> steps_alone(const CausalLm& model, int64_t s, const Tokens& tokens,
                                            Logits logits) {
  nn::KvCache cache = model.make_cache(200, DType::f16);
  std::vector<std::vector<float>> all;
  size_t first = 0;
  for (int64_t step = 0; step < 6; ++step) {
    const auto count = static_cast<size_t>(piece(s, step));
    all.push_back(
        model.forward(std::span(tokens).subspan(first, count), cache, logits).to_vector<float>());
    first += count;
  }
  return all;
}

/// Runs sequences alone and in batches with 1 to 33 others, with prompts and single tokens in one
/// step. The logits have the same bits.
TEST_F(BatchTest, FloatRowsAreThoseOfTheirSequencesSteps) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    TinyLlama tiny{.context = 200, .dtype = dtype};
    for (const Device device : test::cpu_and_devices()) {
      const auto model = load(tiny, folder_, device);
      constexpr int64_t kMost = 34;
      const auto tokens = [](int64_t s) { return tokens_of(150, s); };
      for (const Logits logits : {Logits::last, Logits::all}) {
        const std::vector<std::vector<float>> expected[] = {
            steps_alone(*model, 0, tokens(0), logits), steps_alone(*model, 1, tokens(1), logits)};
        for (const int64_t sequences : {2, 3, 4, 9, 10, 34}) {
          if (logits == Logits::all && sequences != 4) continue;
          nn::KvCache cache = model->make_cache(200, DType::f16, kMost);
          std::vector<size_t> first(kMost, 0);
          for (int64_t step = 0; step < 6; ++step) {
            // The compared sequences, 0 and 1, are the second and the last of the batch.
            std::vector<Tokens> pieces;
            std::vector<int64_t> order;
            for (int64_t i = 2; i < sequences; ++i) order.push_back(i);
            order.insert(order.begin() + (order.empty() ? 0 : 1), 0);
            order.push_back(1);
            int64_t rows = 0, at[2] = {};
            for (const int64_t s : order) {
              const auto count = piece(s, step);
              const Tokens all = tokens(s);
              const auto from = all.begin() + static_cast<ptrdiff_t>(first[static_cast<size_t>(s)]);
              pieces.emplace_back(from, from + count);
              first[static_cast<size_t>(s)] += static_cast<size_t>(count);
              if (s < 2) at[s] = rows;
              rows += logits == Logits::all ? count : 1;
            }
            std::vector<BatchInput> inputs;
            for (size_t i = 0; i < order.size(); ++i) inputs.push_back({order[i], pieces[i]});
            const auto got = model->forward(inputs, cache, logits).to_vector<float>();
            for (const int64_t s : {0, 1}) {
              const auto& wanted = expected[s][static_cast<size_t>(step)];
              const auto from = got.begin() + at[s] * model->vocab_size();
              ASSERT_EQ(std::vector<float>(from, from + static_cast<ptrdiff_t>(wanted.size())),
                        wanted)
                  << device.str() << " " << name(dtype) << ", " << sequences << " sequences, step "
                  << step << ", sequence " << s;
            }
          }
        }
      }
    }
  }
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

/// Steps with page tables and positions that the test makes. An error reports what is wrong in them
/// (on a GPU once the host waits for it), and the caches of other sequences don't change.
TEST_F(BatchTest, WrongTablesAndPositions) {
  TinyLlama tiny{.context = 600, .dtype = DType::q8_0};
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const bool cpu = device.kind == DeviceKind::cpu;
    const auto model = load(tiny, folder_, device);
    nn::KvCache cache = model->make_cache(600, DType::f16, 2);
    const Tokens first = tokens_of(5, 1), second = tokens_of(12, 2), next = tokens_of(1, 3);
    const BatchInput inputs[] = {{0, first}, {1, second}};
    model->forward(inputs, cache, Logits::last);
    const int64_t entries = cache.reach() / nn::KvCache::kPage;
    const auto words = [&](std::vector<uint32_t> of, const Shape& shape) {
      return Tensor::from(of, shape, device);
    };
    const auto refusal = [&](int64_t each, uint32_t position, std::vector<uint32_t> pages) {
      const auto sequences = static_cast<int64_t>(pages.size());
      std::vector<uint32_t> tokens(static_cast<size_t>(sequences * each), 1), positions, table;
      for (const uint32_t page : pages) {
        for (int64_t i = 0; i < each; ++i) positions.push_back(position + static_cast<uint32_t>(i));
        for (int64_t i = 0; i < entries; ++i) table.push_back(page);
      }
      Batch batch;
      batch.tokens = words(tokens, {sequences * each});
      batch.runs = {{words(positions, {sequences * each}), words(table, {sequences, entries})}};
      return error_of([&] {
        model->forward(batch, cache);
        backend(device).synchronize();
      });
    };
    const auto last = static_cast<uint32_t>(cache.reach());
    for (const int64_t each : {1, 12}) {
      EXPECT_THAT(refusal(each, 20, {999}), HasSubstr(cpu ? "page out of range: 999" : "id 999"));
      EXPECT_THAT(refusal(each, last, {0}),
                  HasSubstr(cpu ? "position outside the cache" : "id out of range"));
      EXPECT_THAT(refusal(each, 12, {1, 1}), HasSubstr("two sequences write to one page: 1"));
    }
    // The caches of the sequences are unchanged.
    nn::KvCache alone = model->make_cache(600, DType::f16);
    model->forward(first, alone, Logits::last);
    const BatchInput one{0, next};
    EXPECT_EQ(model->forward({&one, 1}, cache, Logits::last).to_vector<float>(),
              model->forward(next, alone, Logits::last).to_vector<float>());
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
