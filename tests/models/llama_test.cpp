// Compares tiny Llama models with the equations in f64, and variants of a computation with each
// other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/base/quant.h"
#include "wick/models/decoder_lm.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::error_of;
using test::some_tokens;
using test::TinyLlama;
using testing::HasSubstr;

std::unique_ptr<CausalLm> load(TinyLlama& tiny, const TempFolder& folder) {
  tiny.write(folder.path("m.gguf"));
  return CausalLm::load(*io::Gguf::open(folder.path("m.gguf")), {});
}

/// Returns the logits of all tokens, run in pieces of `piece` tokens.
std::vector<float> logits_by(const CausalLm& model, const std::vector<int32_t>& tokens,
                             size_t piece, DType cache_dtype) {
  nn::KvCache cache = model.make_cache(static_cast<int64_t>(tokens.size()), cache_dtype);
  std::vector<float> all;
  for (size_t at = 0; at < tokens.size(); at += piece) {
    const auto part = std::span(tokens).subspan(at, std::min(piece, tokens.size() - at));
    const auto logits = model.forward(part, cache, Logits::all).to_vector<float>();
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

/// Returns the root mean square of the differences relative to that of the values.
double relative_error(const std::vector<float>& got,
                      const std::vector<std::vector<double>>& expected) {
  double difference = 0, size = 0;
  size_t i = 0;
  for (const auto& row : expected) {
    for (double v : row) {
      const double d = static_cast<double>(got[i++]) - v;
      difference += d * d;
      size += v * v;
    }
  }
  return i == got.size() ? std::sqrt(difference / size) : INFINITY;
}

struct Variant {
  const char* name;
  TinyLlama tiny;
};

std::vector<Variant> variants() {
  return {
      {"plain", {}},
      {"tied", {.tied = true}},
      {"biases", {.biases = true}},
      {"every head its own", {.kv_heads = 4}},
      {"one key head", {.kv_heads = 1}},
      {"wide values", {.key_size = 16, .value_size = 24}},
      {"narrow values", {.key_size = 24, .value_size = 8, .rope_dims = 24}},
      {"part rotated", {.rope_dims = 10}},
      {"one layer, three heads",
       {.layers = 1, .heads = 3, .kv_heads = 3, .key_size = 32, .value_size = 32, .rope_dims = 32}},
      {"the largest heads",
       {.heads = 2, .kv_heads = 1, .key_size = 576, .value_size = 512, .rope_dims = 64}},
      {"window", {.window = 5}},
      {"window of one", {.window = 1}},
      {"high base", {.rope_base = 500000.0}},
      {"linear", {.rope_factor = 4.0, .rope_scaling = "linear"}},
      {"yarn",
       {.rope_base = 50.0, .rope_factor = 4.0, .rope_scaling = "yarn", .original_context = 200}},
      {"llama3", {.rope_scaling = "llama3", .rope_divisors = {1, 1, 1.5f, 2, 3.75f, 8, 8, 8}}},
      {"padded", {.padding_rows = 5}},
  };
}

TEST(Llama, FollowsTheEquations) {
  TempFolder folder;
  const auto tokens = some_tokens(24);
  std::vector<std::vector<float>> outcomes;
  for (Variant& v : variants()) {
    const auto model = load(v.tiny, folder);
    EXPECT_EQ(model->vocab_size(), v.tiny.rows());
    const auto logits = logits_by(*model, tokens, 24, DType::f32);
    EXPECT_LT(relative_error(logits, v.tiny.reference(tokens)), 2e-6) << v.name;
    // A 16-bit cache adds only its rounding error.
    const double half =
        relative_error(logits_by(*model, tokens, 24, DType::f16), v.tiny.reference(tokens));
    EXPECT_LT(half, 1e-3) << v.name;
    EXPECT_GT(half, 1e-6) << v.name;
    outcomes.push_back(logits);
  }
  // Every variant gives different results.
  for (size_t i = 0; i < outcomes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(outcomes[i], outcomes[j]) << i << " " << j;
  }
}

TEST(Llama, EveryWeightType) {
  TempFolder folder;
  const auto tokens = some_tokens(24);
  std::vector<std::pair<DType, double>> types = {{DType::f16, 1e-3}, {DType::bf16, 5e-3}};
  for (const QuantInfo& quant : kQuants) {  // own kernels round activations to 8 bits
    types.emplace_back(quant.dtype, dtypes::kOwnProducts.contains(quant.dtype) ? 0.03 : 1e-3);
  }
  for (const auto& [dtype, bound] : types) {
    TinyLlama tiny = TinyLlama::of_type(dtype);
    tiny.biases = true;
    const auto model = load(tiny, folder);
    EXPECT_LT(relative_error(logits_by(*model, tokens, 24, DType::f32), tiny.reference(tokens)),
              bound)
        << name(dtype);
  }
}

// A file may have a factor for each matrix, for example one with nvfp4 weights.
TEST(Llama, FactorsOfMatrices) {
  TempFolder folder;
  const auto tokens = some_tokens(24);
  for (const bool biases : {false, true}) {
    for (const DType dtype : {DType::f32, DType::nvfp4}) {
      TinyLlama tiny = TinyLlama::of_type(dtype);
      tiny.scales = true;
      tiny.biases = biases;
      const auto model = load(tiny, folder);
      EXPECT_LT(relative_error(logits_by(*model, tokens, 24, DType::f32), tiny.reference(tokens)),
                1e-4)
          << name(dtype) << biases;
    }
  }
  TinyLlama wrong;
  wrong.scales = true;
  wrong.shapes["blk.1.ffn_up.scale"] = {2};
  EXPECT_THAT(error_of([&] { load(wrong, folder); }), HasSubstr("blk.1.ffn_up.scale"));
}

TEST(Llama, PromptsInBatchesEqualTokenByToken) {
  TempFolder folder;
  const auto tokens = some_tokens(50);
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!dtypes::kWeights.contains(dtype)) continue;
    TinyLlama tiny = TinyLlama::of_type(dtype);
    tiny.window = dtype == DType::q4_1 ? 7 : 0;
    tiny.biases = dtype == DType::q8_0;
    const auto model = load(tiny, folder);
    for (DType cache : {DType::f32, DType::f16}) {
      const auto one_by_one = logits_by(*model, tokens, 1, cache);
      for (size_t piece : {2, 3, 16, 49, 50}) {
        const auto pieces = logits_by(*model, tokens, piece, cache);
        if (is_block(dtype)) {
          ASSERT_EQ(pieces, one_by_one) << name(dtype) << " by " << piece;
          continue;
        }
        ASSERT_EQ(pieces.size(), one_by_one.size());
        for (size_t i = 0; i < pieces.size(); ++i) {
          ASSERT_NEAR(pieces[i], one_by_one[i], cache == DType::f32 ? 2e-4 : 2e-2)
              << name(dtype) << " by " << piece;
        }
      }
    }
  }
}

TEST(Llama, ThreadsDontChangeQuantisedResults) {
  TempFolder folder;
  const auto tokens = some_tokens(40);
  for (DType dtype : {DType::q4_0, DType::q8_0}) {
    TinyLlama tiny{.dtype = dtype};
    const auto model = load(tiny, folder);
    const int before = cpu::threads();
    cpu::set_threads(1);
    const auto one = logits_by(*model, tokens, 16, DType::f16);
    cpu::set_threads(2);
    const auto two = logits_by(*model, tokens, 16, DType::f16);
    cpu::set_threads(3);
    const auto three = logits_by(*model, tokens, 16, DType::f16);
    cpu::set_threads(before);
    EXPECT_EQ(one, two);
    EXPECT_EQ(one, three);
  }
}

TEST(Llama, LongPromptsInSlicesEqualShortPieces) {
  TempFolder folder;
  TinyLlama tiny{.context = 2000, .dtype = DType::q8_0};
  const auto model = load(tiny, folder);
  const auto tokens = some_tokens(300);
  const int before = cpu::threads();
  cpu::set_threads(1);
  const auto pieces = logits_by(*model, tokens, 50, DType::f16);
  for (size_t piece : {127, 128, 211, 300}) {
    EXPECT_EQ(logits_by(*model, tokens, piece, DType::f16), pieces) << "by " << piece;
  }
  nn::KvCache cache = model->make_cache(301, DType::f16);
  model->forward(std::span(tokens).first(17), cache, Logits::last);
  const Tensor last = model->forward(std::span(tokens).subspan(17), cache, Logits::last);
  EXPECT_EQ(last.to_vector<float>(), std::vector<float>(pieces.end() - tiny.rows(), pieces.end()));
  EXPECT_EQ(cache.length(), 300);
  // The cache contains the last layer's keys and values of tokens whose logits weren't requested.
  const auto next = model->forward(std::span(tokens).first(1), cache, Logits::last);
  auto longer = tokens;
  longer.push_back(tokens.front());
  const auto expected = logits_by(*model, longer, 50, DType::f16);
  EXPECT_EQ(next.to_vector<float>(),
            std::vector<float>(expected.end() - tiny.rows(), expected.end()));
  cpu::set_threads(before);
}

TEST(Llama, SeveralThreadsShareAModel) {
  TempFolder folder;
  TinyLlama tiny{.context = 2000, .dtype = DType::q8_0};
  const auto model = load(tiny, folder);
  const auto tokens = some_tokens(300);  // more than the initial rows of the rope table
  std::vector<std::vector<float>> results(3);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] { result = logits_by(*model, tokens, 37, DType::f16); });
    }
  }
  const auto alone = logits_by(*model, tokens, 37, DType::f16);
  for (const auto& result : results) EXPECT_EQ(result, alone);
}

TEST(Llama, LastLogitsAreTheLastOfAll) {
  TempFolder folder;
  TinyLlama tiny{.dtype = DType::q4_0};
  const auto model = load(tiny, folder);
  const auto tokens = some_tokens(9);
  const auto all = logits_by(*model, tokens, 9, DType::f16);
  nn::KvCache cache = model->make_cache(9, DType::f16);
  const Tensor last = model->forward(tokens, cache, Logits::last);
  EXPECT_EQ(last.shape(), (Shape{1, tiny.rows()}));
  EXPECT_EQ(last.to_vector<float>(), std::vector<float>(all.end() - tiny.rows(), all.end()));
}

TEST(Llama, ForwardErrorsLeaveTheCacheAsItWas) {
  TempFolder folder;
  TinyLlama tiny;
  const auto model = load(tiny, folder);
  nn::KvCache cache = model->make_cache(4, DType::f16);
  const auto run = [&](std::vector<int32_t> tokens) {
    return error_of([&] { model->forward(tokens, cache, Logits::last); });
  };
  EXPECT_EQ(run({}), "forward: no tokens");
  EXPECT_EQ(run({0, 40}), "forward: token id out of range: 40: the vocabulary has 40");
  EXPECT_THAT(run({-1}), HasSubstr("token id out of range: -1"));
  EXPECT_THAT(run({INT32_MAX}), HasSubstr("token id out of range"));
  EXPECT_EQ(run({1, 2, 3, 4, 5}),
            "kv cache: context is full: 0 positions held, 5 more: the context is 4");
  EXPECT_EQ(cache.length(), 0);
  EXPECT_EQ(run({1, 2, 3, 4}), "no error");
  EXPECT_THAT(run({1}), HasSubstr("context is full"));
  EXPECT_EQ(cache.length(), 4);
}

}  // namespace
}  // namespace wick::models
