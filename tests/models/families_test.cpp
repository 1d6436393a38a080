// Compares the architectures with Hugging Face's transformers, whose logits are in data/, and
// devices with the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/record.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "tests/test_devices.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"
#include "wick/models/registry.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::record;
using test::some_tokens;
using test::TinyLlama;
using test::TinyModel;

constexpr int64_t kTokens = 24;  // must match reference/make_models.py

template <class Model>
std::unique_ptr<CausalLm> load(Model tiny, const TempFolder& folder, Device device = {}) {
  tiny.write(folder.path("m.gguf"));
  return CausalLm::load(*io::Gguf::open(folder.path("m.gguf")), {.device = device, .progress = {}});
}

/// Returns the logits of every token of one prompt, `batch` tokens per step. 1: by decode(), as in
/// generation, where the sequence has LongRoPE's final angles.
std::vector<float> logits_by(const CausalLm& model, int64_t batch) {
  const std::vector<int32_t> tokens = some_tokens(kTokens);
  nn::KvCache cache = model.make_cache(kTokens, DType::f32);
  Decoder decoder(model, cache);
  std::vector<float> all;
  for (int64_t at = 0, count = 0; at < kTokens; at += count) {
    const bool decodes = batch == 1 && at >= model.short_context();
    count = std::min(batch == 1 && !decodes ? model.short_context() : batch, kTokens - at);
    const auto part =
        std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(count));
    const BatchInput input{.sequence = 0, .tokens = part, .end = kTokens};
    const Tensor logits =
        decodes ? decoder.step(part[0]) : model.forward({&input, 1}, cache, Logits::all);
    const auto values = logits.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// Returns the largest difference relative to the largest value.
double difference(std::span<const float> got, std::span<const float> expected) {
  if (got.size() != expected.size()) return INFINITY;
  double worst = 0, most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    if (!(std::fabs(d) <= worst)) worst = std::fabs(d);
    most = std::max(most, std::fabs(static_cast<double>(expected[i])));
  }
  return worst / most;
}

/// The rows of every fourth token.
std::vector<float> every_fourth(const std::vector<float>& logits) {
  const size_t row = logits.size() / kTokens;
  std::vector<float> kept;
  for (size_t t = 3; t < kTokens; t += 4) {
    const auto at = logits.begin() + static_cast<ptrdiff_t>(t * row);
    kept.insert(kept.end(), at, at + static_cast<ptrdiff_t>(row));
  }
  return kept;
}

TEST(Families, EveryArchitectureIsTested) {
  std::set<std::string_view> tested;
  const std::vector<TinyModel> models = TinyModel::all();
  for (const TinyModel& tiny : models) tested.insert(tiny.architecture);
  for (const Architecture& a : architectures()) EXPECT_TRUE(tested.contains(a.name)) << a.name;
  EXPECT_EQ(tested.size(), architectures().size());
}

/// The models that make logits.
std::vector<TinyModel> language_models() {
  std::vector<TinyModel> models = TinyModel::all();
  std::erase_if(models, [](const TinyModel& tiny) { return tiny.logits.empty(); });
  return models;
}

TEST(Families, HaveTransformersLogits) {
  const TempFolder folder;
  for (const TinyModel& tiny : language_models()) {
    SCOPED_TRACE(tiny.name);
    ASSERT_EQ(tiny.logits.size(), 6u * 40u);
    const auto model = load(tiny, folder);
    double worst = 0;
    for (const int64_t batch : {kTokens, int64_t{7}, int64_t{1}}) {
      const double d = difference(every_fourth(logits_by(*model, batch)), tiny.logits);
      EXPECT_LT(d, 2e-4) << batch;
      worst = std::max(worst, d);
    }
    record(tiny, {}, "transformers", worst);
  }
}

/// Returns the median of the rows' differences.
double middle_difference(std::span<const float> got, std::span<const float> expected) {
  const size_t row = got.size() / kTokens;
  std::vector<double> differences;
  for (size_t t = 0; t < kTokens; ++t) {
    differences.push_back(difference(got.subspan(t * row, row), expected.subspan(t * row, row)));
  }
  std::nth_element(differences.begin(), differences.begin() + kTokens / 2, differences.end());
  return differences[kTokens / 2];
}

// The rows of quantized weights are also reordered for rope. The rounding of activations may change
// which experts a row goes through, so some rows of models with experts may differ.
TEST(Families, QuantisedWeightsAreNearTheirValues) {
  const TempFolder folder;
  for (TinyModel tiny : language_models()) {
    SCOPED_TRACE(tiny.name);
    tiny.dtype = DType::q8_0;
    tiny.dequantized = true;
    const std::vector<float> floats = logits_by(*load(tiny, folder), kTokens);
    tiny.dequantized = false;
    const std::vector<float> logits = logits_by(*load(tiny, folder), kTokens);
    EXPECT_LT(middle_difference(logits, floats), 0.05);
    if (!tiny.has_experts()) {
      EXPECT_LT(difference(logits, floats), 0.1);
    }
  }
}

// The blocks have 64 values, like the rows of these models. Their products aren't rounded to eight
// bits, so the logits are those of the values.
TEST(Families, DecodedWeightsHaveTheLogitsOfTheirValues) {
  const TempFolder folder;
  for (const char* name : {"qwen3moe", "gpt-oss", "llama"}) {
    for (const DType dtype : {DType::nvfp4, DType::q2_0}) {
      TinyModel tiny = TinyModel::read(name);
      SCOPED_TRACE(std::string(name) + " " + std::string(wick::name(dtype)));
      tiny.dtype = dtype;
      const std::vector<float> logits = logits_by(*load(tiny, folder), kTokens);
      tiny.dequantized = true;
      EXPECT_LT(difference(logits, logits_by(*load(tiny, folder), kTokens)), 2e-5);
    }
  }
}

// Experts' matrices with factors: biases after them (gpt-oss), and inputs that are weighed (Llama
// 4).
TEST(Families, FactorsOfExperts) {
  const TempFolder folder;
  for (const auto& [name, layer] : {std::pair("qwen3moe", "blk.0."), std::pair("gpt-oss", "blk.0."),
                                    std::pair("llama4", "blk.1.")}) {
    SCOPED_TRACE(name);
    TinyModel tiny = TinyModel::read(name);
    float factor = 0.5f;
    for (const char* matrix : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
      std::vector<float> factors;
      const int64_t count = tiny.shape_of(std::string(layer) + matrix + ".weight")[0];
      for (int64_t i = 0; i < count; ++i) factors.push_back(factor += 0.125f);
      tiny.factors[std::string(layer) + matrix] = factors;
    }
    tiny.factors["blk.0.attn_output"] = {0.75f};
    const std::vector<float> logits = logits_by(*load(tiny, folder), kTokens);
    tiny.multiplied = true;
    EXPECT_LT(difference(logits, logits_by(*load(tiny, folder), kTokens)), 2e-5);
    tiny.factors.clear();
    EXPECT_GT(difference(logits, logits_by(*load(tiny, folder), kTokens)), 1e-2);
  }
}

// The sequence is also one of several.
TEST(ModelOnDevice, EmbeddingsAreTransformers) {
  const TempFolder folder;
  const std::vector<std::vector<int32_t>> alone = {some_tokens(kTokens)};
  const std::vector<std::vector<int32_t>> three = {some_tokens(5), some_tokens(kTokens),
                                                   some_tokens(9)};
  size_t models = 0;
  for (TinyModel tiny : TinyModel::all()) {
    if (!tiny.logits.empty()) continue;
    ++models;
    for (const Device device : test::cpu_and_devices()) {
      for (uint32_t pooling = 1; pooling <= 3; ++pooling) {
        SCOPED_TRACE(tiny.name + " " + device.str() + " pooling " + std::to_string(pooling));
        tiny.edit = [&](io::GgufWriter& w) {
          w.set_u32(tiny.architecture + ".pooling_type", pooling);
        };
        const auto model = load(tiny, folder, device);
        const auto size = static_cast<size_t>(model->embedding_size());
        ASSERT_EQ(tiny.embeddings.size(), 3 * size);
        const auto expected = std::span(tiny.embeddings).subspan((pooling - 1) * size, size);
        const double d = difference(model->embed(alone).to_vector<float>(), expected);
        EXPECT_LT(d, 2e-4);
        if (pooling == 1) record(tiny, device, "transformers", d);
        const Tensor second = model->embed(three).narrow(0, 1, 1).contiguous();
        EXPECT_LT(difference(second.to_vector<float>(), expected), 2e-4);
      }
    }
  }
  EXPECT_EQ(models, 5U);
}

TEST(Families, InvalidRequestsForEmbeddings) {
  const TempFolder folder;
  for (const char* name : {"bert", "qwen3-embedding"}) {
    const auto model = load(TinyModel::read(name), folder);
    const auto error = [&](std::vector<std::vector<int32_t>> sequences) {
      return test::error_of([&] { model->embed(sequences); });
    };
    EXPECT_EQ(error({}), "embed: no sequences");
    EXPECT_EQ(error({{1, 2}, {}}), "embed: no tokens");
    EXPECT_EQ(error({{1, 40}}), "embed: token id out of range: 40: the vocabulary has 40");
    EXPECT_EQ(error({{-1}}), "embed: token id out of range: -1: the vocabulary has 40");
    EXPECT_EQ(error({some_tokens(97)}), "embed: too many tokens: 97: the model was trained for 96");
  }
  const auto model = load(TinyModel::read("bert"), folder);
  EXPECT_FALSE(model->makes_logits());
  nn::KvCache cache = model->make_cache(8, DType::f32);
  EXPECT_EQ(test::error_of([&] { model->forward(some_tokens(3), cache, Logits::last); }),
            "forward: this model makes embeddings, not logits");
}

/// Returns the change of the CPU's logits when the values of the embedding table change by 2^-24.
/// Sums of another order, which the class bound permits to devices, change logits about as much.
double sensitivity(const TinyModel& tiny, std::span<const float> logits) {
  const TempFolder folder;
  TinyModel other = tiny;
  std::vector<float>& delta = other.deltas["token_embd.weight"];
  for (int64_t i = tiny.shape_of("token_embd.weight").elems(); i > 0; --i) {
    delta.push_back(i * 7 % 3 == 1 ? 0x1p-24f : -0x1p-24f);
  }
  return difference(logits_by(*load(other, folder), kTokens), logits);
}

TEST(ModelOnDevice, FamiliesGiveTheCpusLogits) {
  const TempFolder folder;
  for (const TinyModel& tiny : language_models()) {
    const std::vector<float> expected = logits_by(*load(tiny, folder), kTokens);
    const double tolerance = 8 * sensitivity(tiny, expected);
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(device.str() + " " + tiny.name);
      const auto model = load(tiny, folder, device);
      double worst = 0;
      for (const int64_t batch : {kTokens, int64_t{1}}) {
        const double d = difference(logits_by(*model, batch), expected);
        EXPECT_LT(d, tolerance) << batch;
        worst = std::max(worst, d);
      }
      record(tiny, device, "cpu", worst);
    }
  }
}

TEST(ModelOnDevice, TheLargestHeads) {
  const TempFolder folder;
  const TinyLlama tiny{
      .heads = 2, .kv_heads = 1, .key_size = 576, .value_size = 512, .rope_dims = 64};
  const std::vector<float> expected = logits_by(*load(tiny, folder), kTokens);
  for (const Device device : test::cpu_and_devices()) {
    const auto model = load(tiny, folder, device);
    for (const int64_t batch : {kTokens, int64_t{7}, int64_t{1}}) {
      EXPECT_LT(difference(logits_by(*model, batch), expected), 1e-5) << device.str() << batch;
    }
  }
}

/// Returns the greedy continuation of a prompt.
std::vector<int32_t> greedy(const CausalLm& model, int64_t count) {
  const std::vector<int32_t> prompt = some_tokens(9);
  nn::KvCache cache = model.make_cache(9 + count, DType::f16);
  std::vector<int32_t> tokens;
  std::vector<float> logits = model.forward(prompt, cache, Logits::last).to_vector<float>();
  Decoder decoder(model, cache);
  while (static_cast<int64_t>(tokens.size()) < count) {
    const auto best = std::max_element(logits.begin(), logits.end());
    tokens.push_back(static_cast<int32_t>(best - logits.begin()));
    logits = decoder.step(tokens.back()).to_vector<float>();
  }
  return tokens;
}

TEST(ModelOnDevice, FamiliesContinueWithTheCpusTokens) {
  setenv("WICK_REPRODUCIBLE", "1", 1);
  const TempFolder folder;
  for (TinyModel tiny : language_models()) {
    const std::vector<int32_t> expected = greedy(*load(tiny, folder), 24);
    for (const Device device : test::cpu_and_devices()) {
      const bool equal = greedy(*load(tiny, folder, device), 24) == expected;
      EXPECT_TRUE(equal) << device.str() << " " << tiny.name;
      record(tiny, device, "tokens", equal ? 1 : 0);
    }
  }
  unsetenv("WICK_REPRODUCIBLE");
}

}  // namespace
}  // namespace wick::models
