// Models in Hugging Face directories: the same tiny models as in GGUF files, in the files that
// transformers writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/models/hf_directory.h"
#include "tests/models/record.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "wick/io/convert.h"
#include "wick/models/registry.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

using io::test::SafetensorsBuilder;
using test::error_of;
using test::some_tokens;
using test::TinyModel;
using testing::HasSubstr;

constexpr int64_t kTokens = 24;  // must match reference/make_models.py

std::vector<float> logits_of(const io::ModelFile& file) {
  const auto model = CausalLm::load(file, {});
  nn::KvCache cache = model->make_cache(kTokens, DType::f32);
  return model->forward(some_tokens(kTokens), cache, Logits::all).to_vector<float>();
}

/// The models whose descriptions have a directory.
std::vector<TinyModel> all_directories() {
  std::vector<TinyModel> models = TinyModel::all();
  std::erase_if(models, [](const TinyModel& tiny) { return tiny.config.empty(); });
  return models;
}

/// The largest difference of every fourth token's logits, relative to the largest logit.
double difference(const std::vector<float>& all, const std::vector<float>& expected) {
  const size_t row = all.size() / kTokens;
  double worst = 0, most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double got = static_cast<double>(all[(3 + i / row * 4) * row + i % row]);
    const auto wanted = static_cast<double>(expected[i]);
    if (!(std::fabs(got - wanted) <= worst)) worst = std::fabs(got - wanted);
    most = std::max(most, std::fabs(wanted));
  }
  return worst / most;
}

/// The largest difference of an embedding from the expected one of a pooling, relative to the
/// largest value.
double embedding_difference(const io::ModelFile& file, const TinyModel& tiny, size_t pooling) {
  const auto model = CausalLm::load(file, {});
  const std::vector<std::vector<int32_t>> sequences = {some_tokens(kTokens)};
  const std::vector<float> got = model->embed(sequences).to_vector<float>();
  double worst = 0, most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto wanted = static_cast<double>(tiny.embeddings.at(pooling * got.size() + i));
    const double apart = std::fabs(static_cast<double>(got[i]) - wanted);
    if (!(apart <= worst)) worst = apart;
    most = std::max(most, std::fabs(wanted));
  }
  return worst / most;
}

TEST_F(HfDirectory, GivesTransformersLogits) {
  for (const TinyModel& tiny : all_directories()) {
    if (tiny.logits.empty()) continue;
    SCOPED_TRACE(tiny.name);
    std::filesystem::remove_all(path());
    const auto file = open_model(tiny.write_directory(path()));
    EXPECT_EQ(file->get_string("general.architecture"), tiny.architecture);
    EXPECT_EQ(file->files().size(), 2u);
    const double d = difference(logits_of(*file), tiny.logits);
    EXPECT_LT(d, 2e-4);
    test::record(tiny, {}, "directory", d);
  }
}

// The pooling is that of the files that sentence-transformers writes.
TEST_F(HfDirectory, GivesTransformersEmbeddings) {
  constexpr const char* kModes[] = {R"({"pooling_mode_mean_tokens":true})",
                                    R"({"pooling_mode_mean_tokens":false,"pooling_mode":"cls"})",
                                    R"({"pooling_mode_lasttoken":true})"};
  size_t models = 0;
  for (const TinyModel& tiny : all_directories()) {
    if (!tiny.logits.empty()) continue;
    ++models;
    SCOPED_TRACE(tiny.name);
    std::filesystem::remove_all(path());
    tiny.write_directory(path());
    write("modules.json", R"([{"type":"sentence_transformers.models.Transformer","path":""},
                              {"type":"sentence_transformers.models.Pooling","path":"1_P"}])");
    std::filesystem::create_directories(path() + "/1_P");
    for (uint32_t pooling = 0; pooling < 3; ++pooling) {
      write("1_P/config.json", kModes[pooling]);
      const auto file = open_model(path());
      EXPECT_EQ(file->get_string("general.architecture"), tiny.architecture);
      EXPECT_EQ(file->get_u32(tiny.architecture + ".pooling_type"), pooling + 1);
      const double d = embedding_difference(*file, tiny, pooling);
      EXPECT_LT(d, 2e-4);
      if (pooling == 0) test::record(tiny, {}, "directory", d);
    }
  }
  EXPECT_EQ(models, 5u);
}

/// The tensors of a directory are, bit for bit, those of the file that llama.cpp's converter makes.
TEST_F(HfDirectory, HasTheTensorsOfTheConvertedFile) {
  for (const TinyModel& tiny : all_directories()) {
    SCOPED_TRACE(tiny.name);
    std::filesystem::remove_all(path());
    const auto file = open_model(tiny.write_directory(path()));
    tiny.write(folder_.path("m.gguf"));
    const auto expected = io::Gguf::open(folder_.path("m.gguf"));
    EXPECT_EQ(file->tensors().size(), expected->tensors().size());
    for (const io::GgufTensor& tensor : expected->tensors()) {
      SCOPED_TRACE(tensor.name);
      const io::GgufTensor* found = file->find_tensor(tensor.name);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->shape.elems(), tensor.shape.elems());
      const std::vector<float> values = expected->tensor(tensor).to(DType::f32).to_vector<float>();
      const std::vector<float> got = file->tensor(*found).to(DType::f32).to_vector<float>();
      EXPECT_EQ(found->shape, tensor.shape);
      if (tensor.name.starts_with("rope_f") || tensor.name.ends_with("ssm_a")) {
        EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(1e-5f), values));
      } else {
        EXPECT_EQ(got, values);
      }
      std::vector<float> in_parts;
      for (int64_t i = 0; i < file->parts(*found); ++i) {
        const auto part = file->part(*found, i).to(DType::f32).to_vector<float>();
        in_parts.insert(in_parts.end(), part.begin(), part.end());
      }
      EXPECT_EQ(in_parts, got);
    }
  }
}

TEST_F(HfDirectory, EveryArchitectureHasAModelType) {
  std::set<std::string_view> found;
  for (const TinyModel& tiny : all_directories()) {
    std::filesystem::remove_all(path());
    const auto file = open_model(tiny.write_directory(path(), 1));
    found.insert(find_architecture(*file).name);
  }
  for (const Architecture& a : architectures()) EXPECT_TRUE(found.contains(a.name)) << a.name;
}

TEST_F(HfDirectory, ConvertsAsTheGgufFileDoes) {
  for (const char* name : {"llama", "gemma3", "qwen3moe", "deepseek3", "gpt2", "gemma4",
                           "gemma4-moe", "falcon-h1-multipliers", "lfm2", "mamba2", "qwen3next",
                           "bert", "nomic-bert", "modern-bert", "gemma-embedding"}) {
    SCOPED_TRACE(name);
    const TinyModel tiny = TinyModel::read(name);
    std::filesystem::remove_all(path());
    io::quantize_gguf(*open_model(tiny.write_directory(path())), folder_.path("got.gguf"),
                      DType::q8_0);
    tiny.write(folder_.path("m.gguf"));
    io::quantize_gguf(folder_.path("m.gguf"), folder_.path("expected.gguf"), DType::q8_0);
    const auto got = io::Gguf::open(folder_.path("got.gguf"));
    const auto expected = io::Gguf::open(folder_.path("expected.gguf"));
    for (const io::GgufTensor& tensor : expected->tensors()) {
      const io::GgufTensor& other = got->require_tensor(tensor.name);
      EXPECT_EQ(other.str(), tensor.str()) << tensor.name;
      // Divisors of rope and logarithms differ in their last bits.
      if (tensor.name.starts_with("rope_f") || tensor.name.ends_with("ssm_a")) continue;
      EXPECT_TRUE(std::ranges::equal(got->data(other), expected->data(tensor))) << tensor.name;
    }
    if (tiny.logits.empty()) {
      EXPECT_LT(embedding_difference(*got, tiny, 0), 0.1);
    } else if (expected->find_tensor("rope_freqs.weight") != nullptr ||
               expected->find_tensor("blk.0.ssm_a") != nullptr) {
      const std::vector<float> logits = logits_of(*expected);
      EXPECT_THAT(logits_of(*got), testing::Pointwise(testing::FloatNear(1e-2f), logits));
    } else {
      EXPECT_EQ(logits_of(*got), logits_of(*expected));
    }
  }
}

TEST_F(HfDirectory, SixteenBitWeightsStayMapped) {
  for (const DType type : {DType::f16, DType::bf16}) {
    for (const char* name : {"llama", "gemma2", "mixtral", "granitemoe"}) {
      SCOPED_TRACE(name);
      const TinyModel tiny = TinyModel::read(name);
      std::filesystem::remove_all(path());
      const auto file = open_model(tiny.write_directory(path(), 1, type));
      EXPECT_LT(difference(logits_of(*file), tiny.logits), 0.1);
      const auto is_mapped = [&](const char* tensor) {
        const io::GgufTensor& t = file->require_tensor(tensor);
        EXPECT_EQ(t.dtype, type);
        const bool mapped = file->mapped(t, 0) != nullptr;
        EXPECT_EQ(file->part(t, 0).storage()->file_backed(), mapped);
        return mapped;
      };
      EXPECT_TRUE(is_mapped("token_embd.weight"));
      EXPECT_TRUE(is_mapped("blk.1.attn_v.weight"));
      EXPECT_EQ(is_mapped("blk.1.attn_q.weight"), std::string_view(name) == "gemma2");
      if (std::string_view(name) == "mixtral" || std::string_view(name) == "granitemoe") {
        EXPECT_TRUE(is_mapped("blk.1.ffn_up_exps.weight"));
      }
    }
  }
}

// Older versions of transformers write rope's parameters in another form.
TEST_F(HfDirectory, ReadsOlderConfigurations) {
  const auto moved = [](json& config) {
    json rope = config["rope_parameters"];
    config.erase("rope_parameters");
    config["rope_theta"] = rope["rope_theta"];
    config["type"] = "ignored";
    if (rope["rope_type"] == "default") return;
    rope.erase("rope_theta");
    rope["type"] = rope["rope_type"];
    rope.erase("rope_type");
    config["rope_scaling"] = rope;
  };
  for (const char* name :
       {"llama", "llama-linear", "qwen2-yarn", "qwen3", "deepseek3", "phi3-longrope"}) {
    SCOPED_TRACE(name);
    const TinyModel tiny = TinyModel::read(name);
    std::filesystem::remove_all(path());
    tiny.write_directory(path());
    edit_config(moved);
    EXPECT_LT(difference(logits_of(*open_model(path())), tiny.logits), 2e-4);
  }
  const TinyModel gemma = TinyModel::read("gemma3");
  std::filesystem::remove_all(path());
  gemma.write_directory(path());
  edit_config([](json& config) {
    config.erase("rope_parameters");
    config.erase("layer_types");
    config["rope_theta"] = 1e6;
    config["rope_local_base_freq"] = 1e4;
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
    config["sliding_window_pattern"] = 6;
    config.erase("tie_word_embeddings");  // transformers' default
  });
  EXPECT_LT(difference(logits_of(*open_model(path())), gemma.logits), 2e-4);
}

// Configurations and names of tensors that other versions of transformers write, or the authors.
TEST_F(HfDirectory, ReadsOtherFormsOfNewerFamilies) {
  const auto with = [&](const char* name, const std::function<void(json&)>& edit) {
    const TinyModel tiny = TinyModel::read(name);
    std::filesystem::remove_all(path());
    tiny.write_directory(path(), 1);
    edit_config(edit);
    return tiny;
  };
  TinyModel tiny = with("gemma4-moe", [](json& config) {
    config.erase("per_layer_config");
    config["global_head_dim"] = 32;
    config["num_global_key_value_heads"] = 1;
    config = {{"model_type", "gemma4"}, {"text_config", config}};
  });
  EXPECT_LT(difference(logits_of(*open_model(path())), tiny.logits), 2e-4);
  tiny = with("lfm2", [](json& config) {
    config.erase("layer_types");
    config["full_attn_idxs"] = {1, 3};
    config["block_ff_dim"] = 100;  // 66, then a multiple of 32
    config["block_auto_adjust_ff_dim"] = true;
    config["block_multiple_of"] = 32;
  });
  EXPECT_LT(difference(logits_of(*open_model(path())), tiny.logits), 2e-4);
  tiny = with("modern-bert", [](json& config) {
    for (const char* name : {"rope_parameters", "layer_types", "local_attention"}) {
      config.erase(name);
    }
    config["local_attention"] = 6;
    config["global_rope_theta"] = 160000.0;
    config["local_rope_theta"] = 10000.0;
  });
  rename_tensors(path() + "/model.safetensors", "model.", "head.dense.weight");
  EXPECT_LT(embedding_difference(*open_model(path()), tiny, 0), 2e-4);
  tiny = with("bert", [](json& config) { config.erase("tie_word_embeddings"); });
  rename_tensors(path() + "/model.safetensors", "bert.", "cls.predictions.bias");
  EXPECT_LT(embedding_difference(*open_model(path()), tiny, 0), 2e-4);
  tiny = with("nomic-bert", [](json& config) {
    config = {{"model_type", "nomic_bert"},
              {"n_embd", 64},
              {"n_head", 4},
              {"n_inner", 96},
              {"n_layer", 2},
              {"n_positions", 8192},
              {"layer_norm_epsilon", 1e-12},
              {"vocab_size", 40},
              {"type_vocab_size", 2},
              {"rotary_emb_base", 10000},
              {"rotary_emb_fraction", 1.0},
              {"activation_function", "swiglu"}};
  });
  EXPECT_EQ(open_model(path())->get_u32("nomic-bert.context_length"), 2048u);
  EXPECT_LT(embedding_difference(*open_model(path()), tiny, 0), 2e-4);
}

// Python's json writes a word that isn't JSON.
TEST_F(HfDirectory, ReadsInfinity) {
  const TinyModel tiny = TinyModel::read("mamba2");
  tiny.write_directory(path(), 1);
  std::string text = tiny.config;
  const std::string infinity = R"({"__float__":"Infinity"})";
  ASSERT_NE(text.find(infinity), std::string::npos);
  text.replace(text.find(infinity), infinity.size(), "Infinity");
  text.insert(1, R"("a":"-Infinity \"Infinity","b":-Infinity,)");
  write("config.json", text);
  EXPECT_LT(difference(logits_of(*open_model(path())), tiny.logits), 2e-4);
}

// One matrix of the folder is the table and the output matrix, with another factor for each.
TEST_F(HfDirectory, TiedMatricesKeepTheirFactors) {
  TinyModel tiny = TinyModel::read("falcon-h1-multipliers");
  tiny.without = {"lm_head.weight"};
  tiny.write_directory(path(), 1);
  edit_config([](json& config) { config["tie_word_embeddings"] = true; });
  const auto file = open_model(path());
  const std::vector<float> table = file->tensor("token_embd.weight").to_vector<float>();
  const std::vector<float> output = file->tensor("output.weight").to_vector<float>();
  ASSERT_EQ(table.size(), output.size());
  for (size_t i = 0; i < table.size(); ++i) ASSERT_EQ(output[i], table[i] / 4);  // 2 and 0.5
}

// The language model of a model of images and text.
TEST_F(HfDirectory, ReadsTheLanguageModelOfAWrapper) {
  for (const auto& [name, wrapper] :
       {std::pair("gemma3", "gemma3"), std::pair("mistral", "mistral3")}) {
    SCOPED_TRACE(name);
    const TinyModel tiny = TinyModel::read(name);
    std::filesystem::remove_all(path());
    tiny.write_directory(path(), 1);
    edit_config([&](json& config) {
      config = {
          {"model_type", wrapper}, {"text_config", config}, {"vision_config", json::object()}};
      config["text_config"].erase("model_type");
    });
    rename_tensors(path() + "/model.safetensors", "language_model.",
                   "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight");
    EXPECT_LT(difference(logits_of(*open_model(path())), tiny.logits), 2e-4);
  }
}

TEST_F(HfDirectory, ReadsTextFiles) {
  TinyModel::read("qwen3").write_directory(path(), 1);
  EXPECT_EQ(open_model(path())->get_u32("tokenizer.ggml.eos_token_id"), 2u);
  EXPECT_EQ(open_model(path())->get_u32("tokenizer.ggml.bos_token_id"), 1u);
  EXPECT_FALSE(open_model(path())->contains("tokenizer.chat_template"));
  write("generation_config.json",
        R"({"eos_token_id":[7,9],"temperature":0.6,"top_k":20,"top_p":0.95,"do_sample":true})");
  write("tokenizer_config.json", R"({"chat_template":[{"name":"tool_use","template":"T"},
                                    {"name":"default","template":"D"}]})");
  write("tokenizer.json", R"({"model":{}})");
  auto file = open_model(path());
  EXPECT_EQ(file->get_u32("tokenizer.ggml.eos_token_id"), 7u);
  EXPECT_EQ(file->get_u32s("tokenizer.ggml.eos_token_ids"), (std::vector<uint32_t>{7, 9}));
  EXPECT_EQ(file->get_f32("general.sampling.temp"), 0.6f);
  EXPECT_EQ(file->get_f32("general.sampling.top_p"), 0.95f);
  EXPECT_EQ(file->get_i32("general.sampling.top_k"), 20);
  EXPECT_EQ(file->get_string("tokenizer.chat_template"), "D");
  EXPECT_EQ(file->get_string("tokenizer.huggingface.json"), R"({"model":{}})");
  write("chat_template.jinja", "{{ messages }}");
  EXPECT_EQ(open_model(path())->get_string("tokenizer.chat_template"), "{{ messages }}");
  write("generation_config.json", "[1");
  EXPECT_THAT(error(), HasSubstr("generation_config.json: not JSON"));
}

// ---- Weights of few bits ----

/// The shape of the scales of a matrix.
using ScaleShape = std::function<std::vector<int64_t>(int64_t rows, int64_t columns)>;

class PackedWeights : public HfDirectory {
 protected:
  /// The tensors of a file: the members of its header, and its data.
  static std::pair<json, std::string> read_tensors(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    return {json::parse(bytes.substr(8, length)), bytes.substr(8 + length)};
  }

  /// Writes a Llama whose feed-forward matrices are f8 with scales of blocks of 40 × 24, and one
  /// with the same values in f32 under "plain". `scale_name` follows ".weight".
  void write_f8(const std::string& scale_name, const ScaleShape& scales_of,
                const json& quantization) {
    const TinyModel tiny = TinyModel::read("llama-linear");
    tiny.write_directory(path(), 1);
    tiny.write_directory(folder_.path("plain"), 1);
    const auto [header, all] = read_tensors(path() + "/model.safetensors");
    SafetensorsBuilder packed, plain;
    for (const auto& [name, entry] : header.items()) {
      const auto shape = entry.at("shape").get<std::vector<int64_t>>();
      const size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
      const std::string data = all.substr(begin, end - begin);
      if (name.find(".mlp.") == std::string::npos) {
        packed.tensor(name, "F32", shape, data);
        plain.tensor(name, "F32", shape, data);
        continue;
      }
      std::vector<float> values(data.size() / 4);
      std::memcpy(values.data(), data.data(), data.size());
      const int64_t rows = shape[0], columns = shape[1];
      const Tensor f8 = (Tensor::from(values, {rows, columns}) * 16.0).to(DType::f8e4m3);
      const std::vector<int64_t> scale_shape = scales_of(rows, columns);
      std::vector<float> scale;
      int64_t count = 1;
      for (const int64_t size : scale_shape) count *= size;
      for (int64_t n = 0; n < count; ++n)
        scale.push_back(0.05f + 0.01f * static_cast<float>(n % 5));
      values = f8.to(DType::f32).to_vector<float>();
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          const bool in_rows = count == rows;
          const int64_t at = count == 1 ? 0 : in_rows ? r : r / 40 * ((columns + 23) / 24) + c / 24;
          values[static_cast<size_t>(r * columns + c)] *= scale[static_cast<size_t>(at % count)];
        }
      }
      values =
          Tensor::from(values, {rows, columns}).to(DType::bf16).to(DType::f32).to_vector<float>();
      packed.tensor(name, "F8_E4M3", shape,
                    {static_cast<const char*>(f8.storage()->data()), f8.storage()->bytes()});
      packed.tensor(name + scale_name, "F32", scale_shape,
                    {reinterpret_cast<const char*>(scale.data()), scale.size() * 4});
      plain.tensor(name, "F32", shape,
                   {reinterpret_cast<const char*>(values.data()), values.size() * 4});
    }
    write("model.safetensors", packed.build());
    std::ofstream(folder_.path("plain/model.safetensors"), std::ios::binary) << plain.build();
    edit_config([&](json& config) { config["quantization_config"] = quantization; });
  }
  void expect_equal() const {
    const auto got = open_model(path()), expected = open_model(folder_.path("plain"));
    for (const io::GgufTensor& tensor : expected->tensors()) {
      const io::GgufTensor& found = got->require_tensor(tensor.name);
      EXPECT_EQ(got->tensor(found).to(DType::f32).to_vector<float>(),
                expected->tensor(tensor).to_vector<float>())
          << tensor.name;
      if (tensor.name.find("ffn_up") != std::string_view::npos) {
        EXPECT_EQ(found.dtype, DType::bf16);
        EXPECT_EQ(got->mapped(found, 0), nullptr);
      }
    }
    EXPECT_EQ(error(), "no error");
  }

  static std::vector<int64_t> one(int64_t, int64_t) { return {}; }
  static std::vector<int64_t> of_rows(int64_t rows, int64_t) { return {rows, 1}; }
  static std::vector<int64_t> of_blocks(int64_t rows, int64_t columns) {
    return {(rows + 39) / 40, (columns + 23) / 24};
  }
};

TEST_F(PackedWeights, F8WithScales) {
  const json fp8 = {{"quant_method", "fp8"}};
  const json blocks = {{"quant_method", "fp8"}, {"weight_block_size", {40, 24}}};
  const json compressed = {{"quant_method", "compressed-tensors"}, {"format", "float-quantized"}};
  write_f8("_scale", one, fp8);
  expect_equal();
  write_f8("_scale_inv", of_blocks, blocks);
  expect_equal();
  write_f8("_scale", of_rows, compressed);
  expect_equal();
}

TEST_F(PackedWeights, RefusesScalesThatDontFit) {
  const auto three = [](int64_t, int64_t) { return std::vector<int64_t>{3, 3}; };
  write_f8("_scale_inv", three, {{"quant_method", "fp8"}, {"weight_block_size", {40, 24}}});
  EXPECT_THAT(error(),
              HasSubstr(path() + "/model.safetensors: scales don't fit the weight: "
                                 "model.layers.0.mlp.down_proj.weight_scale_inv F32[3,3]"));
  write_f8("_scale_inv", one, {{"quant_method", "fp8"}, {"weight_block_size", {40, 0}}});
  EXPECT_THAT(error(), HasSubstr("config.json: value out of range: "
                                 "quantization_config.weight_block_size"));
  for (const char* method : {"bitsandbytes", "hqq"}) {
    write_f8("_scale_inv", one, {{"quant_method", method}});
    EXPECT_THAT(error(), HasSubstr("quantization_config.quant_method = \"" + std::string(method)));
  }
}

// Every value of F8_E5M2 is one of f16; with scales, weights are bf16 as those of F8_E4M3.
TEST_F(PackedWeights, F8E5M2) {
  const TinyModel tiny = TinyModel::read("llama-linear");
  for (const bool scaled : {false, true}) {
    tiny.write_directory(path(), 1);
    const auto [header, all] = read_tensors(path() + "/model.safetensors");
    SafetensorsBuilder b;
    std::map<std::string, std::vector<float>> expected;
    for (const auto& [name, entry] : header.items()) {
      const auto shape = entry.at("shape").get<std::vector<int64_t>>();
      const size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
      if (name.find("up_proj") == std::string::npos) {
        b.tensor(name, "F32", shape, all.substr(begin, end - begin));
        continue;
      }
      std::string bytes;
      std::vector<float>& values = expected[name];
      for (size_t i = 0; i < (end - begin) / 4; ++i) {
        const auto byte = static_cast<uint8_t>(i * 7);
        const bool finite = (byte & 0x7c) != 0x7c;
        bytes += static_cast<char>(finite ? byte : 0x3c);  // 1
        const int exponent = byte >> 2 & 31, mantissa = byte & 3;
        const float size = exponent == 0
                               ? std::ldexp(static_cast<float>(mantissa), -16)
                               : std::ldexp(static_cast<float>(4 + mantissa), exponent - 17);
        const float value = finite ? (byte & 0x80 ? -size : size) : 1.0f;
        values.push_back(scaled ? value * 0.5f : value);
      }
      b.tensor(name, "F8_E5M2", shape, bytes);
      const float half = 0.5f;
      if (scaled) b.tensor(name + "_scale", "F32", {}, {reinterpret_cast<const char*>(&half), 4});
    }
    write("model.safetensors", b.build());
    const auto file = open_model(path());
    for (const char* layer : {"0", "1"}) {
      const Tensor got = file->tensor("blk." + std::string(layer) + ".ffn_up.weight");
      EXPECT_EQ(got.dtype(), scaled ? DType::bf16 : DType::f16);
      EXPECT_EQ(got.to(DType::f32).to_vector<float>(),
                expected.at("model.layers." + std::string(layer) + ".mlp.up_proj.weight"));
    }
  }
}

/// Four-bit weights: those of the MLPs and of the queries.
class Int4Weights : public PackedWeights {
 protected:
  struct Layout {
    bool awq = false, symmetric = true, order = false;
    int group = 32;
    int add_one = 1;  // stored zeros are less by this
  };

  /// Writes a Llama with such weights, and one with the values they stand for under "plain".
  void write_int4(const Layout& layout, const json& quantization) {
    const TinyModel tiny = TinyModel::read("llama-linear");
    tiny.write_directory(path(), 1);
    tiny.write_directory(folder_.path("plain"), 1);
    const auto [header, all] = read_tensors(path() + "/model.safetensors");
    SafetensorsBuilder packed, plain;
    for (const auto& [name, entry] : header.items()) {
      const auto shape = entry.at("shape").get<std::vector<int64_t>>();
      const size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
      const std::string data = all.substr(begin, end - begin);
      if (name.find(".mlp.") == std::string::npos && name.find("q_proj") == std::string::npos) {
        packed.tensor(name, "F32", shape, data);
        plain.tensor(name, "F32", shape, data);
        continue;
      }
      add_int4(packed, plain, name, shape[0], shape[1], layout);
    }
    write("model.safetensors", packed.build());
    std::ofstream(folder_.path("plain/model.safetensors"), std::ios::binary) << plain.build();
    edit_config([&](json& config) { config["quantization_config"] = quantization; });
  }

  static void add_int4(SafetensorsBuilder& packed, SafetensorsBuilder& plain,
                       const std::string& name, int64_t n, int64_t k, const Layout& layout) {
    const int64_t each = layout.group < 0 ? k : layout.group, groups = k / each;
    const auto code = [](int64_t j, int64_t i) {
      return static_cast<uint32_t>(j * 5 + i * 3) % 16;
    };
    const auto zero = [&](int64_t g, int64_t j) {
      return layout.symmetric ? 8u : static_cast<uint32_t>(1 + (g * 3 + j) % 15);
    };
    const auto group = [&](int64_t i) { return layout.order ? (i * 7 + 3) % groups : i / each; };
    const auto place = [&](int64_t i) {  // of a code in its word, along a row of AWQ
      constexpr int64_t kPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};
      return layout.awq ? kPlaces[i % 8] : i % 8;
    };
    std::vector<uint32_t> codes(static_cast<size_t>(n * k / 8)),
        zeros(static_cast<size_t>(groups * n / 8));
    std::vector<float> factors, values;
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t j = 0; j < n; ++j) {
        const uint32_t stored = zero(g, j) - static_cast<uint32_t>(layout.add_one);
        zeros[static_cast<size_t>(g * n / 8 + j / 8)] |= stored << (4 * place(j));
        factors.push_back(0.01f + 0.001f * static_cast<float>((g * 11 + j) % 29));
      }
    }
    factors = Tensor::from(factors, {groups, n}).to(DType::f16).to(DType::f32).to_vector<float>();
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) {
        if (layout.awq) {
          codes[static_cast<size_t>(i * n / 8 + j / 8)] |= code(j, i) << (4 * place(j));
        } else {
          codes[static_cast<size_t>(i / 8 * n + j)] |= code(j, i) << (4 * (i % 8));
        }
        const auto q = static_cast<float>(code(j, i)), z = static_cast<float>(zero(group(i), j));
        values.push_back(factors[static_cast<size_t>(group(i) * n + j)] * (q - z));
      }
    }
    const std::string module = name.substr(0, name.rfind('.'));
    const auto raw = [](const auto& v) {
      return std::string_view(reinterpret_cast<const char*>(v.data()), v.size() * 4);
    };
    const std::vector<int64_t> shape = layout.awq ? std::vector{k, n / 8} : std::vector{k / 8, n};
    packed.tensor(module + ".qweight", "I32", shape, raw(codes));
    packed.tensor(module + ".qzeros", "I32", {groups, n / 8}, raw(zeros));
    const Tensor scales = Tensor::from(factors, {groups, n}).to(DType::f16);
    packed.tensor(module + ".scales", "F16", {groups, n},
                  {static_cast<const char*>(scales.storage()->data()), scales.storage()->bytes()});
    if (layout.order) {
      std::vector<int32_t> order;
      for (int64_t i = 0; i < k; ++i) order.push_back(static_cast<int32_t>(group(i)));
      packed.tensor(module + ".g_idx", "I32", {k}, raw(order));
    }
    plain.tensor(name, "F32", {n, k}, raw(values));
  }

  /// Compares all tensors; four-bit weights have a dtype, and f16 rounds them.
  void expect_values(DType dtype) const {
    const auto got = open_model(path()), expected = open_model(folder_.path("plain"));
    for (const io::GgufTensor& tensor : expected->tensors()) {
      SCOPED_TRACE(tensor.name);
      const Tensor values = got->tensor(got->require_tensor(tensor.name));
      const bool packed = tensor.name.find("ffn_up") != std::string_view::npos ||
                          tensor.name.find("attn_q.") != std::string_view::npos;
      if (packed) EXPECT_EQ(values.dtype(), dtype);
      const bool blocks = is_block(values.dtype());
      Tensor wanted = expected->tensor(tensor);
      if (values.dtype() == DType::f16) wanted = wanted.to(DType::f16).to(DType::f32);
      EXPECT_EQ((blocks ? dequantize(values) : values.to(DType::f32)).to_vector<float>(),
                wanted.to_vector<float>());
    }
    EXPECT_EQ(error(), "no error");
    EXPECT_EQ(got->format().find("rounded to f16") != std::string::npos, dtype == DType::f16);
  }
};

TEST_F(Int4Weights, SymmetricGptqIsExact) {
  const json gptq = {{"quant_method", "gptq"},
                     {"bits", 4},
                     {"group_size", 32},
                     {"sym", true},
                     {"desc_act", false}};
  write_int4({}, gptq);
  expect_values(DType::q4_0);
  json whole = gptq;
  whole["group_size"] = -1;
  write_int4({.group = -1}, whole);
  expect_values(DType::q4_0);
  json second = gptq;
  second["checkpoint_format"] = "gptq_v2";
  write_int4({.add_one = 0}, second);
  expect_values(DType::q4_0);
}

TEST_F(Int4Weights, OthersBecomeF16) {
  json gptq = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"sym", false}};
  write_int4({.symmetric = false}, gptq);
  expect_values(DType::f16);
  gptq["desc_act"] = true;
  write_int4({.symmetric = false, .order = true}, gptq);
  expect_values(DType::f16);
  const json awq = {{"quant_method", "awq"},
                    {"bits", 4},
                    {"group_size", 32},
                    {"version", "gemm"},
                    {"zero_point", true}};
  write_int4({.awq = true, .symmetric = false, .add_one = 0}, awq);
  expect_values(DType::f16);
}

TEST_F(Int4Weights, RefusesOthers) {
  json gptq = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"sym", true}};
  const auto with = [&](const char* name, const json& value, const Layout& layout = {}) {
    json changed = gptq;
    changed[name] = value;
    write_int4(layout, changed);
    return error();
  };
  EXPECT_THAT(with("bits", 8), HasSubstr("quantization_config.bits = 8"));
  EXPECT_THAT(with("group_size", 0), HasSubstr("group_size = 0"));
  EXPECT_THAT(with("group_size", 64), HasSubstr("need I32[groups, n/8]"));
  EXPECT_THAT(with("group_size", 48), HasSubstr("need whole words and whole groups"));
  EXPECT_THAT(with("group_size", 16), HasSubstr("need I32[groups, n/8]"));
  EXPECT_THAT(with("checkpoint_format", "marlin"), HasSubstr("checkpoint_format"));
  EXPECT_THAT(with("sym", true, {.symmetric = false}), HasSubstr("zeros contradict"));
  EXPECT_THAT(with("sym", true, {.order = true}), HasSubstr("groups contradict"));
  gptq["quant_method"] = "awq";
  EXPECT_THAT(with("version", "gemv", {.awq = true}), HasSubstr("version = \"gemv\""));
  EXPECT_THAT(with("bits", 4), HasSubstr("wrong"));  // GPTQ's layout
}

// The weights of gpt-oss: gate and up are every second row, in blocks of MXFP4, or every second
// column of floats.
TEST_F(PackedWeights, GptOss) {
  std::filesystem::create_directories(path());
  write("config.json", R"({"model_type":"gpt_oss","num_hidden_layers":1,"hidden_size":64,
      "num_attention_heads":2,"num_key_value_heads":1,"head_dim":32,"intermediate_size":32,
      "num_local_experts":2,"num_experts_per_tok":1,"max_position_embeddings":64,
      "rms_norm_eps":1e-5,"sliding_window":8,"layer_types":["sliding_attention"],
      "quantization_config":{"quant_method":"mxfp4"}})");
  const std::string experts = "model.layers.0.mlp.experts.";
  std::string blocks, scales;
  for (int i = 0; i < 2 * 64 * 2 * 16; ++i) blocks += static_cast<char>(i * 37 + i / 256);
  for (int i = 0; i < 2 * 64 * 2; ++i) scales += static_cast<char>(120 + i % 11);
  std::vector<float> biases(2 * 64), down(size_t{2} * 32 * 64);
  for (size_t i = 0; i < biases.size(); ++i) biases[i] = static_cast<float>(i);
  for (size_t i = 0; i < down.size(); ++i) down[i] = static_cast<float>(i);
  const auto raw = [](const std::vector<float>& v) {
    return std::string_view(reinterpret_cast<const char*>(v.data()), v.size() * 4);
  };
  SafetensorsBuilder b;
  b.tensor(experts + "gate_up_proj_blocks", "U8", {2, 64, 2, 16}, blocks);
  b.tensor(experts + "gate_up_proj_scales", "U8", {2, 64, 2}, scales);
  b.tensor(experts + "gate_up_proj_bias", "F32", {2, 64}, raw(biases));
  b.tensor(experts + "down_proj", "F32", {2, 32, 64}, raw(down));
  b.tensor("model.layers.0.self_attn.sinks", "F32", {2}, raw({1, 2}));
  write("model.safetensors", b.build());
  const auto file = open_model(path());
  EXPECT_EQ(file->get_string("general.architecture"), "gpt-oss");
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (const auto& [name, first] : {std::pair("gate", 0), std::pair("up", 1)}) {
    const std::string tensor = std::string("blk.0.ffn_") + name + "_exps";
    const Tensor packed = file->tensor(tensor + ".weight");
    EXPECT_EQ(packed.dtype(), DType::mxfp4);
    EXPECT_EQ(packed.shape(), (Shape{2, 32, 64}));
    const std::vector<float> values = dequantize(packed).to_vector<float>();
    const std::vector<float> bias = file->tensor(tensor + ".bias").to_vector<float>();
    for (size_t e = 0; e < 2; ++e) {
      for (size_t row = 0; row < 32; ++row) {
        const size_t from = e * 64 + 2 * row + static_cast<size_t>(first);
        EXPECT_EQ(bias[e * 32 + row], static_cast<float>(from));
        for (size_t k = 0; k < 64; ++k) {
          const auto byte = static_cast<uint8_t>(blocks[(from * 2 + k / 32) * 16 + k % 32 / 2]);
          const unsigned code = k % 2 == 0 ? byte & 15u : byte >> 4;
          const int exponent = static_cast<uint8_t>(scales[from * 2 + k / 32]) - 127;
          const float magnitude = std::ldexp(kValues[code & 7], exponent);
          ASSERT_EQ(values[(e * 32 + row) * 64 + k], code < 8 ? magnitude : -magnitude);
        }
      }
    }
  }
  const Tensor turned = file->tensor("blk.0.ffn_down_exps.weight");
  EXPECT_EQ(turned.shape(), (Shape{2, 64, 32}));
  EXPECT_EQ(turned.to_vector<float>()[32], 1.0f);
  EXPECT_EQ(file->tensor("blk.0.attn_sinks.weight").to_vector<float>(), (std::vector<float>{1, 2}));
  SafetensorsBuilder floats;
  floats.tensor(experts + "gate_up_proj", "F32", {2, 32, 64}, raw(down));
  write("model.safetensors", floats.build());
  EXPECT_EQ(open_model(path())->tensor("blk.0.ffn_up_exps.weight").to_vector<float>()[1], 65.0f);
  SafetensorsBuilder without;
  without.tensor(experts + "gate_up_proj_blocks", "U8", {2, 64, 2, 16}, blocks);
  write("model.safetensors", without.build());
  EXPECT_THAT(error_of([&] { open_model(path()); }), HasSubstr("need scales u8 [e, n, k/32]"));
}

}  // namespace
}  // namespace wick::models
