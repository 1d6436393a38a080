// Models with caches of q8_0 and q4_0, on the CPU and on the devices that WICK_TEST_DEVICES names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "tests/test_devices.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::error_of;
using test::some_tokens;
using test::TinyLlama;
using testing::AllOf;
using testing::HasSubstr;

using Tokens = std::vector<int32_t>;
constexpr DType kTypes[] = {DType::q8_0, DType::q4_0};

class BlockCache : public testing::Test {
 protected:
  // Attention of many queries then has the CPU's bits on a GPU.
  void SetUp() override { setenv("WICK_REPRODUCIBLE", "1", 1); }
  std::unique_ptr<CausalLm> load(Device device, int64_t head_size = 32) {
    TinyLlama tiny{.key_size = head_size,
                   .value_size = head_size,
                   .context = 700,
                   .rope_dims = head_size,
                   .dtype = DType::q8_0};
    tiny.write(folder_.path("m.gguf"));
    return CausalLm::load(*io::Gguf::open(folder_.path("m.gguf")),
                          {.device = device, .progress = {}});
  }
  TempFolder folder_;
};

std::vector<float> logits_of(const CausalLm& model, nn::KvCache& cache, std::span<const int32_t> of,
                             Logits logits = Logits::all) {
  return model.forward(of, cache, logits).to_vector<float>();
}

/// The most likely tokens after a prompt.
Tokens greedy(const CausalLm& model, const Tokens& prompt, DType dtype, int count) {
  nn::KvCache cache = model.make_cache(700, dtype);
  std::vector<float> logits = logits_of(model, cache, prompt, Logits::last);
  Decoder decoder(model, cache);
  Tokens made;
  for (int i = 0; i < count; ++i) {
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    made.push_back(static_cast<int32_t>(best));
    logits = decoder.step(made.back()).to_vector<float>();
  }
  return made;
}

TEST_F(BlockCache, GreedyTokensAreEqualOnAllDevices) {
  const Tokens prompt = some_tokens(250);  // the answer begins a second page
  for (const DType dtype : kTypes) {
    const Tokens expected = greedy(*load(Device::cpu()), prompt, dtype, 16);
    for (const Device device : test::devices()) {
      EXPECT_EQ(greedy(*load(device), prompt, dtype, 16), expected) << device.str();
    }
  }
}

/// A prompt at once, in pieces, and token by token.
TEST_F(BlockCache, LogitsDontDependOnSteps) {
  const Tokens tokens = some_tokens(270);
  for (const DType dtype : kTypes) {
    for (const Device device : test::cpu_and_devices()) {
      const auto model = load(device);
      nn::KvCache whole = model->make_cache(700, dtype);
      const std::vector<float> expected = logits_of(*model, whole, tokens);
      nn::KvCache cache = model->make_cache(700, dtype);
      std::vector<float> got;
      const auto add = [&](const std::vector<float>& some) {
        got.insert(got.end(), some.begin(), some.end());
      };
      for (const size_t piece : {3, 1, 200, 50}) {
        const size_t done = got.size() / static_cast<size_t>(model->vocab_size());
        add(logits_of(*model, cache, std::span(tokens).subspan(done, piece)));
      }
      Decoder decoder(*model, cache);
      for (size_t i = 254; i < tokens.size(); ++i) add(decoder.step(tokens[i]).to_vector<float>());
      EXPECT_EQ(got, expected) << name(dtype) << " on " << device.str();
    }
  }
}

TEST_F(BlockCache, BatchesGiveTheLogitsOfSequencesAlone) {
  for (const DType dtype : kTypes) {
    for (const Device device : test::cpu_and_devices()) {
      const auto model = load(device);
      nn::KvCache cache = model->make_cache(300, dtype, 3);
      std::vector<nn::KvCache> alone;
      for (int i = 0; i < 3; ++i) alone.push_back(model->make_cache(300, dtype));
      for (const int64_t count : {20, 1, 5, 1}) {
        std::vector<BatchInput> inputs;
        std::vector<Tokens> tokens;
        std::vector<float> expected;
        for (size_t i = 0; i < 3; ++i) {
          Tokens all = some_tokens(count + 7 * static_cast<int64_t>(i));
          tokens.push_back(Tokens(all.end() - count, all.end()));
          const auto logits = logits_of(*model, alone[i], tokens.back(), Logits::last);
          expected.insert(expected.end(), logits.begin(), logits.end());
        }
        for (size_t i = 0; i < 3; ++i) {
          inputs.push_back({.sequence = static_cast<int64_t>(i), .tokens = tokens[i]});
        }
        EXPECT_EQ(model->forward(inputs, cache, Logits::last).to_vector<float>(), expected)
            << name(dtype) << " on " << device.str();
      }
    }
  }
}

TEST_F(BlockCache, TruncatedCachesGiveTheLogitsOfFreshOnes) {
  const Tokens tokens = some_tokens(300);
  for (const DType dtype : kTypes) {
    for (const Device device : test::cpu_and_devices()) {
      const auto model = load(device);
      nn::KvCache cache = model->make_cache(700, dtype), fresh = model->make_cache(700, dtype);
      logits_of(*model, cache, tokens, Logits::last);
      cache.truncate(40);
      const Tokens more = some_tokens(30);
      logits_of(*model, fresh, std::span(tokens).first(40), Logits::last);
      EXPECT_EQ(logits_of(*model, cache, more), logits_of(*model, fresh, more))
          << name(dtype) << " on " << device.str();
    }
  }
}

/// Latent attention reads its values from the keys' blocks: one prompt must give the logits of the
/// same tokens in steps, close to those with a cache of f32.
TEST_F(BlockCache, LatentAttentionQuantisesItsKeys) {
  test::TinyModel tiny = test::TinyModel::read("deepseek2-lite");
  for (int i = 0; i < 3; ++i) {  // 32 rotated elements instead of 8
    const std::string layer = "blk." + std::to_string(i) + ".";
    tiny.shapes[layer + "attn_kv_a_mqa.weight"] = {64, 64};
    tiny.shapes[layer + "attn_q_b.weight"] = {192, 1536};
  }
  tiny.edit = [](io::GgufWriter& w) {
    w.set_u32("deepseek2.rope.dimension_count", 32);
    w.set_u32("deepseek2.attention.key_length", 64);
    w.set_u32("deepseek2.attention.key_length_mla", 48);
  };
  tiny.write(folder_.path("m.gguf"));
  const Tokens tokens = some_tokens(40);
  for (const Device device : test::cpu_and_devices()) {
    const auto model =
        CausalLm::load(*io::Gguf::open(folder_.path("m.gguf")), {.device = device, .progress = {}});
    nn::KvCache exact = model->make_cache(96, DType::f32),
                cache = model->make_cache(96, DType::q8_0);
    const std::vector<float> wanted = logits_of(*model, exact, tokens, Logits::last);
    logits_of(*model, cache, std::span(tokens).first(39), Logits::last);
    const std::vector<float> got = logits_of(*model, cache, std::span(tokens).last(1));
    ASSERT_EQ(got.size(), wanted.size());
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i]) - static_cast<double>(wanted[i]), 2);
      size += std::pow(static_cast<double>(wanted[i]), 2);
    }
    EXPECT_GT(difference, 0) << device.str();
    EXPECT_LT(std::sqrt(difference / size), 0.03) << device.str();
  }
}

/// The error of logits that a cache adds, relative to their size.
double error_of_cache(const CausalLm& model, DType dtype) {
  const Tokens tokens = some_tokens(200);
  nn::KvCache exact = model.make_cache(300, DType::f32), cache = model.make_cache(300, dtype);
  const std::vector<float> a = logits_of(model, exact, tokens), b = logits_of(model, cache, tokens);
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / size);
}

/// A quant of 8 bits is within 1/254 of the largest value of its block, one of 4 bits within 1/16.
/// The limits are about twice the errors of this model's logits.
TEST_F(BlockCache, ErrorsAreThoseOfTheFormats) {
  const auto model = load(Device::cpu());
  const double of_q8 = error_of_cache(*model, DType::q8_0),
               of_q4 = error_of_cache(*model, DType::q4_0);
  EXPECT_GT(of_q8, 0);
  EXPECT_LT(of_q8, 0.03);
  EXPECT_GT(of_q4, of_q8);
  EXPECT_LT(of_q4, 0.3);
}

TEST_F(BlockCache, TakesTheBytesOfItsBlocks) {
  const auto model = load(Device::cpu());
  const auto bytes = [&](DType dtype) {
    nn::KvCache cache = model->make_cache(700, dtype);
    cache.reserve(600);
    size_t stored = 0;  // of the tensors themselves
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (const Tensor& x : {cache.keys(layer), cache.values(layer)}) {
        stored += static_cast<size_t>(bytes_of(x.dtype(), x.elems()));
      }
    }
    const auto positions = static_cast<size_t>(cache.keys(0).size(0) * nn::KvCache::kPage);
    EXPECT_EQ(stored * 700, cache.full_bytes() * positions);
    return std::pair(stored, cache.full_bytes());
  };
  const auto [halves, full_halves] = bytes(DType::f16);
  const auto [of_q8, full_q8] = bytes(DType::q8_0);
  const auto [of_q4, full_q4] = bytes(DType::q4_0);
  EXPECT_EQ(of_q8 * 64, halves * 34);  // 34 bytes for 32 values of two bytes
  EXPECT_EQ(of_q4 * 64, halves * 18);
  EXPECT_EQ(full_q8 * 64, full_halves * 34);
  EXPECT_EQ(full_q4 * 64, full_halves * 18);
}

TEST_F(BlockCache, RefusesHeadsThatArentWholeBlocks) {
  const auto model = load(Device::cpu(), 16);
  EXPECT_THAT(error_of([&] { model->make_cache(300, DType::q8_0); }),
              AllOf(HasSubstr("q8_0 needs heads of a multiple of 32"), HasSubstr("16")));
  EXPECT_THAT(error_of([&] { model->make_cache(300, DType::q4_1); }), HasSubstr("q4_1"));
  // Latent attention: the values begin in the middle of a block of the keys.
  nn::KvCacheOptions o{.layers = {{.heads = 1, .key_size = 64, .value_size = 0, .value_first = 16}},
                       .context = 100,
                       .dtype = DType::q4_0};
  EXPECT_THAT(error_of([&] { nn::KvCache{o}; }), HasSubstr("multiple of 32"));
  o.layers[0].value_first = 32;
  EXPECT_EQ(nn::KvCache(o).context(), 100);
}

}  // namespace
}  // namespace wick::models
