// Models split between the GPUs that WICK_TEST_DEVICES names and the CPU: the same logits and
// tokens as without a split, whatever is where.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "tests/test_devices.h"
#include "wick/backend/gpu/trace/counts.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"
#include "wick/tensor/memory.h"

namespace wick::models {
namespace {

using test::error_of;
using test::some_tokens;
using test::TinyLlama;
using test::TinyModel;
using testing::HasSubstr;

using Tokens = std::vector<int32_t>;
using Floats = std::vector<float>;

constexpr int64_t kPrompt = 9, kSteps = 5, kContext = 40;

// Before the first use of a device.
const bool kCounts = [] {
  gpu::count_work();
  return true;
}();

/// What a model computes of a prompt and of steps after it, by prompts and by a Decoder.
struct Results {
  Floats prompt, steps;
  Tokens drawn;
};

std::vector<Device> gpus() {
  std::vector<Device> all = test::devices();
  std::erase(all, Device::cpu());
  return all;
}

class SplitModels : public testing::Test {
 protected:
  void SetUp() override { setenv("WICK_REPRODUCIBLE", "1", 1); }
  void TearDown() override {
    for (const Device device : gpus()) set_memory_limit(device, 0);
  }

  void write(const char* name) {
    TinyModel tiny = TinyModel::read(name);
    tiny.dtype = DType::q8_0;  // linear layers of floats may differ between devices
    tiny.write(path());
  }
  void write_llama(int64_t layers) {
    TinyLlama tiny{.layers = layers, .dtype = DType::q8_0};
    tiny.write(path());
  }
  std::string path() const { return folder_.path("m.gguf"); }
  std::unique_ptr<CausalLm> load(Device device, const SplitOptions& split = {}) const {
    LoadOptions options;
    options.device = device;
    options.split = split;
    return CausalLm::load(*io::Gguf::open(path()), options);
  }

 private:
  io::test::TempFolder folder_;
};

Floats append(Floats all, const Tensor& more) {
  const Floats values = more.to_vector<float>();
  all.insert(all.end(), values.begin(), values.end());
  return all;
}

Results results(const CausalLm& model) {
  const Tokens tokens = some_tokens(kPrompt + kSteps);
  nn::KvCache cache = model.make_cache(kContext, DType::f16);
  Results r;
  const auto prompt = std::span(tokens).first(kPrompt);
  r.prompt = model.forward(prompt, cache, Logits::all).to_vector<float>();
  Decoder decoder(model, cache);
  for (int64_t i = kPrompt; i < kPrompt + kSteps; ++i) {
    r.steps = append(std::move(r.steps), decoder.step(tokens[static_cast<size_t>(i)]));
  }
  cache.truncate(0);
  const Tensor last = model.forward(prompt, cache, Logits::last);
  SamplerOptions likeliest;
  likeliest.temperature = 0;
  const Decoder::Sampling sampling{tokens, likeliest};
  decoder.start(last, {&sampling, 1});
  for (int64_t i = 0; i < kSteps; ++i) r.drawn.push_back(decoder.next(i + 1 < kSteps).front());
  return r;
}

/// The largest difference relative to the largest value.
double difference(const Floats& got, const Floats& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double worst = 0, most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], e = expected[i];
    if (!(std::fabs(g - e) <= worst)) worst = std::fabs(g - e);
    most = std::max(most, std::fabs(e));
  }
  return worst / most;
}

void expect_near(const Results& got, const Results& expected, double limit) {
  EXPECT_LE(difference(got.prompt, expected.prompt), limit);
  EXPECT_LE(difference(got.steps, expected.steps), limit);
  EXPECT_EQ(got.drawn, expected.drawn);
}

TEST_F(SplitModels, AnyNumberOfLayersGivesTheSameBits) {
  constexpr int64_t kLayers = 4;
  write_llama(kLayers);
  const Results whole = results(*load(Device::cpu()));
  for (const Device device : gpus()) {
    for (int64_t layers = 0; layers <= kLayers + 1; ++layers) {
      SCOPED_TRACE(fmt::format("{} layers on {}", layers, device.str()));
      const auto model = load(device, {.gpu_layers = layers});
      EXPECT_EQ(model->pieces(), layers == 0 || layers >= kLayers ? 1U : 2U);
      EXPECT_EQ(model->device(), layers == 0 ? Device::cpu() : device);
      expect_near(results(*model), whole, 0);
    }
    EXPECT_THAT(load(device, {.gpu_layers = 3})->placement(),
                testing::MatchesRegex(device.str() + ": 3 of 4 layers, .* MiB; cpu: 1 layer, .*"));
  }
}

// Windows, per-layer embeddings, layers that read the cache of others, experts, recurrent states,
// latent attention, learned positions.
constexpr const char* kFamilies[] = {"llama4",    "mixtral",        "gemma3",    "gemma4",
                                     "falcon-h1", "qwen3next",      "mamba2",    "gpt-oss",
                                     "gpt2",      "deepseek2-lite", "gemma4-moe"};

TEST_F(SplitModels, FamiliesGiveTheLogitsOfTheWholeModel) {
  for (const char* name : kFamilies) {
    write(name);
    for (const Device device : gpus()) {
      const auto unsplit = load(device);
      const Results whole = results(*unsplit);
      std::set<size_t> pieces;
      for (int64_t layers = 0; layers < 6; ++layers) {
        SCOPED_TRACE(fmt::format("{}, {} layers on {}", name, layers, device.str()));
        const auto model = load(device, {.gpu_layers = layers});
        pieces.insert(model->pieces());
        expect_near(results(*model), whole, 2e-5);
        if (model->device() == device && model->pieces() == 1) break;
      }
      EXPECT_TRUE(pieces.contains(2)) << name << ": no number of layers splits it";
    }
  }
}

// The routers stay on the GPU, so that the same experts are chosen.
TEST_F(SplitModels, ExpertsOnTheCpuGiveTheSameTokens) {
  for (const char* name : {"mixtral", "qwen3moe", "granitemoe-shared", "gemma4-moe", "gpt-oss",
                           "deepseek3", "llama4", "qwen3next"}) {
    write(name);
    for (const Device device : gpus()) {
      const Results whole = results(*load(device));
      for (const auto& [layers, experts] : {std::pair{SplitOptions::kAll, int64_t{1}},
                                            {SplitOptions::kAll, SplitOptions::kAll},
                                            {int64_t{1}, SplitOptions::kAll}}) {
        SCOPED_TRACE(fmt::format("{} on {}, experts of {}", name, device.str(), experts));
        const auto model = load(device, {.gpu_layers = layers, .cpu_experts = experts});
        if (experts == SplitOptions::kAll) {
          EXPECT_GT(model->pieces(), 2U);
          EXPECT_THAT(model->placement(), HasSubstr("the experts of "));
        }
        expect_near(results(*model), whole, 2e-5);
      }
    }
  }
}

TEST_F(SplitModels, SequencesOfABatchGetTheBitsTheyHaveAlone) {
  for (const char* name : {"llama", "qwen3next"}) {
    write(name);
    for (const Device device : gpus()) {
      SCOPED_TRACE(std::string(name) + " on " + device.str());
      const auto model = load(device, {.gpu_layers = 1, .cpu_experts = SplitOptions::kAll});
      const auto run = [&](const CausalLm& of) {
        nn::KvCache cache = of.make_cache(kContext, DType::f32, 3);
        const Tokens tokens = some_tokens(kPrompt);
        const auto all = std::span(tokens);
        const BatchInput inputs[] = {{2, all.first(4)}, {0, all.first(4)}, {1, all.last(6)}};
        Floats logits = of.forward(inputs, cache, Logits::all).to_vector<float>();
        const int64_t sequences[] = {1, 2, 0};
        Decoder decoder(of, cache, sequences);
        for (int i = 0; i < 3; ++i) {
          logits = append(std::move(logits), decoder.step(std::vector<int32_t>{7, i, 9}));
        }
        return logits;
      };
      EXPECT_LE(difference(run(*model), run(*load(device))), 2e-5);
    }
  }
}

/// A sequence that is shortened, or cleared if it has recurrent states, goes on as a new one.
TEST_F(SplitModels, CachesAreShortened) {
  for (const char* name : {"gemma3", "falcon-h1"}) {
    write(name);
    for (const Device device : gpus()) {
      SCOPED_TRACE(std::string(name) + " on " + device.str());
      const auto model = load(device, {.gpu_layers = 1});
      ASSERT_EQ(model->pieces(), 2U);
      const Tokens tokens = some_tokens(kPrompt);
      nn::KvCache cache = model->make_cache(kContext, DType::f32);
      const auto first = model->forward(tokens, cache, Logits::all).to_vector<float>();
      const int64_t kept = cache.has_states() ? 0 : 4;
      cache.truncate(kept);
      const auto rest = std::span(tokens).subspan(static_cast<size_t>(kept));
      const auto again = model->forward(rest, cache, Logits::all).to_vector<float>();
      EXPECT_EQ(again, Floats(first.end() - static_cast<ptrdiff_t>(again.size()), first.end()));
    }
  }
}

// From the third step on, no kernel is launched by itself.
TEST_F(SplitModels, DecodingReplaysCapturedPieces) {
  ASSERT_TRUE(kCounts);
  write("mixtral");
  for (const Device device : gpus()) {
    for (const auto& [layers, experts] : {std::pair{SplitOptions::kAll, int64_t{0}},
                                          {int64_t{1}, int64_t{0}},
                                          {SplitOptions::kAll, SplitOptions::kAll}}) {
      SCOPED_TRACE(fmt::format("{}: {} layers, experts of {}", device.str(), layers, experts));
      const auto model = load(device, {.gpu_layers = layers, .cpu_experts = experts});
      nn::KvCache cache = model->make_cache(kContext, DType::f16);
      Decoder decoder(*model, cache);
      for (int i = 0; i < 2; ++i) (void)decoder.step(3);
      const gpu::WorkCounts before = gpu::work_counts(device);
      EXPECT_GT(before.kernels, 0U);
      (void)decoder.step(5);
      const gpu::WorkCounts step = gpu::work_counts(device) - before;
      EXPECT_EQ(step.kernels, 0U);
      if (model->pieces() == 1) {
        EXPECT_EQ(step.bytes_to_host, 0U);
      }
    }
  }
}

TEST_F(SplitModels, AutoFillsTheMemory) {
  constexpr int64_t kLayers = 8;
  write_llama(kLayers);
  const SplitOptions small{.gpu_layers = SplitOptions::kAuto,
                           .cpu_experts = SplitOptions::kAuto,
                           .context = 256,
                           .batch = 16};
  const Results whole = results(*load(Device::cpu()));
  for (const Device device : gpus()) {
    SCOPED_TRACE(device.str());
    EXPECT_EQ(load(device, small)->pieces(), 1U);
    size_t before = memory_stats(device).in_use_bytes, splits = 0;
    size_t all = 0;
    {
      const auto model = load(device);
      all = memory_stats(device).in_use_bytes - before;
    }
    for (size_t part = 1; part <= 16; ++part) {
      trim_memory(device);
      before = memory_stats(device).in_use_bytes;
      set_memory_limit(device, before + all * part / 4);
      const auto model = load(device, small);
      splits += model->pieces() > 1 ? 1U : 0U;
      expect_near(results(*model), whole, 0);
      set_memory_limit(device, 0);
    }
    EXPECT_GT(splits, 0U);
  }
}

TEST_F(SplitModels, AutoPutsExpertsOnTheCpuFirst) {
  write("qwen3moe");
  for (const Device device : gpus()) {
    SCOPED_TRACE(device.str());
    const Results whole = results(*load(device));
    const SplitOptions small{.gpu_layers = SplitOptions::kAuto,
                             .cpu_experts = SplitOptions::kAuto,
                             .context = 64,
                             .batch = 16};
    bool any_experts = false;
    for (size_t limit = size_t{1} << 16; limit < size_t{1} << 21; limit += limit / 3) {
      trim_memory(device);
      set_memory_limit(device, memory_stats(device).in_use_bytes + limit);
      const std::string placed = load(device, small)->placement();
      set_memory_limit(device, 0);
      const bool experts = placed.find("cpu: the experts of") != std::string::npos;
      any_experts = any_experts || experts;
    }
    EXPECT_TRUE(any_experts);
  }
}

TEST_F(SplitModels, EmbeddingsAreThoseOfTheWholeModel) {
  const std::vector<Tokens> sequences = {some_tokens(5), some_tokens(12)};
  for (const char* name : {"bert", "modern-bert", "gemma-embedding", "qwen3-embedding"}) {
    write(name);
    const Floats whole = load(Device::cpu())->embed(sequences).to_vector<float>();
    for (const Device device : gpus()) {
      SCOPED_TRACE(std::string(name) + " on " + device.str());
      const auto model = load(device, {.gpu_layers = 1});
      EXPECT_EQ(model->pieces(), 2U);
      EXPECT_LE(difference(model->embed(sequences).to_vector<float>(), whole), 2e-5);
    }
  }
}

TEST_F(SplitModels, SeveralGpusShareTheLayers) {
  if (gpus().size() < 2) GTEST_SKIP() << "needs two GPUs in WICK_TEST_DEVICES";
  constexpr int64_t kLayers = 5;
  write_llama(kLayers);
  const Device first = gpus()[0], second = gpus()[1];
  const Results whole = results(*load(Device::cpu()));
  for (int64_t layers = 0; layers <= kLayers; ++layers) {
    SCOPED_TRACE(layers);
    const auto model = load(first, {.gpu_layers = layers, .more_devices = {second}});
    if (layers >= 2) {
      EXPECT_THAT(model->placement(), HasSubstr(first.str() + ": "));
      EXPECT_THAT(model->placement(), HasSubstr(second.str() + ": "));
      EXPECT_EQ(model->device(), second);
    }
    expect_near(results(*model), whole, 0);
  }
  write("mixtral");
  const Results experts = results(*load(first));
  expect_near(results(*load(first, {.cpu_experts = 1, .more_devices = {second}})), experts, 2e-5);
}

TEST_F(SplitModels, InvalidOptions) {
  EXPECT_EQ(parse_layers("--gpu-layers", "auto"), SplitOptions::kAuto);
  EXPECT_EQ(parse_layers("--gpu-layers", "all"), SplitOptions::kAll);
  EXPECT_EQ(parse_layers("--gpu-layers", "99"), 99);
  const auto parse = [](const char* text) {
    return error_of([&] { parse_layers("--gpu-layers", text); });
  };
  EXPECT_EQ(parse("-3"), "--gpu-layers: out of range: -3: need at least 0, auto or all");
  EXPECT_EQ(parse("99999999999999999999"),
            "--gpu-layers: out of range: 99999999999999999999: need at least 0, auto or all");
  for (const char* text : {"", "3x", "1.5", "many", " 3"}) {
    EXPECT_THAT(parse(text), HasSubstr("--gpu-layers: not a number of layers: '")) << text;
  }
  write_llama(2);
  const auto error = [&](const SplitOptions& split, Device device) {
    return error_of([&] { load(device, split); });
  };
  EXPECT_THAT(error({.gpu_layers = -3}, {}), HasSubstr("gpu layers: out of range: -3"));
  EXPECT_THAT(error({.cpu_experts = -2}, {}), HasSubstr("cpu experts: out of range: -2"));
  EXPECT_THAT(error({.more_devices = {Device::cpu()}}, {}), HasSubstr("with the CPU"));
  EXPECT_EQ(load(Device::cpu(), {.gpu_layers = 1})->pieces(), 1U);  // without a GPU: ignored
  for (const Device device : gpus()) {
    EXPECT_THAT(error({.more_devices = {device}}, device), HasSubstr("given twice"));
  }
}

TEST_F(SplitModels, OutOfMemorySaysWhatToDo) {
  write_llama(8);
  for (const Device device : gpus()) {
    trim_memory(device);
    set_memory_limit(device, memory_stats(device).in_use_bytes + (size_t{64} << 10));
    const std::string message = error_of([&] { load(device); });
    EXPECT_THAT(message, HasSubstr(path()));
    EXPECT_THAT(message, HasSubstr("out of memory"));
    EXPECT_THAT(message, HasSubstr("ask for fewer layers on the GPU (gpu layers)"));
    const auto model = load(device, {.gpu_layers = 0});
    EXPECT_EQ(model->device(), Device::cpu());
  }
}

}  // namespace
}  // namespace wick::models
