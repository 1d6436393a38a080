// Models with recurrent states: the bits of a row depend on its own sequence alone, however its
// tokens are split into steps and whatever shares a step, and cleared sequences start anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "tests/test_devices.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"

namespace wick::models {
namespace {

using test::error_of;
using test::some_tokens;
using test::TinyModel;
using testing::HasSubstr;

using Tokens = std::vector<int32_t>;
using Floats = std::vector<float>;

constexpr const char* kModels[] = {"mamba2", "falcon-h1", "lfm2", "qwen3next"};
constexpr int64_t kTokens = 40;

class RecurrentModels : public testing::Test {
 protected:
  void SetUp() override { setenv("WICK_REPRODUCIBLE", "1", 1); }

  std::unique_ptr<CausalLm> load(const char* name, Device device) {
    TinyModel tiny = TinyModel::read(name);
    tiny.dtype = DType::q8_0;  // linear layers of floats may depend on the number of rows
    tiny.write(folder_.path("m.gguf"));
    return CausalLm::load(*io::Gguf::open(folder_.path("m.gguf")),
                          {.device = device, .progress = {}});
  }

 private:
  io::test::TempFolder folder_;
};

/// The logits of all tokens, in steps of these sizes.
Floats in_steps(const CausalLm& model, nn::KvCache& cache, const Tokens& tokens,
                const std::vector<int64_t>& steps) {
  Floats all;
  size_t first = 0;
  for (const int64_t count : steps) {
    const auto part = std::span(tokens).subspan(first, static_cast<size_t>(count));
    const Floats logits = model.forward(part, cache, Logits::all).to_vector<float>();
    all.insert(all.end(), logits.begin(), logits.end());
    first += part.size();
  }
  return all;
}

TEST_F(RecurrentModels, StepsOfAnySizeGiveTheSameBits) {
  const Tokens tokens = some_tokens(kTokens);
  for (const char* name : kModels) {
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(name) + " on " + device.str());
      const auto model = load(name, device);
      nn::KvCache cache = model->make_cache(kTokens, DType::f32);
      const Floats whole = in_steps(*model, cache, tokens, {kTokens});
      for (const std::vector<int64_t>& steps :
           {std::vector<int64_t>{1, 2, 1, 30, 6}, std::vector<int64_t>(kTokens, 1)}) {
        cache.truncate(0);
        EXPECT_EQ(in_steps(*model, cache, tokens, steps), whole) << steps.size() << " steps";
      }
      cache.truncate(0);
      Decoder decoder(*model, cache);
      Floats decoded;
      for (const int32_t token : tokens) {
        const Floats row = decoder.step(token).to_vector<float>();
        decoded.insert(decoded.end(), row.begin(), row.end());
      }
      EXPECT_EQ(decoded, whole);
    }
  }
}

TEST_F(RecurrentModels, SequencesOfABatchGetTheBitsTheyHaveAlone) {
  constexpr int64_t kSequences = 5;
  constexpr int64_t kSteps[kSequences][3] = {
      {7, 1, 9}, {7, 1, 1}, {1, 1, 9}, {3, 20, 1}, {3, 1, 1}};
  for (const char* name : kModels) {
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(name) + " on " + device.str());
      const auto model = load(name, device);
      std::vector<Tokens> tokens;
      std::vector<Floats> alone;
      for (int64_t s = 0; s < kSequences; ++s) {
        tokens.push_back(some_tokens(kTokens));
        for (int32_t& token : tokens.back()) token = static_cast<int32_t>((token + 7 * s) % 40);
        nn::KvCache cache = model->make_cache(kTokens, DType::f32);
        alone.push_back(
            in_steps(*model, cache, tokens.back(), {kSteps[s][0] + kSteps[s][1] + kSteps[s][2]}));
      }
      nn::KvCache cache = model->make_cache(kTokens, DType::f32, kSequences);
      std::vector<Floats> got(kSequences);
      for (int64_t step = 0; step < 3; ++step) {
        std::vector<BatchInput> inputs;
        for (const int64_t s : {3, 0, 4, 1, 2}) {
          inputs.push_back({s, std::span(tokens[static_cast<size_t>(s)])
                                   .subspan(static_cast<size_t>(cache.length(s)),
                                            static_cast<size_t>(kSteps[s][step]))});
        }
        const Floats logits = model->forward(inputs, cache, Logits::all).to_vector<float>();
        auto at = logits.begin();
        for (const BatchInput& input : inputs) {
          const auto end = at + static_cast<ptrdiff_t>(input.tokens.size()) * model->vocab_size();
          Floats& own = got[static_cast<size_t>(input.sequence)];
          own.insert(own.end(), at, end);
          at = end;
        }
      }
      for (size_t s = 0; s < kSequences; ++s) EXPECT_EQ(got[s], alone[s]) << s;
    }
  }
}

TEST_F(RecurrentModels, SequencesAreClearedAndNotShortened) {
  const Tokens tokens = some_tokens(kTokens);
  const auto model = load("lfm2", {});
  nn::KvCache cache = model->make_cache(kTokens, DType::f32, 2);
  EXPECT_TRUE(cache.has_states());
  const BatchInput inputs[] = {{0, std::span(tokens).first(9)}, {1, std::span(tokens).first(5)}};
  (void)model->forward(inputs, cache, Logits::last);
  EXPECT_THAT(error_of([&] { cache.truncate(4); }),
              HasSubstr("kv cache: a recurrent state can't be shortened: 9 positions held, 4 to "
                        "keep: truncate to 0"));
  EXPECT_EQ(cache.length(), 9);
  cache.truncate(9);
  cache.truncate(0, 1);
  const BatchInput next[] = {{0, std::span(tokens).subspan(9, 3)}, {1, std::span(tokens).first(3)}};
  const Floats logits = model->forward(next, cache, Logits::all).to_vector<float>();
  nn::KvCache fresh = model->make_cache(kTokens, DType::f32);
  const Floats whole = in_steps(*model, fresh, tokens, {12});
  const auto row = static_cast<ptrdiff_t>(model->vocab_size());
  EXPECT_EQ(Floats(logits.begin(), logits.begin() + 3 * row),
            Floats(whole.begin() + 9 * row, whole.end()));
  EXPECT_EQ(Floats(logits.begin() + 3 * row, logits.end()),
            Floats(whole.begin(), whole.begin() + 3 * row));
}

}  // namespace
}  // namespace wick::models
