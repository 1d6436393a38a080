// Compares models on the devices that WICK_TEST_DEVICES names with the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/test_devices.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::some_tokens;
using test::TinyLlama;

std::unique_ptr<CausalLm> load(TinyLlama& tiny, const TempFolder& folder, Device device) {
  tiny.write(folder.path("m.gguf"));
  return CausalLm::load(*io::Gguf::open(folder.path("m.gguf")), {.device = device, .progress = {}});
}

/// Returns the logits after each token from `first` on. The tokens before it are a prompt; the
/// others run one by one.
std::vector<float> decoded(const CausalLm& model, const std::vector<int32_t>& tokens, size_t first,
                           DType cache_dtype) {
  nn::KvCache cache = model.make_cache(static_cast<int64_t>(tokens.size()), cache_dtype);
  if (first > 0) model.forward(std::span(tokens).first(first), cache, Logits::last);
  Decoder decoder(model, cache);
  std::vector<float> all;
  for (size_t i = first; i < tokens.size(); ++i) {
    const auto logits = decoder.step(tokens[i]).to_vector<float>();
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<float> prompted(const CausalLm& model, const std::vector<int32_t>& tokens,
                            DType cache_dtype) {
  nn::KvCache cache = model.make_cache(static_cast<int64_t>(tokens.size()), cache_dtype);
  return model.forward(tokens, cache, Logits::all).to_vector<float>();
}

size_t different(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return SIZE_MAX;
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return count;
}

/// Returns the root mean square of the differences relative to that of the values.
double relative(const std::vector<float>& got, const std::vector<float>& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double difference = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    difference += d * d;
    size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(difference / size);
}

std::vector<TinyLlama> quantised() {
  std::vector<TinyLlama> list;
  for (const DType dtype : {DType::q4_0, DType::q4_1, DType::q8_0}) {
    list.push_back({.dtype = dtype});
    list.push_back({.layers = 1,
                    .hidden = 96,
                    .intermediate = 160,
                    .heads = 3,
                    .kv_heads = 1,
                    .key_size = 32,
                    .value_size = 32,
                    .window = 7,
                    .rope_dims = 24,
                    .biases = true,
                    .dtype = dtype});
  }
  return list;
}

TEST(ModelOnDevice, QuantisedWeightsGiveTheCpusLogits) {
  setenv("WICK_REPRODUCIBLE", "1", 1);
  const TempFolder folder;
  const std::vector<int32_t> tokens = some_tokens(40);
  for (TinyLlama tiny : quantised()) {
    const auto cpu = load(tiny, folder, Device::cpu());
    const std::vector<float> expected = prompted(*cpu, tokens, DType::f16);
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(device.str() + " " + std::string(name(tiny.dtype)));
      const auto model = load(tiny, folder, device);
      EXPECT_EQ(different(prompted(*model, tokens, DType::f16), expected), 0u);
      const auto rows = static_cast<size_t>(model->vocab_size());
      for (const size_t first : {size_t{0}, size_t{13}}) {
        const std::vector<float> steps = decoded(*model, tokens, first, DType::f16);
        const std::vector<float> tail(expected.begin() + static_cast<ptrdiff_t>(first * rows),
                                      expected.end());
        EXPECT_EQ(different(steps, tail), 0u) << "from token " << first;
      }
    }
  }
}

/// Formats that are decoded: one with a codebook, one without, one with four scales in a block.
TEST(ModelOnDevice, DecodedWeightsGiveTheCpusLogitsAndThoseOfTheirValues) {
  setenv("WICK_REPRODUCIBLE", "1", 1);
  const TempFolder folder;
  const std::vector<int32_t> tokens = some_tokens(12);
  for (const DType dtype : {DType::iq3_s, DType::tq1_0, DType::nvfp4}) {
    TinyLlama tiny = TinyLlama::of_type(dtype);
    tiny.layers = 1;
    tiny.scales = dtype == DType::nvfp4;
    const auto cpu = load(tiny, folder, Device::cpu());
    const std::vector<float> expected = prompted(*cpu, tokens, DType::f32);
    std::vector<float> reference;
    for (const std::vector<double>& row : tiny.reference(tokens)) {
      for (const double logit : row) reference.push_back(static_cast<float>(logit));
    }
    EXPECT_LT(relative(expected, reference), 2e-5) << name(dtype);
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(device.str() + " " + std::string(name(dtype)));
      const auto model = load(tiny, folder, device);
      EXPECT_LT(relative(prompted(*model, tokens, DType::f32), reference), 2e-5);
      EXPECT_EQ(different(prompted(*model, tokens, DType::f16), prompted(*cpu, tokens, DType::f16)),
                0u);
    }
  }
}

TEST(ModelOnDevice, FloatWeightsStayWithinTheirBound) {
  const TempFolder folder;
  const std::vector<int32_t> tokens = some_tokens(24);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    TinyLlama tiny{.dtype = dtype};
    const auto cpu = load(tiny, folder, Device::cpu());
    const std::vector<float> expected = prompted(*cpu, tokens, DType::f32);
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(device.str() + " " + std::string(name(dtype)));
      const auto model = load(tiny, folder, device);
      // bf16 rounds activations, where a difference in the last bit may be amplified.
      const double bound = dtype == DType::bf16 ? 5e-3 : 2e-5;
      EXPECT_LT(relative(prompted(*model, tokens, DType::f32), expected), bound);
      EXPECT_LT(relative(decoded(*model, tokens, 0, DType::f32), expected), bound);
    }
  }
}

/// Two conversations with one model, and one that outgrows its initial cache.
TEST(ModelOnDevice, RecordingsKeepTheirMemory) {
  const TempFolder folder;
  TinyLlama tiny{.context = 700, .dtype = DType::q8_0};
  tiny.layers = 1;
  const std::vector<int32_t> tokens = some_tokens(540);
  const auto cpu = load(tiny, folder, Device::cpu());
  const std::vector<float> expected = decoded(*cpu, tokens, 500, DType::f16);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    nn::KvCache first = model->make_cache(700, DType::f16),
                second = model->make_cache(700, DType::f16);
    Decoder one(*model, first);
    model->forward(std::span(tokens).first(500), first, Logits::last);
    std::vector<float> all;
    Decoder other(*model, second);
    for (size_t i = 500; i < tokens.size(); ++i) {
      const auto logits = one.step(tokens[i]).to_vector<float>();
      all.insert(all.end(), logits.begin(), logits.end());
      other.step(tokens[i - 500]);
    }
    EXPECT_EQ(different(all, expected), 0u);
  }
}

SamplerOptions drawing(float temperature, float penalty, uint64_t seed) {
  SamplerOptions options;
  options.temperature = temperature;
  options.repetition_penalty = penalty;
  options.seed = seed;
  return options;
}

/// Tokens sampled on the device, one step ahead of the host, must be those that Sampler draws from
/// the logits, in several conversations with different options.
TEST(ModelOnDevice, DrawsTheSamplersTokens) {
  setenv("WICK_REPRODUCIBLE", "1", 1);
  const TempFolder folder;
  TinyLlama tiny{.context = 640, .dtype = DType::q8_0};
  const std::vector<int32_t> prompt = some_tokens(9);
  const auto cpu = load(tiny, folder, Device::cpu());
  const int64_t vocabulary = cpu->vocab_size() - 3;
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    nn::KvCache cache = model->make_cache(640, DType::f16);
    Decoder decoder(*model, cache, vocabulary);
    for (const SamplerOptions& options :
         {drawing(0, 1, 0), drawing(0.9f, 1, 7), drawing(1.3f, 1.4f, 8), drawing(1.3f, 1.4f, 9)}) {
      std::vector<int32_t> tokens = prompt, drawn = prompt;
      cache.truncate(0);
      const Tensor first = model->forward(prompt, cache, Logits::last);
      const Decoder::Sampling sampling{prompt, options};
      decoder.start(first, {&sampling, 1});
      constexpr int kTokens = 24;
      for (int i = 0; i < kTokens; ++i) drawn.push_back(decoder.next(i + 1 < kTokens).front());
      EXPECT_EQ(cache.length(), static_cast<int64_t>(drawn.size()) - 1);
      EXPECT_THROW(decoder.next(false), Error);

      nn::KvCache host = cpu->make_cache(640, DType::f16);
      Sampler sampler(options);
      Tensor logits = cpu->forward(prompt, host, Logits::last);
      while (tokens.size() < drawn.size()) {
        const auto row = logits.to_vector<float>();
        tokens.push_back(
            sampler.sample(std::span(row).first(static_cast<size_t>(vocabulary)), tokens));
        logits = cpu->forward(std::span(tokens).last(1), host, Logits::last);
      }
      EXPECT_EQ(drawn, tokens);
    }
  }
}

/// Runs up to the last position of the cache, while the cache grows, with penalties for all tokens.
TEST(ModelOnDevice, DrawsUntilTheCacheIsFull) {
  const TempFolder folder;
  TinyLlama tiny{.layers = 1, .context = 530, .dtype = DType::q8_0};
  const std::vector<int32_t> prompt = some_tokens(505);
  SamplerOptions options = drawing(0.8f, 1.1f, 3);
  options.penalty_window = -1;
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    nn::KvCache cache = model->make_cache(530, DType::f16);
    Decoder decoder(*model, cache);
    const Decoder::Sampling sampling{prompt, options};
    decoder.start(model->forward(prompt, cache, Logits::last), {&sampling, 1});
    int64_t drawn = 0;
    // The step of the last token may still be pending.
    for (; drawn < 25; ++drawn) decoder.next(true);
    EXPECT_THROW(decoder.next(true), Error);
    EXPECT_LT(decoder.next(false).front(), model->vocab_size());
    EXPECT_EQ(cache.length(), cache.context());
  }
}

}  // namespace
}  // namespace wick::models
