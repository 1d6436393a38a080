// Adapters (LoRA) against models whose matrices hold the update.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
using test::TinyModel;
using testing::HasSubstr;

constexpr int64_t kTokens = 12;

/// A random adapter of some matrices of a model.
struct TinyAdapter {
  std::string architecture;
  std::map<std::string, std::pair<std::vector<float>, std::vector<float>>> factors;  // A, B
  std::map<std::string, Shape> shapes;
  int64_t rank = 3;
  float alpha = 6;
  std::function<void(io::GgufWriter&)> edit = {};
  std::string without = {};

  TinyAdapter(const TinyModel& model, const std::vector<std::string>& names, uint32_t seed)
      : architecture(model.architecture) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 0.2f);
    for (const std::string& name : names) {
      const Shape shape = model.shape_of(name);
      shapes[name] = shape;
      auto& [a, b] = factors[name];
      for (int64_t i = 0; i < rank * shape[1]; ++i) a.push_back(normal(random));
      for (int64_t i = 0; i < rank * shape[0]; ++i) b.push_back(normal(random));
    }
  }

  /// scale · alpha / rank · B·A of a matrix.
  std::vector<float> delta(const std::string& name, double scale) const {
    const auto& [a, b] = factors.at(name);
    const int64_t n = shapes.at(name)[0], k = shapes.at(name)[1];
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < rank; ++r) {
          sum += static_cast<double>(b[static_cast<size_t>(i * rank + r)]) *
                 static_cast<double>(a[static_cast<size_t>(r * k + j)]);
        }
        const double factor = scale * static_cast<double>(alpha) / static_cast<double>(rank);
        values.push_back(static_cast<float>(sum * factor));
      }
    }
    return values;
  }

  void write(const std::string& path) const {
    io::GgufWriter w(path);
    w.set_string("general.type", "adapter");
    w.set_string("general.architecture", architecture);
    w.set_string("adapter.type", "lora");
    w.set_f32("adapter.lora.alpha", alpha);
    if (edit) edit(w);
    std::vector<std::pair<std::string, const std::vector<float>*>> tensors;
    for (const auto& [name, pair] : factors) {
      const Shape& shape = shapes.at(name);
      for (const bool is_a : {true, false}) {
        const std::string tensor = name + (is_a ? ".lora_a" : ".lora_b");
        if (tensor == without) continue;
        w.add_tensor(tensor, DType::f32, is_a ? Shape{rank, shape[1]} : Shape{shape[0], rank});
        tensors.emplace_back(tensor, is_a ? &pair.first : &pair.second);
      }
    }
    for (const auto& [name, values] : tensors) {
      w.write(name, std::as_bytes(std::span(*values)));
    }
    w.finish();
  }
};

std::unique_ptr<CausalLm> load(const std::string& path, Device device,
                               const std::vector<std::string>& adapters,
                               const SplitOptions& split = {}) {
  LoadOptions options;
  options.device = device;
  options.adapters = adapters;
  options.split = split;
  return CausalLm::load(*io::Gguf::open(path), options);
}

std::vector<float> logits_with(const CausalLm& model, std::vector<float> scales) {
  const std::vector<int32_t> tokens = some_tokens(kTokens);
  nn::KvCache cache = model.make_cache(kTokens, DType::f32);
  const BatchInput input{0, tokens, scales};
  return model.forward({&input, 1}, cache, Logits::all).to_vector<float>();
}

double difference(std::span<const float> got, std::span<const float> expected) {
  double worst = 0, most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = expected[i], g = got[i];
    worst = std::max(worst, std::fabs(g - e));
    most = std::max(most, std::fabs(e));
  }
  return got.size() == expected.size() ? worst / most : INFINITY;
}

const std::vector<std::string> kNames = {"blk.0.attn_q.weight", "blk.1.attn_k.weight",
                                         "blk.1.attn_output.weight", "blk.0.ffn_down.weight",
                                         "blk.1.ffn_gate.weight"};

// qwen2's and gemma's rows are reordered for rope, with and without biases.
TEST(Adapters, GiveTheLogitsOfUpdatedWeights) {
  const TempFolder folder;
  for (const char* family : {"llama", "qwen2", "gemma2", "command-r"}) {
    const TinyModel tiny = TinyModel::read(family);
    std::vector<std::string> names = kNames;
    if (!tiny.logits.empty() && tiny.architecture == "llama") names.push_back("output.weight");
    const TinyAdapter first(tiny, names, 1), second(tiny, {"blk.0.attn_v.weight", kNames[0]}, 2);
    tiny.write(folder.path("m.gguf"));
    first.write(folder.path("a.gguf"));
    second.write(folder.path("b.gguf"));
    const auto merged = [&](double of_first, double of_second) {
      TinyModel updated = tiny;
      const auto add = [&](const TinyAdapter& adapter, double scale) {
        for (const auto& [name, factors] : adapter.factors) {
          std::vector<float>& delta = updated.deltas[name];
          const std::vector<float> more = adapter.delta(name, scale);
          delta.resize(more.size());
          for (size_t i = 0; i < more.size(); ++i) delta[i] += more[i];
        }
      };
      add(first, of_first), add(second, of_second);
      updated.write(folder.path("u.gguf"));
      return logits_with(*load(folder.path("u.gguf"), {}, {}), {});
    };
    const std::vector<float> plain = logits_with(*load(folder.path("m.gguf"), {}, {}), {});
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(family) + " " + device.str());
      const auto model =
          load(folder.path("m.gguf"), device, {folder.path("a.gguf"), folder.path("b.gguf")});
      EXPECT_EQ(model->adapters(), 2);
      EXPECT_LT(difference(logits_with(*model, {}), merged(1, 1)), 1e-5);
      EXPECT_LT(difference(logits_with(*model, {0.5f, -2.0f}), merged(0.5, -2)), 1e-5);
      EXPECT_LT(difference(logits_with(*model, {0.5f}), merged(0.5, 1)), 1e-5);
      EXPECT_LT(difference(logits_with(*model, {0.0f, 0.0f}), plain), 1e-5);
      EXPECT_GT(difference(logits_with(*model, {}), plain), 1e-2);
    }
  }
}

TEST(Adapters, AreChosenForEachSequence) {
  const TempFolder folder;
  const TinyModel tiny = TinyModel::read("llama");
  tiny.write(folder.path("m.gguf"));
  TinyAdapter(tiny, kNames, 1).write(folder.path("a.gguf"));
  TinyAdapter(tiny, kNames, 2).write(folder.path("b.gguf"));
  for (const Device device : test::cpu_and_devices()) {
    const auto model =
        load(folder.path("m.gguf"), device, {folder.path("a.gguf"), folder.path("b.gguf")});
    const std::vector<std::vector<float>> scales = {{1, 0}, {0, 1}, {0.5f, 0.25f}};
    const std::vector<int32_t> tokens = some_tokens(kTokens);
    nn::KvCache cache = model->make_cache(kTokens + 4, DType::f32, 3);
    std::vector<BatchInput> inputs;
    for (int64_t i = 0; i < 3; ++i) {
      inputs.push_back({i, tokens, scales[static_cast<size_t>(i)]});
    }
    std::vector<float> all = model->forward(inputs, cache, Logits::all).to_vector<float>();
    const int64_t sequences[] = {0, 1, 2};
    Decoder decoder(*model, cache, sequences);
    for (size_t i = 0; i < 3; ++i) decoder.set_scales(i, scales[i]);
    std::vector<std::vector<float>> steps;
    for (int step = 0; step < 3; ++step) {
      steps.push_back(decoder.step(std::vector<int32_t>{7, 7, 7}).to_vector<float>());
    }
    for (size_t i = 0; i < 3; ++i) {
      SCOPED_TRACE(device.str() + " sequence " + std::to_string(i));
      const size_t size = all.size() / 3, row = size / kTokens;
      EXPECT_EQ(std::vector(all.begin() + static_cast<ptrdiff_t>(i * size),
                            all.begin() + static_cast<ptrdiff_t>((i + 1) * size)),
                logits_with(*model, scales[i]));
      nn::KvCache alone = model->make_cache(kTokens + 4, DType::f32);
      const BatchInput input{0, tokens, scales[i]};
      (void)model->forward({&input, 1}, alone, Logits::last);
      Decoder one(*model, alone);
      one.set_scales(0, scales[i]);
      for (int step = 0; step < 3; ++step) {
        const std::vector<float>& got = steps[static_cast<size_t>(step)];
        EXPECT_EQ(std::vector(got.begin() + static_cast<ptrdiff_t>(i * row),
                              got.begin() + static_cast<ptrdiff_t>((i + 1) * row)),
                  one.step(7).to_vector<float>());
      }
    }
  }
}

TEST(Adapters, OfSplitModels) {
  const TempFolder folder;
  const TinyModel tiny = TinyModel::read("llama");
  tiny.write(folder.path("m.gguf"));
  TinyAdapter(tiny, kNames, 1).write(folder.path("a.gguf"));
  const std::vector<int32_t> tokens = some_tokens(kTokens);
  const auto steps_of = [&](const CausalLm& model) {
    nn::KvCache cache = model.make_cache(kTokens + 4, DType::f32);
    const BatchInput input{0, tokens, {}};
    std::vector<float> all = model.forward({&input, 1}, cache, Logits::all).to_vector<float>();
    Decoder decoder(model, cache);
    for (const float scale : {1.0f, 1.0f, 0.5f, 0.5f}) {
      if (scale < 1.0f) decoder.set_scales(0, {&scale, 1});
      const std::vector<float> more = decoder.step(7).to_vector<float>();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  const std::vector<float> whole =
      steps_of(*load(folder.path("m.gguf"), {}, {folder.path("a.gguf")}));
  for (const Device device : test::devices()) {
    const auto model =
        load(folder.path("m.gguf"), device, {folder.path("a.gguf")}, {.gpu_layers = 1});
    EXPECT_EQ(model->pieces(), device == Device::cpu() ? 1U : 2U);
    EXPECT_LT(difference(steps_of(*model), whole), 1e-5);
  }
}

TEST(Adapters, InvalidFiles) {
  const TempFolder folder;
  const TinyModel tiny = TinyModel::read("llama");
  tiny.write(folder.path("m.gguf"));
  const std::string path = folder.path("a.gguf");
  const auto error = [&](const TinyAdapter& adapter) {
    adapter.write(path);
    const std::string message = error_of([&] { load(folder.path("m.gguf"), {}, {path}); });
    if (message != "no error") {
      EXPECT_THAT(message, HasSubstr(path));
    }
    return message;
  };
  const auto edited = [&](auto edit) {
    TinyAdapter adapter(tiny, kNames, 1);
    edit(adapter);
    return error(adapter);
  };
  EXPECT_EQ(edited([](auto&) {}), "no error");
  EXPECT_THAT(edited([](auto& a) { a.edit = [](auto& w) { w.remove("general.type"); }; }),
              HasSubstr("not an adapter: general.type = 'model': need 'adapter'"));
  EXPECT_THAT(
      edited([](auto& a) { a.edit = [](auto& w) { w.set_string("adapter.type", "other"); }; }),
      HasSubstr("unsupported kind of adapter: 'other'"));
  EXPECT_THAT(edited([](auto& a) { a.architecture = "qwen2"; }),
              HasSubstr("adapter of another architecture: 'qwen2': the model's is 'llama'"));
  EXPECT_EQ(edited([](auto& a) { a.factors.clear(); }), path + ": adapter has no factors");
  EXPECT_THAT(edited([](auto& a) { a.alpha = NAN; }), HasSubstr("adapter.lora.alpha"));
  for (const char* factor : {".lora_a", ".lora_b"}) {
    EXPECT_THAT(edited([&](auto& a) { a.without = kNames[0] + factor; }),
                HasSubstr(kNames[0] + factor));
  }
  EXPECT_THAT(edited([](auto& a) {
                a.factors["blk.9.attn_q.weight"] = a.factors.at(kNames[0]);
                a.shapes["blk.9.attn_q.weight"] = a.shapes.at(kNames[0]);
              }),
              HasSubstr("factors that this version doesn't use: blk.9.attn_q.weight"));
  EXPECT_THAT(edited([](auto& a) {
                a.shapes.at(kNames[0]) = {64, 32};
                a.factors.at(kNames[0]).first.resize(3 * 32);
              }),
              HasSubstr("factors don't fit the model"));
  EXPECT_THAT(error_of([&] { load(folder.path("m.gguf"), {}, {folder.path("m.gguf")}); }),
              HasSubstr("not an adapter"));
  TinyAdapter(tiny, kNames, 1).write(path);
  const auto model = load(folder.path("m.gguf"), {}, {path});
  EXPECT_THAT(error_of([&] {
                logits_with(*model, {1, 2});
              }),
              HasSubstr("more scales than adapters: 2: there are 1"));
  EXPECT_THAT(error_of([&] { logits_with(*model, {NAN}); }), HasSubstr("isn't finite"));
}

}  // namespace
}  // namespace wick::models
