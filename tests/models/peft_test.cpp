// Adapters as PEFT writes them, against the logits of transformers with PEFT.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/expect_error.h"
#include "tests/io/safetensors_builder.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "tests/test_devices.h"
#include "wick/models/causal_lm.h"
#include "wick/models/open_model.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

using json = nlohmann::ordered_json;  // the order of patterns counts
using test::error_of;
using test::some_tokens;
using test::TinyModel;
using testing::HasSubstr;

constexpr int64_t kTokens = 24;

/// An adapter that data/peft/NAME.json describes (see reference/make_adapters.py).
struct PeftAdapter {
  json described;
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;

  explicit PeftAdapter(const std::string& name) {
    std::ifstream(std::string(WICK_MODELS_DATA) + "/peft/" + name + ".json") >> described;
    for (const json& tensor : described.at("tensors")) {
      tensors.emplace_back(tensor.at("name"), tensor.at("shape").get<std::vector<int64_t>>());
    }
  }
  TinyModel model() const { return TinyModel::read(described.at("model")); }
  json& config() { return described.at("config"); }
  std::vector<float> logits() const {
    std::vector<float> all;
    for (const json& row : described.at("logits")) {
      for (const float value : row.get<std::vector<float>>()) all.push_back(value);
    }
    return all;
  }
  void write(const std::string& folder) const {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/adapter_config.json") << described.at("config");
    io::test::SafetensorsBuilder b;
    for (const auto& [name, dims] : tensors) {
      const std::vector<float> values =
          test::random_values(name, Shape(std::span<const int64_t>(dims)), -0.35, 0.35);
      b.tensor(name, "F32", dims,
               {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    }
    std::ofstream(folder + "/adapter_model.safetensors", std::ios::binary) << b.build();
  }
};

std::unique_ptr<CausalLm> load(const std::string& model, Device device,
                               const std::vector<std::string>& adapters) {
  LoadOptions options;
  options.device = device;
  options.adapters = adapters;
  return CausalLm::load(*open_model(model), options);
}

/// The logits of every fourth token.
std::vector<float> logits_of(const CausalLm& model, const std::vector<float>& scales = {}) {
  const std::vector<int32_t> tokens = some_tokens(kTokens);
  nn::KvCache cache = model.make_cache(kTokens, DType::f32);
  const BatchInput input{0, tokens, scales};
  const Tensor all = model.forward({&input, 1}, cache, Logits::all);
  std::vector<float> rows;
  for (int64_t i = 3; i < kTokens; i += 4) {
    for (const float value : all.narrow(0, i, 1).to_vector<float>()) rows.push_back(value);
  }
  return rows;
}

double difference(const std::vector<float>& got, const std::vector<float>& expected) {
  double worst = 0, most = 0;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    worst =
        std::max(worst, std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i])));
    most = std::max(most, std::fabs(static_cast<double>(expected[i])));
  }
  return got.size() == expected.size() ? worst / most : INFINITY;
}

TEST(PeftAdapters, GiveTheLogitsOfTransformers) {
  const io::test::TempFolder folder;
  const std::string gguf = folder.path("m.gguf"), directory = folder.path("m"),
                    path = folder.path("adapter");
  for (const char* name :
       {"llama", "llama-patterns", "llama-magnitudes", "llama-embeddings", "llama-saved",
        "llama-expressions", "qwen2", "qwen2-biases", "qwen2-lora-only", "qwen2-factor-biases",
        "qwen2moe", "gpt2", "gptneox", "phi3", "deepseek2-lite"}) {
    const PeftAdapter adapter(name);
    const TinyModel tiny = adapter.model();
    tiny.write(gguf);
    std::filesystem::remove_all(directory);
    tiny.write_directory(directory);
    adapter.write(path);
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(std::string(name) + " " + device.str());
      for (const std::string& model : {gguf, directory}) {
        EXPECT_LT(difference(logits_of(*load(model, device, {path})), adapter.logits()), 2e-4);
      }
      const auto twice = load(gguf, device, {path, path});
      EXPECT_LT(difference(logits_of(*twice, {0.25f, 0.75f}), adapter.logits()), 2e-4);
      EXPECT_LT(difference(logits_of(*twice, {0, 0}), tiny.logits), 2e-4);
      EXPECT_GT(difference(adapter.logits(), tiny.logits), 1e-2);
    }
  }
}

/// Changes the values of a tensor in a model.safetensors of f32.
void change(const std::string& file, const std::string& name,
            const std::function<void(std::vector<float>&)>& edit) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const json entry = json::parse(bytes.substr(8, length)).at(name);
  const size_t at = 8 + length + entry.at("data_offsets").at(0).get<size_t>();
  const size_t end = 8 + length + entry.at("data_offsets").at(1).get<size_t>();
  std::vector<float> values((end - at) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + at, end - at);
  edit(values);
  std::memcpy(bytes.data() + at, values.data(), end - at);
  std::ofstream(file, std::ios::binary) << bytes;
}

/// Adds scale · b·a to a matrix in a model.safetensors of f32.
void merge(const std::string& file, const std::string& name, const Tensor& a, const Tensor& b,
           double scale) {
  const std::vector<float> more = (matmul(b, a) * scale).to_vector<float>();
  change(file, name, [&](std::vector<float>& values) {
    ASSERT_EQ(values.size(), more.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] += more[i];
  });
}

/// An adapter of tensors with pseudo-random values, and the directory whose weights hold it.
class Variant {
 public:
  Variant(const char* model, const json& config, int64_t rank)
      : rank_(rank), tiny_(TinyModel::read(model)), adapter_("llama") {
    adapter_.config() = {{"peft_type", "LORA"}, {"r", rank}, {"lora_alpha", 2.0}};
    adapter_.config().update(config);
    adapter_.tensors.clear();
    tiny_.write(folder_.path("m.gguf"));
    tiny_.write_directory(directory(), 1);
  }

  std::string directory() const { return folder_.path("m"); }
  const TinyModel& model() const { return tiny_; }

  /// A tensor of the adapter: its values.
  std::vector<double> tensor(const std::string& name, const std::vector<int64_t>& dims) {
    const std::string full = "base_model.model." + name;
    adapter_.tensors.emplace_back(full, dims);
    const Shape shape{std::span<const int64_t>(dims)};
    const std::vector<float> values = test::random_values(full, shape, -0.35, 0.35);
    return {values.begin(), values.end()};
  }
  /// The rows of scale · B·A of a module, an n × k matrix.
  std::vector<double> product(const std::string& module, int64_t n, int64_t k, double scale) {
    const std::vector<double> a = tensor(module + ".lora_A.weight", {rank_, k});
    const std::vector<double> b = tensor(module + ".lora_B.weight", {n, rank_});
    std::vector<double> all;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < rank_; ++r) {
          sum += b.at(static_cast<size_t>(i * rank_ + r)) * a.at(static_cast<size_t>(r * k + j));
        }
        all.push_back(scale * sum);
      }
    }
    return all;
  }
  void edit(const std::string& weight, const std::function<void(std::vector<float>&)>& edit) {
    change(directory() + "/model.safetensors", weight, edit);
  }
  void add(const std::string& weight, const std::vector<double>& more) {
    edit(weight, [&](std::vector<float>& values) {
      ASSERT_EQ(values.size(), more.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(more[i]);
    });
  }
  void set(const std::string& weight, const std::vector<double>& to) {
    edit(weight, [&](std::vector<float>& values) {
      ASSERT_EQ(values.size(), to.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(to[i]);
    });
  }

  /// Compares the adapter beside the GGUF file and beside the unchanged directory with the changed
  /// directory, and with the plain model at scale 0; a batch with both gives both their bits.
  void compare() {
    const std::vector<float> expected = logits_of(*load(directory(), {}, {}));
    const std::string path = folder_.path("adapter"), plain = folder_.path("plain");
    tiny_.write_directory(plain, 1);
    adapter_.write(path);
    for (const Device device : test::cpu_and_devices()) {
      SCOPED_TRACE(tiny_.name + " " + device.str());
      for (const std::string& from : {folder_.path("m.gguf"), plain}) {
        const auto model = load(from, device, {path});
        EXPECT_LT(difference(logits_of(*model), expected), 1e-4);
        EXPECT_LT(difference(logits_of(*model, {0}), tiny_.logits), 2e-4);
        EXPECT_GT(difference(expected, tiny_.logits), 1e-2);
        expect_choice(*model);
      }
    }
  }

 private:
  static void expect_choice(const CausalLm& model) {
    const std::vector<int32_t> tokens = some_tokens(kTokens);
    const std::vector<float> scales[] = {{1}, {0}, {0.5f}};
    nn::KvCache cache = model.make_cache(kTokens, DType::f32, 3);
    std::vector<BatchInput> inputs;
    for (int64_t i = 0; i < 3; ++i) inputs.push_back({i, tokens, scales[i]});
    const Tensor all = model.forward(inputs, cache, Logits::last);
    for (int64_t i = 0; i < 3; ++i) {
      nn::KvCache alone = model.make_cache(kTokens, DType::f32);
      const BatchInput input{0, tokens, scales[i]};
      EXPECT_EQ(all.narrow(0, i, 1).to_vector<float>(),
                model.forward({&input, 1}, alone, Logits::last).to_vector<float>());
    }
  }

  int64_t rank_;
  io::test::TempFolder folder_;
  TinyModel tiny_;
  PeftAdapter adapter_;
};

constexpr double kHalf = 0.5;  // alpha / rank for rank 4

// Rows of keys are reordered for rope in Llama's GGUF files, and gate and up are one gemm.
TEST(PeftAdapters, OfMagnitudes) {
  Variant v("llama", {{"use_dora", true}}, 4);
  const std::string layer = "model.layers.0.";
  for (const auto& [module, n, k] :
       {std::tuple("self_attn.k_proj", 32, 64), std::tuple("self_attn.q_proj", 64, 64),
        std::tuple("mlp.up_proj", 96, 64), std::tuple("mlp.down_proj", 64, 96)}) {
    const std::string name = layer + module;
    const std::vector<double> more = v.product(name, n, k, kHalf);
    std::vector<double> norms = v.tensor(name + ".lora_magnitude_vector", {n});
    v.edit(name + ".weight", [&, rows = n, columns = k](std::vector<float>& w) {
      ASSERT_EQ(w.size(), more.size());
      for (int row = 0; row < rows; ++row) {
        double squares = 0;
        const auto at = [&](int j) { return static_cast<size_t>(row * columns + j); };
        for (int j = 0; j < columns; ++j) {
          const double x = static_cast<double>(w[at(j)]) + more[at(j)];
          squares += x * x;
        }
        const double gain = norms[static_cast<size_t>(row)] / std::sqrt(squares);
        for (int j = 0; j < columns; ++j) {
          w[at(j)] = static_cast<float>(gain * (static_cast<double>(w[at(j)]) + more[at(j)]));
        }
      }
    });
  }
  v.compare();
}

// Qwen 2 has biases of queries, keys and values. That of the values is trained without factors.
TEST(PeftAdapters, OfTrainedBiases) {
  Variant v("qwen2", {{"bias", "all"}}, 4);
  const std::string attention = "model.layers.1.self_attn.";
  v.add(attention + "q_proj.weight", v.product(attention + "q_proj", 64, 64, kHalf));
  v.set(attention + "q_proj.bias", v.tensor(attention + "q_proj.base_layer.bias", {64}));
  v.set(attention + "v_proj.bias", v.tensor(attention + "v_proj.bias", {32}));
  v.compare();
}

TEST(PeftAdapters, OfFactorsWithBiases) {
  Variant v("qwen2", {{"lora_bias", true}}, 4);
  const std::string q = "model.layers.1.self_attn.q_proj";
  v.add(q + ".weight", v.product(q, 64, 64, kHalf));
  std::vector<double> bias = v.tensor(q + ".lora_B.bias", {64});
  for (double& x : bias) x *= kHalf;
  v.add(q + ".bias", bias);
  v.compare();
}

TEST(PeftAdapters, OfSavedModules) {
  Variant v("llama", {{"modules_to_save", {"lm_head", "embed_tokens", "1.mlp.gate_proj"}}}, 4);
  for (const auto& [module, n] : {std::pair("lm_head", 40), std::pair("model.embed_tokens", 40),
                                  std::pair("model.layers.1.mlp.gate_proj", 96)}) {
    const std::string weight = std::string(module) + ".weight";
    v.set(weight, v.tensor(weight, {n, 64}));
  }
  const std::string v_proj = "model.layers.0.self_attn.v_proj";
  v.add(v_proj + ".weight", v.product(v_proj, 32, 64, kHalf));
  v.compare();
}

TEST(PeftAdapters, OfEmbeddings) {
  Variant v("llama", json::object(), 4);
  const std::string name = "model.embed_tokens";
  const std::vector<double> a = v.tensor(name + ".lora_embedding_A", {4, 40});
  const std::vector<double> b = v.tensor(name + ".lora_embedding_B", {64, 4});
  (void)v.tensor(name + ".base_layer.weight", {40, 64});  // a copy, which isn't read
  v.edit(name + ".weight", [&](std::vector<float>& table) {
    for (size_t i = 0; i < table.size(); ++i) {
      double sum = 0;
      for (size_t r = 0; r < 4; ++r) sum += b[i % 64 * 4 + r] * a[r * 40 + i / 64];
      table[i] += static_cast<float>(kHalf * sum);
    }
  });
  v.compare();
}

// Not all experts have factors.
TEST(PeftAdapters, OfExperts) {
  Variant v("qwen2moe", json::object(), 4);
  for (const int expert : {0, 1, 2, 4}) {
    const std::string of = "model.layers.0.mlp.experts." + std::to_string(expert) + ".";
    v.add(of + "gate_proj.weight", v.product(of + "gate_proj", 32, 64, kHalf));
    v.add(of + "down_proj.weight", v.product(of + "down_proj", 64, 32, kHalf));
  }
  v.compare();
}

// The matrix is stored by head in GGUF files, and that of the keys is transposed.
TEST(PeftAdapters, OfLatentAttention) {
  Variant v("deepseek2-lite", json::object(), 4);
  for (const char* name :
       {"model.layers.0.self_attn.kv_b_proj", "model.layers.2.self_attn.kv_b_proj"}) {
    v.add(std::string(name) + ".weight", v.product(name, 160, 32, kHalf));
  }
  v.compare();
}

// The first pattern that matches counts, as in PEFT.
TEST(PeftAdapters, OfPatternsThatAreExpressions) {
  Variant v("llama",
            {{"r", 7},
             {"rank_pattern", {{"layers\\.[01]\\.self_attn\\.(q|v)_proj", 4}}},
             {"alpha_pattern", {{"q_pro.", 8}, {".*_proj", 6}}}},
            4);
  const std::string attention = "model.layers.1.self_attn.";
  v.add(attention + "q_proj.weight", v.product(attention + "q_proj", 64, 64, 2.0));
  v.add(attention + "v_proj.weight", v.product(attention + "v_proj", 32, 64, 1.5));
  v.compare();
}

// Matrices whose rows become those of several matrices.
TEST(PeftAdapters, OfRowsThatMove) {
  constexpr int64_t kRank = 4;
  const io::test::TempFolder folder;
  const std::string gguf = folder.path("m.gguf"), directory = folder.path("m"),
                    path = folder.path("adapter");
  const std::tuple<const char*, const char*, int64_t> cases[] = {
      {"granitemoe-shared", "shared_mlp.input_linear", 96},
      {"qwen3next", "linear_attn.in_proj_qkvz", 160}};
  for (const auto& [name, module, rows] : cases) {
    SCOPED_TRACE(name);
    const std::string matrix = std::string("model.layers.0.") + module;
    PeftAdapter adapter("llama");
    adapter.config() = {{"peft_type", "LORA"}, {"r", kRank}, {"lora_alpha", 2.0}};
    adapter.tensors = {{"base_model.model." + matrix + ".lora_A.weight", {kRank, 64}},
                       {"base_model.model." + matrix + ".lora_B.weight", {rows, kRank}}};
    const auto factor = [&](size_t i) {
      const auto& [tensor, dims] = adapter.tensors[i];
      const Shape shape{dims[0], dims[1]};
      return Tensor::from(test::random_values(tensor, shape, -0.35, 0.35), shape);
    };
    adapter.write(path);
    const TinyModel tiny = TinyModel::read(name);
    tiny.write(gguf);
    std::filesystem::remove_all(directory);
    tiny.write_directory(directory, 1);
    const auto of_gguf = logits_of(*load(gguf, {}, {path}));
    const auto of_directory = logits_of(*load(directory, {}, {path}));
    merge(directory + "/model.safetensors", matrix + ".weight", factor(0), factor(1), 0.5);
    const auto merged = logits_of(*load(directory, {}, {}));
    EXPECT_LT(difference(of_gguf, merged), 2e-4);
    EXPECT_LT(difference(of_directory, merged), 2e-4);
    EXPECT_GT(difference(merged, tiny.logits), 1e-2);
  }
}

TEST(PeftAdapters, InvalidFolders) {
  const io::test::TempFolder folder;
  const std::string model = folder.path("m.gguf"), path = folder.path("adapter");
  const PeftAdapter good("llama");
  good.model().write(model);
  const auto error = [&](const std::function<void(PeftAdapter&)>& edit) {
    PeftAdapter adapter = good;
    edit(adapter);
    adapter.write(path);
    const std::string message = error_of([&] { load(model, {}, {path}); });
    if (message != "no error") {
      EXPECT_THAT(message, HasSubstr(path));
    }
    return message;
  };
  const auto with = [&](const char* key, const json& value) {
    return error([&](PeftAdapter& a) { a.config()[key] = value; });
  };
  EXPECT_EQ(error([](PeftAdapter&) {}), "no error");
  EXPECT_THAT(with("peft_type", "IA3"), HasSubstr("peft_type"));
  EXPECT_THAT(with("use_dora", true), HasSubstr("use_dora and the module's tensors disagree"));
  EXPECT_THAT(with("bias", "some"), HasSubstr("bias"));
  EXPECT_EQ(with("bias", "all"), "no error");
  EXPECT_THAT(with("modules_to_save", json::array({"lm_head"})),
              HasSubstr("factors of a module that is saved"));
  EXPECT_EQ(with("modules_to_save", json::array()), "no error");
  EXPECT_EQ(with("lora_bias", true), "no error");
  EXPECT_THAT(error([](PeftAdapter& a) {
                a.config()["lora_bias"] = true;
                a.config()["use_dora"] = true;
              }),
              HasSubstr("lora_bias"));
  EXPECT_THAT(with("ensure_weight_tying", true), HasSubstr("ensure_weight_tying"));
  EXPECT_THAT(with("target_parameters", json::array({"x"})), HasSubstr("target_parameters"));
  EXPECT_THAT(with("init_lora_weights", "pissa_niter_16"), HasSubstr("init_lora_weights"));
  EXPECT_EQ(with("init_lora_weights", "gaussian"), "no error");
  EXPECT_THAT(with("r", 0), HasSubstr("r = 0"));
  EXPECT_THAT(with("r", 4), HasSubstr("factors don't fit"));
  EXPECT_THAT(with("r", "many"), HasSubstr("r = \"many\""));
  EXPECT_THAT(with("rank_pattern", {{"q_pro.*", 4}}), HasSubstr("factors don't fit"));
  EXPECT_THAT(with("rank_pattern", {{"(q_proj", 3}}), HasSubstr("a regular expression"));
  EXPECT_THAT(with("rank_pattern", {{"q_proj", 4}}), HasSubstr("factors don't fit"));
  EXPECT_EQ(with("rank_pattern", {{"q_proj", 3}, {"self_attn.q_proj", 4}}), "no error");
  EXPECT_THAT(with("alpha_pattern", 3), HasSubstr("alpha_pattern"));
  const auto renamed = [&](const std::string& from, const std::string& to) {
    return error([&](PeftAdapter& a) {
      for (auto& [name, dims] : a.tensors) {
        if (const size_t at = name.find(from); at != std::string::npos)
          name.replace(at, from.size(), to);
      }
    });
  };
  const std::string prefix = "base_model.model.model.layers.0.";
  EXPECT_THAT(renamed(prefix + "mlp.up_proj", prefix + "mlp.experts.3.up_proj"),
              HasSubstr("expert that the model doesn't have"));
  EXPECT_THAT(renamed(prefix + "mlp.up_proj", prefix + "mlp.experts.up_proj"),
              HasSubstr("the model has no such matrix"));
  EXPECT_THAT(renamed(prefix + "mlp.up_proj", prefix + "mlp.other"),
              HasSubstr("the model has no such matrix"));
  EXPECT_THAT(renamed("layers.1.mlp.up_proj", "layers.7.mlp.up_proj"),
              HasSubstr("factors that this version doesn't use: blk.7.ffn_up.weight"));
  EXPECT_THAT(
      renamed(prefix + "mlp.up_proj.lora_A.weight", prefix + "mlp.up_proj.lora_magnitude_vector"),
      HasSubstr("tensor that isn't a factor"));
  EXPECT_THAT(renamed(prefix + "mlp.up_proj.lora_A.weight", prefix + "mlp.up_proj.weight"),
              HasSubstr("tensor that isn't a factor"));
  EXPECT_THAT(renamed(prefix + "mlp.up_proj.lora_A.weight", prefix + "mlp.up_proj.bias"),
              HasSubstr("tensor that isn't a factor"));
  EXPECT_THAT(renamed(prefix + "mlp.up_proj.lora_A", "base_model.model.model.embed_tokens.lora_A"),
              HasSubstr("the other factor is missing"));
  EXPECT_THAT(renamed("base_model.model.lm_head.lora", "base_model.model.model.embed_tokens.lora"),
              HasSubstr("adapters of it aren't supported"));
  EXPECT_THAT(error([&](PeftAdapter& a) {
                for (auto& [name, dims] : a.tensors) {
                  if (name.find("base_layer") != std::string::npos) dims[0] = 41;
                }
              }),
              HasSubstr("output matrix differs from the model's"));
  EXPECT_THAT(error([&](PeftAdapter& a) {
                for (auto& [name, dims] : a.tensors) {
                  if (name.find("0.mlp.up_proj.lora_A") != std::string::npos) dims[1] = 32;
                }
              }),
              HasSubstr("factors don't fit the model"));
  good.write(path);
  std::filesystem::remove(path + "/adapter_model.safetensors");
  EXPECT_THAT(error_of([&] { load(model, {}, {path}); }), HasSubstr("adapter_model.safetensors"));
  std::filesystem::remove(path + "/adapter_config.json");
  EXPECT_THAT(error_of([&] { load(model, {}, {path}); }), HasSubstr("adapter_config.json"));
  TinyModel::read("mamba2").write(model);
  good.write(path);
  EXPECT_THAT(error_of([&] { load(model, {}, {path}); }),
              HasSubstr("the model has no such matrix, or adapters of it aren't supported"));
}

// A cut file gives an error, and so does a changed byte of the header, or it changes values.
TEST(PeftAdapters, DamagedFiles) {
  const io::test::TempFolder folder;
  const std::string model = folder.path("m.gguf"), path = folder.path("adapter");
  const PeftAdapter good("llama-patterns");
  good.model().write(model);
  good.write(path);
  for (const char* name : {"adapter_model.safetensors", "adapter_config.json"}) {
    const std::string file = path + "/" + name;
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    for (size_t cut = 0; cut < bytes.size(); cut += 1 + bytes.size() / 24) {
      std::ofstream(file, std::ios::binary) << bytes.substr(0, cut);
      EXPECT_THAT(error_of([&] { load(model, {}, {path}); }), HasSubstr(file));
    }
    for (size_t at = 0; at < std::min<size_t>(bytes.size(), 1000); at += 17) {
      std::string bad = bytes;
      bad[at] = static_cast<char>(static_cast<unsigned>(bad[at]) ^ 4U);
      std::ofstream(file, std::ios::binary) << bad;
      error_of([&] { load(model, {}, {path}); });
    }
    std::ofstream(file, std::ios::binary) << bytes;
  }
}

}  // namespace
}  // namespace wick::models
