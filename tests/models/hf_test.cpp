// Models in Hugging Face directories: the same tiny models as in GGUF files, in the files that
// transformers writes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
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

/// The text of a file of a dense layer [rows, k] with weights and a bias from a formula.
std::string dense_layer(int64_t rows, int64_t k, std::vector<float>& weight,
                        std::vector<float>& bias) {
  for (int64_t i = 0; i < rows * k; ++i) {
    weight.push_back(static_cast<float>(i * 37 % 101 - 50) / 64.0f);
  }
  for (int64_t i = 0; i < rows; ++i) bias.push_back(static_cast<float>(i % 7 - 3) / 4.0f);
  const auto bytes = [](const std::vector<float>& x) {
    return std::string_view(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float));
  };
  return io::test::SafetensorsBuilder()
      .tensor("linear.weight", "F32", {rows, k}, bytes(weight))
      .tensor("linear.bias", "F32", {rows}, bytes(bias))
      .build();
}

// EmbeddingGemma has two dense layers after the pooling. The expected embeddings are transformers'
// pooled rows, multiplied here.
TEST_F(HfDirectory, MultipliesDenseLayersAfterThePooling) {
  const TinyModel tiny = TinyModel::read("gemma-embedding");
  tiny.write_directory(path(), 1);
  write("modules.json", R"([{"type":"sentence_transformers.models.Pooling","path":"1_P"},
                            {"type":"sentence_transformers.models.Dense","path":"2_Dense"},
                            {"type":"sentence_transformers.models.Dense","path":"3_Dense"},
                            {"type":"sentence_transformers.models.Normalize","path":"4_N"}])");
  for (const char* folder : {"/1_P", "/2_Dense", "/3_Dense"}) {
    std::filesystem::create_directories(path() + folder);
  }
  write("1_P/config.json", R"({"pooling_mode_mean_tokens":true})");
  const auto hidden = static_cast<int64_t>(tiny.embeddings.size()) / 3;
  const int64_t sizes[] = {hidden, 40, 24};
  std::vector<double> expected(tiny.embeddings.begin(), tiny.embeddings.begin() + hidden);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t k = sizes[i], rows = sizes[i + 1];
    const std::string folder = i == 0 ? "2_Dense" : "3_Dense";
    write(folder + "/config.json",
          fmt::format(R"({{"in_features":{},"out_features":{},"activation_function":
                          "torch.nn.modules.linear.Identity"}})",
                      k, rows));
    std::vector<float> weight, bias;
    write(folder + "/model.safetensors", dense_layer(rows, k, weight, bias));
    std::vector<double> next(bias.begin(), bias.end());
    for (size_t at = 0; at < weight.size(); ++at) {
      const size_t row = at / static_cast<size_t>(k), column = at % static_cast<size_t>(k);
      next[row] += static_cast<double>(weight[at]) * expected[column];
    }
    expected = next;
  }
  const auto check = [&](const io::ModelFile& file) {
    EXPECT_EQ(file.get_u32(tiny.architecture + ".dense_2_feat_in"), sizes[0]);
    EXPECT_EQ(file.get_u32(tiny.architecture + ".dense_3_feat_out"), sizes[2]);
    const auto model = CausalLm::load(file, {});
    EXPECT_EQ(model->embedding_size(), sizes[2]);
    const std::vector<std::vector<int32_t>> sequences = {some_tokens(kTokens)};
    const std::vector<float> got = model->embed(sequences).to_vector<float>();
    ASSERT_EQ(got.size(), expected.size());
    double worst = 0, most = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - expected[i]));
      most = std::max(most, std::fabs(expected[i]));
    }
    EXPECT_LT(worst / most, 2e-4);
  };
  const auto directory = open_model(path());
  EXPECT_EQ(directory->files().size(), 3u);
  check(*directory);
  // The file that `wick quantize` makes of the directory keeps the layers.
  io::quantize_gguf(*directory, folder_.path("dense.gguf"), DType::f32);
  check(*open_model(folder_.path("dense.gguf")));
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
  // The base grows with alpha, which is 1000 if the file has none.
  for (const char* alpha : {R"({})", R"({"alpha": 1000.0})", R"({"factor": 2.0})"}) {
    with("hunyuan-dense", [&](json& config) {
      config["rope_parameters"] = json::parse(alpha);
      config["rope_parameters"].update({{"rope_type", "dynamic"}, {"rope_theta", 10000.0}});
    });
    const auto file = open_model(path());
    EXPECT_NEAR(file->get_f32("hunyuan-dense.rope.freq_base"), 1e4 * std::pow(1e3, 16.0 / 14), 5);
    EXPECT_EQ(file->get_u32("hunyuan-dense.context_length"), 262144u);
    EXPECT_FALSE(file->contains("hunyuan-dense.rope.scaling.type"));
    EXPECT_FALSE(file->contains("hunyuan-dense.rope.scaling.factor"));
  }
  with("hunyuan-dense", [](json& config) {
    config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  });
  EXPECT_EQ(open_model(path())->get_string("hunyuan-dense.rope.scaling.type"), "linear");
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

}  // namespace
}  // namespace wick::models
