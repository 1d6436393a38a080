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
      shapes[name] = model.shape_of(name);
      const auto [of_a, of_b] = factor_shapes(name);
      auto& [a, b] = factors[name];
      for (int64_t i = 0; i < of_a.elems(); ++i) a.push_back(normal(random));
      for (int64_t i = 0; i < of_b.elems(); ++i) b.push_back(normal(random));
    }
  }

  /// The shapes of A and B. Those of a table are [rows, rank] and [size, rank].
  std::pair<Shape, Shape> factor_shapes(const std::string& name) const {
    const Shape& s = shapes.at(name);
    if (name == "token_embd.weight") return {{s[0], rank}, {s[1], rank}};
    if (s.rank() == 2) return {{rank, s[1]}, {s[0], rank}};
    return {{s[0], rank, s[2]}, {s[0], s[1], rank}};
  }

  /// scale · alpha / rank · B·A of a matrix, or of each matrix of a stack.
  std::vector<float> delta(const std::string& name, double scale) const {
    const auto& [a, b] = factors.at(name);
    const Shape& shape = shapes.at(name);
    const bool is_table = name == "token_embd.weight";
    const int rank_of = shape.rank();
    const int64_t count = rank_of == 3 ? shape[0] : 1, n = shape[rank_of - 2], k = shape.back();
    std::vector<float> values;
    for (int64_t row = 0; row < count * n; ++row) {
      const int64_t matrix = row / n;
      for (int64_t j = 0; j < k; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < rank; ++r) {
          const float of_b = is_table ? b.at(static_cast<size_t>(j * rank + r))
                                      : b.at(static_cast<size_t>(row * rank + r));
          const float of_a = is_table ? a.at(static_cast<size_t>(row * rank + r))
                                      : a.at(static_cast<size_t>((matrix * rank + r) * k + j));
          sum += static_cast<double>(of_b) * static_cast<double>(of_a);
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
      const auto [of_a, of_b] = factor_shapes(name);
      for (const bool is_a : {true, false}) {
        const std::string tensor = name + (is_a ? ".lora_a" : ".lora_b");
        if (tensor == without) continue;
        w.add_tensor(tensor, DType::f32, is_a ? of_a : of_b);
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

/// Adds the adapters' updates to a model's matrices, with a scale for each adapter.
TinyModel merged_model(const TinyModel& tiny,
                       const std::vector<std::pair<const TinyAdapter*, double>>& adapters) {
  TinyModel updated = tiny;
  for (const auto& [adapter, scale] : adapters) {
    for (const auto& [name, factors] : adapter->factors) {
      std::vector<float>& delta = updated.deltas[name];
      const std::vector<float> more = adapter->delta(name, scale);
      delta.resize(more.size());
      for (size_t i = 0; i < more.size(); ++i) delta[i] += more[i];
    }
  }
  return updated;
}

/// A model with two adapters, in files.
class TwoAdapters {
 public:
  TwoAdapters(const TinyModel& tiny, const std::vector<std::string>& of_first,
              const std::vector<std::string>& of_second)
      : tiny_(tiny), first_(tiny, of_first, 1), second_(tiny, of_second, 2) {
    tiny.write(folder_.path("m.gguf"));
    first_.write(folder_.path("a.gguf"));
    second_.write(folder_.path("b.gguf"));
  }

  std::unique_ptr<CausalLm> with_adapters(Device device, const SplitOptions& split = {}) const {
    return load(folder_.path("m.gguf"), device, {folder_.path("a.gguf"), folder_.path("b.gguf")},
                split);
  }
  std::vector<float> plain() const {
    return logits_with(*load(folder_.path("m.gguf"), {}, {}), {});
  }
  /// The logits of weights to which the updates were added.
  std::vector<float> merged(double of_first, double of_second) const {
    merged_model(tiny_, {{&first_, of_first}, {&second_, of_second}}).write(folder_.path("u.gguf"));
    return logits_with(*load(folder_.path("u.gguf"), {}, {}), {});
  }

 private:
  TempFolder folder_;
  const TinyModel& tiny_;
  TinyAdapter first_, second_;
};

// qwen2's and gemma's rows are reordered for rope, with and without biases.
TEST(Adapters, GiveTheLogitsOfUpdatedWeights) {
  for (const char* family : {"llama", "qwen2", "gemma2", "command-r"}) {
    const TinyModel tiny = TinyModel::read(family);
    std::vector<std::string> names = kNames;
    if (!tiny.logits.empty() && tiny.architecture == "llama") names.push_back("output.weight");
    const TwoAdapters files(tiny, names, {"blk.0.attn_v.weight", kNames[0]});
    const std::vector<float> plain = files.plain();
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(family) + " " + device.str());
      const auto model = files.with_adapters(device);
      EXPECT_EQ(model->adapters(), 2);
      EXPECT_LT(difference(logits_with(*model, {}), files.merged(1, 1)), 1e-5);
      EXPECT_LT(difference(logits_with(*model, {0.5f, -2.0f}), files.merged(0.5, -2)), 1e-5);
      EXPECT_LT(difference(logits_with(*model, {0.5f}), files.merged(0.5, 1)), 1e-5);
      EXPECT_LT(difference(logits_with(*model, {0.0f, 0.0f}), plain), 1e-5);
      EXPECT_GT(difference(logits_with(*model, {}), plain), 1e-2);
    }
  }
}

/// Models with stacks of matrices, and the tensors that adapters change. Experts have biases
/// (gpt-oss), weighed inputs (Llama 4), or gates and ups in one tensor (Gemma 4). The heads of
/// latent attention are stacks, too.
const std::pair<const char*, std::vector<std::string>> kStacks[] = {
    {"mixtral",
     {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight",
      "token_embd.weight", "output.weight", "blk.1.ffn_gate_inp.weight"}},
    {"gpt-oss", {"blk.0.ffn_up_exps.weight", "blk.0.ffn_down_exps.weight"}},
    {"llama4", {"blk.1.ffn_gate_exps.weight", "blk.1.ffn_down_exps.weight"}},
    {"gemma4-moe", {"blk.0.ffn_gate_up_exps.weight", "blk.1.ffn_down_exps.weight"}},
    {"deepseek2-lite",
     {"blk.0.attn_k_b.weight", "blk.0.attn_v_b.weight", "blk.1.ffn_up_exps.weight"}},
};

TEST(Adapters, OfExpertsAndTables) {
  for (const auto& [family, names] : kStacks) {
    const TinyModel tiny = TinyModel::read(family);
    const TwoAdapters files(tiny, names, {names[0], names[1]});
    const std::vector<float> plain = files.plain();
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(family) + " " + device.str());
      for (const int64_t on_cpu : {0, 1}) {
        const auto model = files.with_adapters(device, {.cpu_experts = on_cpu});
        EXPECT_LT(difference(logits_with(*model, {}), files.merged(1, 1)), 2e-5);
        EXPECT_LT(difference(logits_with(*model, {0.5f, -0.25f}), files.merged(0.5, -0.25)), 2e-5);
        EXPECT_LT(difference(logits_with(*model, {0, 0}), plain), 1e-5);
        EXPECT_GT(difference(logits_with(*model, {}), plain), 1e-3);
      }
    }
  }
}

// The table of a model without an output matrix is also that matrix, but adapters of one don't
// change the other.
TEST(Adapters, OfTiedTables) {
  const TempFolder folder;
  const TinyModel whole = TinyModel::read("llama");
  TinyModel tied = whole;
  tied.without = {"output.weight"};
  tied.write(folder.path("m.gguf"));
  for (const char* name : {"token_embd.weight", "output.weight"}) {
    const TinyAdapter adapter(whole, {name}, 1);
    adapter.write(folder.path("a.gguf"));
    whole.write(folder.path("w.gguf"));
    TinyModel updated = merged_model(whole, {{&adapter, 1.0}});
    const auto values_of = [&](const char* tensor) {
      const auto file = io::Gguf::open(folder.path("w.gguf"));
      return file->tensor(file->require_tensor(tensor)).to_vector<float>();
    };
    const std::vector<float> table = values_of("token_embd.weight");
    const std::vector<float> output = values_of("output.weight");
    std::vector<float>& delta = updated.deltas["output.weight"];
    delta.resize(output.size());
    for (size_t i = 0; i < output.size(); ++i) delta[i] += table[i] - output[i];
    updated.write(folder.path("u.gguf"));
    const std::vector<float> expected = logits_with(*load(folder.path("u.gguf"), {}, {}), {});
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(name) + " " + device.str());
      const auto model = load(folder.path("m.gguf"), device, {folder.path("a.gguf")});
      EXPECT_LT(difference(logits_with(*model, {}), expected), 1e-5);
      EXPECT_GT(difference(logits_with(*model, {0}), expected), 1e-2);
    }
  }
}

// Activations are rounded to eight bits for these weights, so the logits are near those of the
// decoded weights with the update.
TEST(Adapters, BesideQuantisedWeights) {
  const TempFolder folder;
  for (const auto& [family, names] : {std::pair("llama", kNames), kStacks[0]}) {
    TinyModel tiny = TinyModel::read(family);
    tiny.dtype = DType::q8_0;
    const TinyAdapter adapter(tiny, names, 1);
    tiny.write(folder.path("m.gguf"));
    adapter.write(folder.path("a.gguf"));
    TinyModel updated = merged_model(tiny, {{&adapter, 1.0}});
    updated.dequantized = true;
    updated.write(folder.path("u.gguf"));
    const std::vector<float> expected = logits_with(*load(folder.path("u.gguf"), {}, {}), {});
    const std::vector<float> plain = logits_with(*load(folder.path("m.gguf"), {}, {}), {});
    EXPECT_GT(difference(plain, expected), 0.2);
    std::vector<float> on_cpu;
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(family) + " " + device.str());
      const auto model = load(folder.path("m.gguf"), device, {folder.path("a.gguf")});
      const std::vector<float> got = logits_with(*model, {});
      EXPECT_LT(difference(got, expected), 0.05);
      if (on_cpu.empty()) on_cpu = got;
      EXPECT_LT(difference(got, on_cpu), 1e-5);
    }
  }
}

/// Compares sequences with different scales in one batch, and alone.
void expect_chosen_for_each_sequence(const TinyModel& tiny, const std::vector<std::string>& names,
                                     const SplitOptions& split = {}) {
  const TwoAdapters files(tiny, names, names);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(tiny.name);
    const auto model = files.with_adapters(device, split);
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

TEST(Adapters, AreChosenForEachSequence) {
  expect_chosen_for_each_sequence(TinyModel::read("llama"), kNames);
  for (const auto& [family, names] : kStacks) {
    for (const int64_t on_cpu : {0, 1}) {
      expect_chosen_for_each_sequence(TinyModel::read(family), names, {.cpu_experts = on_cpu});
    }
  }
  TinyModel quantised = TinyModel::read("mixtral");
  quantised.dtype = DType::q8_0;
  expect_chosen_for_each_sequence(quantised, kStacks[0].second);
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
  const auto table = [&](auto edit) {
    TinyAdapter adapter(tiny, {"token_embd.weight"}, 1);
    edit(adapter);
    return error(adapter);
  };
  EXPECT_EQ(table([](auto&) {}), "no error");
  EXPECT_THAT(table([](auto& a) {
                a.shapes.at("token_embd.weight") = {41, 64};
                a.factors.at("token_embd.weight").first.resize(3 * 41);
              }),
              HasSubstr("factors don't fit the model"));
  TinyAdapter(tiny, kNames, 1).write(path);
  const auto model = load(folder.path("m.gguf"), {}, {path});
  EXPECT_THAT(error_of([&] {
                logits_with(*model, {1, 2});
              }),
              HasSubstr("more scales than adapters: 2: there are 1"));
  EXPECT_THAT(error_of([&] { logits_with(*model, {NAN}); }), HasSubstr("isn't finite"));
}

TEST(Adapters, InvalidStacks) {
  const TempFolder folder;
  const TinyModel tiny = TinyModel::read("mixtral");
  tiny.write(folder.path("m.gguf"));
  const std::string path = folder.path("a.gguf"), name = "blk.0.ffn_up_exps.weight";
  const Shape good = tiny.shape_of(name);
  const auto error = [&](const Shape& a, const Shape& b) {
    io::GgufWriter w(path);
    w.set_string("general.type", "adapter");
    w.set_string("general.architecture", tiny.architecture);
    w.set_string("adapter.type", "lora");
    w.add_tensor(name + ".lora_a", DType::f32, a);
    w.add_tensor(name + ".lora_b", DType::f32, b);
    for (const auto& [tensor, shape] : {std::pair(".lora_a", a), std::pair(".lora_b", b)}) {
      const std::vector<float> zeros(static_cast<size_t>(shape.elems()));
      w.write(name + tensor, std::as_bytes(std::span(zeros)));
    }
    w.finish();
    return error_of([&] { load(folder.path("m.gguf"), {}, {path}); });
  };
  const int64_t count = good[0], n = good[1], k = good[2];
  EXPECT_EQ(error({count, 2, k}, {count, n, 2}), "no error");
  EXPECT_THAT(error({count - 1, 2, k}, {count - 1, n, 2}),
              HasSubstr("factors don't fit the model"));
  EXPECT_THAT(error({count, 2, k + 1}, {count, n, 2}), HasSubstr("factors don't fit the model"));
  EXPECT_THAT(error({2, k}, {n, 2}), HasSubstr("factors don't fit the model"));
  EXPECT_THAT(error({count, 2, k}, {count, n, 3}), HasSubstr("factors don't fit: " + name));
  EXPECT_THAT(error({count, 2, k}, {count - 1, n, 2}), HasSubstr("factors don't fit: " + name));
  EXPECT_THAT(error({count, 2, k}, {n, 2}), HasSubstr("factors don't fit: " + name));
  EXPECT_THAT(error({1, count, 2, k}, {count, n, 2}), HasSubstr("isn't a matrix of floats"));
}

}  // namespace
}  // namespace wick::models
