// Hugging Face directories that are incomplete or invalid, and variants that aren't supported.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/models/hf_directory.h"
#include "tests/models/tiny_model.h"

namespace wick::models {
namespace {

using test::error_of;
using test::TinyModel;
using testing::HasSubstr;
using HfErrors = HfDirectory;

TEST_F(HfErrors, NamesMissingFiles) {
  std::filesystem::create_directories(path());
  EXPECT_THAT(error(), HasSubstr("cannot open: " + path() + "/config.json"));
  const TinyModel tiny = TinyModel::read("llama");
  tiny.write_directory(path(), 3);
  std::filesystem::remove(path() + "/model-00002-of-00003.safetensors");
  EXPECT_EQ(error(), path() +
                         "/model.safetensors.index.json: files of the index are missing: "
                         "model-00002-of-00003.safetensors");
  std::filesystem::remove(path() + "/model.safetensors.index.json");
  EXPECT_EQ(error(), path() +
                         ": folder has no weights: need model.safetensors or "
                         "model.safetensors.index.json");
  write("pytorch_model.bin", "x");
  EXPECT_THAT(error(), HasSubstr("pytorch_model.bin isn't read"));
}

TEST_F(HfErrors, RefusesMixedShards) {
  TinyModel tiny = TinyModel::read("llama");
  tiny.write_directory(path(), 2);
  tiny.write_directory(folder_.path("other"), 3);
  const std::string second = "/model-00002-of-00002.safetensors";
  std::filesystem::copy_file(folder_.path("other/model-00002-of-00003.safetensors"),
                             path() + second, std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(error(), HasSubstr(path() + second + ": file lacks a tensor of the index: "));
  TinyModel::read("qwen2").write_directory(folder_.path("third"), 2);
  tiny.write_directory(path(), 2);
  std::filesystem::copy_file(folder_.path("third" + second), path() + second,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(error(), HasSubstr("file lacks a tensor of the index: "));
}

TEST_F(HfErrors, RefusesInvalidIndices) {
  TinyModel::read("llama").write_directory(path(), 2);
  const auto with = [&](const std::string& text) {
    write("model.safetensors.index.json", text);
    return error();
  };
  const std::string index = path() + "/model.safetensors.index.json";
  EXPECT_EQ(with("{}"), index + ": index lacks the object 'weight_map'");
  EXPECT_EQ(with("[]"), index + ": index lacks the object 'weight_map'");
  EXPECT_EQ(with(R"({"weight_map":[]})"), index + ": index lacks the object 'weight_map'");
  EXPECT_EQ(with(R"({"weight_map":{"a":1}})"), index + ": name of a file isn't a string: a");
  for (const char* name : {"../m", "/etc/passwd", "..", ".", "", "a/b", "m\\u0000"}) {
    EXPECT_THAT(with(R"({"weight_map":{"a":")" + std::string(name) + "\"}}"),
                HasSubstr("not the name of a file in the folder"))
        << name;
  }
  EXPECT_THAT(with(R"({"weight_map":{"a":"config.json"}})"), HasSubstr("config.json"));
  EXPECT_THAT(with("{\"weight_map\":"), HasSubstr(index + ": not JSON: at byte"));
  EXPECT_THAT(with(std::string(100000, '[')), HasSubstr(index + ": nested too deeply"));
  EXPECT_THAT(with(R"({"weight_map":{}})"), HasSubstr("tensor is missing: token_embd.weight"));
}

TEST_F(HfErrors, RefusesInvalidConfigurations) {
  const TinyModel tiny = TinyModel::read("llama");
  const auto with = [&](const std::function<void(json&)>& edit) {
    std::filesystem::remove_all(path());
    tiny.write_directory(path(), 1);
    edit_config(edit);
    return error();
  };
  const auto set = [&](const char* name, const json& value) {
    return with([&](json& config) { config[name] = value; });
  };
  const std::string file = path() + "/config.json";
  EXPECT_EQ(set("initializer_range", nullptr), "no error");
  EXPECT_THAT(
      set("model_type", "mamba3"),
      HasSubstr(file + ": unsupported model_type: 'mamba3': this version supports llama, "));
  EXPECT_EQ(set("model_type", nullptr), file + ": value is missing: model_type");
  EXPECT_EQ(set("model_type", 1), file + ": value out of range: model_type = 1: need a string");
  EXPECT_EQ(set("hidden_act", "gelu"),
            file + ": value isn't supported: hidden_act = \"gelu\": need silu swish");
  EXPECT_EQ(set("hidden_size", nullptr), file + ": value is missing: hidden_size");
  for (const json& value : {json(-64), json(64.5), json("64"), json(1e300), json(4294967296),
                            json::array({64}), json(true)}) {
    EXPECT_THAT(set("hidden_size", value),
                HasSubstr(file + ": value out of range: hidden_size = "));
    EXPECT_THAT(set("num_attention_heads", value), HasSubstr("num_attention_heads"));
  }
  EXPECT_THAT(set("rms_norm_eps", "x"), HasSubstr("rms_norm_eps = \"x\": need a number"));
  EXPECT_THAT(set("rms_norm_eps", 1e300), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(set("tie_word_embeddings", 1), HasSubstr("need true or false"));
  EXPECT_THAT(set("rope_parameters", 3), HasSubstr(file + ": not a JSON object: rope_parameters."));
  EXPECT_THAT(set("rope_parameters", {{"rope_type", "spiral"}}),
              HasSubstr("rope_parameters.rope_type = \"spiral\": this version supports default, "
                        "linear, yarn, llama3, longrope, proportional and dynamic"));
  EXPECT_THAT(set("rope_parameters", {{"rope_type", "linear"}}),
              HasSubstr("value is missing: rope_parameters.factor"));
  EXPECT_THAT(set("text_config", "x"), HasSubstr("not a JSON object: text_config."));
  // Sizes that contradict each other or the tensors.
  EXPECT_THAT(set("num_attention_heads", 3), HasSubstr("attn_q"));
  EXPECT_THAT(set("num_key_value_heads", 3), HasSubstr("attn_k"));
  EXPECT_THAT(set("num_key_value_heads", 0), HasSubstr("attn_k"));
  EXPECT_THAT(set("num_hidden_layers", 1),
              HasSubstr("tensor of a layer that the model doesn't have: model.layers.1."));
  EXPECT_THAT(set("num_hidden_layers", 3), HasSubstr("tensor is missing: blk.2."));
  EXPECT_THAT(
      set("num_hidden_layers", 2147483647),
      HasSubstr(file + ": value out of range: num_hidden_layers = 2147483647: need 1 to 4096"));
  EXPECT_THAT(set("intermediate_size", 97), HasSubstr("tensor has the wrong shape"));
  EXPECT_THAT(set("hidden_size", 128), HasSubstr("wrong shape"));
  EXPECT_THAT(set("head_dim", 1000000),
              HasSubstr(file + ": value out of range: head_dim = 1000000: need at most 65536"));
  write("config.json", "{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}");
  EXPECT_EQ(error(), file + ": nested too deeply: at most 64");
  write("config.json", std::string(5 << 20, ' '));
  EXPECT_THAT(error(), HasSubstr("file is too large: " + file));
  write("config.json", "{\"hidden_size\":1e999}");
  EXPECT_THAT(error(), HasSubstr(file + ": not JSON"));
}

TEST_F(HfErrors, RefusesConfigurationsThatContradictTheTensors) {
  const auto with = [&](const TinyModel& tiny, const char* name, const json& value) {
    std::filesystem::remove_all(path());
    tiny.write_directory(path(), 1);
    edit_config([&](json& config) { config[name] = value; });
    return error();
  };
  const std::string wrong = path() + "/config.json: value out of range: ";
  TinyModel llama = TinyModel::read("llama");
  for (const int64_t size : {39, 41, 128256}) {
    EXPECT_EQ(with(llama, "vocab_size", size),
              wrong + fmt::format("vocab_size = {}: need 40, the rows of model.embed_tokens.weight",
                                  size));
  }
  EXPECT_EQ(with(llama, "vocab_size", 40), "no error");
  EXPECT_EQ(with(llama, "vocab_size", nullptr), "no error");
  EXPECT_THAT(with(TinyModel::read("nomic-bert"), "vocab_size", 33), HasSubstr("need 40"));
  EXPECT_EQ(with(llama, "attention_bias", true),
            wrong + "attention_bias = true: need false, because there are no such tensors");
  EXPECT_EQ(with(llama, "mlp_bias", true),
            wrong + "mlp_bias = true: need false, because there are no such tensors");
  llama.without = {"lm_head.weight"};
  EXPECT_EQ(with(llama, "tie_word_embeddings", false),
            wrong +
                "tie_word_embeddings = false: need true, because there is no tensor "
                "lm_head.weight");
  EXPECT_EQ(with(llama, "tie_word_embeddings", true), "no error");
  // The weights of makers of embeddings may have no output matrix.
  const TinyModel embedding = TinyModel::read("qwen3-embedding");
  EXPECT_THAT(with(embedding, "tie_word_embeddings", false), HasSubstr("lm_head.weight"));
  std::filesystem::create_directories(path() + "/1_P");
  write("modules.json", R"([{"type":"Pooling","path":"1_P"}])");
  write("1_P/config.json", R"({"pooling_mode":"lasttoken"})");
  EXPECT_EQ(error(), "no error");
  EXPECT_EQ(with(TinyModel::read("bert"), "tie_word_embeddings", false), "no error");
}

TEST_F(HfErrors, RefusesIncompleteRopeScalings) {
  TinyModel::read("llama").write_directory(path(), 1);
  const auto with = [&](const json& rope) {
    edit_config([&](json& config) {
      config["rope_parameters"] = rope;
      config.erase("original_max_position_embeddings");
    });
    return error();
  };
  const std::string missing = path() + "/config.json: value is missing: rope_parameters.";
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 32}};
  EXPECT_EQ(with(llama3), "no error");
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    json rope = llama3;
    rope.erase(key);
    EXPECT_EQ(with(rope), missing + key);
    rope[key] = nullptr;
    EXPECT_EQ(with(rope), missing + key);
  }
  for (const char* type : {"linear", "yarn", "dynamic"}) {
    EXPECT_EQ(with({{"rope_type", type}}), missing + "factor");
    EXPECT_THAT(with({{"rope_type", type}, {"factor", 0}}),
                HasSubstr("rope_parameters.factor = 0"));
  }
  EXPECT_EQ(with({{"factor", 4.0}}), missing + "rope_type");
  EXPECT_EQ(with({{"type", "linear"}, {"factor", 4.0}}), "no error");
  const json factors = std::vector<double>(8, 1.0);
  TinyModel::read("phi3-longrope").write_directory(path(), 1);
  EXPECT_EQ(with({{"rope_type", "longrope"},
                  {"long_factor", factors},
                  {"original_max_position_embeddings", 16}}),
            missing + "short_factor");
  EXPECT_EQ(with({{"rope_type", "longrope"},
                  {"short_factor", factors},
                  {"original_max_position_embeddings", 16}}),
            missing + "long_factor");
  EXPECT_THAT(
      with({{"rope_type", "longrope"}, {"long_factor", factors}, {"short_factor", factors}}),
      HasSubstr("original_max_position_embeddings"));
}

TEST_F(HfErrors, RefusesVariants) {
  const auto with = [&](const char* model, const char* name, const json& value) {
    std::filesystem::remove_all(path());
    TinyModel::read(model).write_directory(path(), 1);
    edit_config([&](json& config) { config[name] = value; });
    return error();
  };
  EXPECT_THAT(with("smollm3", "no_rope_layers", {1, 0, 1, 1}), HasSubstr("no_rope_layers"));
  EXPECT_THAT(with("llama4", "use_qk_norm", false), HasSubstr("use_qk_norm = false"));
  EXPECT_THAT(with("qwen3moe", "mlp_only_layers", {1}), HasSubstr("mlp_only_layers"));
  EXPECT_THAT(with("hunyuan-moe", "moe_topk", {2, 1}), HasSubstr("moe_topk"));
  EXPECT_THAT(with("deepseek3", "scoring_func", "tanh"), HasSubstr("scoring_func"));
  EXPECT_THAT(with("gemma3", "layer_types", {"full_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(with("phi3", "rope_parameters", {{"partial_rotary_factor", 2.0}}),
              HasSubstr("rope_parameters.partial_rotary_factor = 2.0"));
  EXPECT_THAT(with("olmoe", "clip_qkv", 8.0), HasSubstr("clip_qkv = 8.0"));
  EXPECT_THAT(with("llama4", "floor_scale", 4096), HasSubstr("floor_scale = 4096: need 8192"));
  EXPECT_THAT(with("llama4", "attn_scale", 0.2), HasSubstr("attn_scale = 0.2: need 0.1"));
  EXPECT_THAT(with("llama4", "attention_chunk_size", 100), HasSubstr("chunk_size = 100"));
  EXPECT_THAT(with("llama4", "layer_types",
                   {"full_attention", "chunked_attention", "chunked_attention", "full_attention"}),
              HasSubstr("layer_types"));
  EXPECT_THAT(with("llama", "rope_parameters", {{"rope_type", "dynamic"}, {"factor", 0.5}}),
              HasSubstr("rope_parameters.factor = 0.5: need at least 1"));
  EXPECT_THAT(with("llama", "rope_parameters", {{"rope_type", "dynamic"}, {"alpha", 1000}}),
              HasSubstr("value is missing: rope_parameters.factor"));
  EXPECT_THAT(with("hunyuan-dense", "rope_parameters", {{"rope_type", "dynamic"}, {"alpha", 0}}),
              HasSubstr("rope_parameters.alpha = 0: need more than 0"));
  EXPECT_THAT(with("bert", "position_embedding_type", "relative_key"),
              HasSubstr("position_embedding_type = \"relative_key\": need absolute"));
  EXPECT_THAT(with("bert", "is_decoder", true), HasSubstr("is_decoder = true: need false"));
  EXPECT_THAT(with("nomic-bert", "moe_every_n_layers", 2), HasSubstr("moe_every_n_layers = 2"));
  EXPECT_THAT(with("nomic-bert", "causal", true), HasSubstr("causal = true"));
  EXPECT_THAT(with("modern-bert", "layer_types", {"sliding_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(with("mamba2", "time_step_limit", {0.0, 0.1}), HasSubstr("need [0, Infinity]"));
  EXPECT_THAT(with("mamba2", "time_step_limit", 3), HasSubstr("need [0, Infinity]"));
  EXPECT_THAT(with("mamba2", "head_dim", 24),
              HasSubstr("head_dim = 24: need a divisor of the scan's 128 elements"));
  EXPECT_THAT(with("mamba2", "num_heads", 9), HasSubstr("num_heads = 9: need 8, the heads"));
  EXPECT_THAT(with("mamba2", "n_groups", 3), HasSubstr("tensor has the wrong shape"));
  EXPECT_THAT(with("falcon-h1-multipliers", "mamba_norm_before_gate", true),
              HasSubstr("mamba_norm_before_gate = true"));
  EXPECT_THAT(with("falcon-h1-multipliers", "ssm_multipliers", {1.0, 2.0}),
              HasSubstr("ssm_multipliers = array: need 5 numbers"));
  EXPECT_THAT(with("falcon-h1", "mamba_d_ssm", 100), HasSubstr("mamba_d_head = 16"));
  EXPECT_THAT(with("falcon-h1", "mamba_d_ssm", 1024), HasSubstr("ssm_"));
  EXPECT_THAT(with("lfm2", "layer_types", {"conv"}), HasSubstr("layer_types"));
  EXPECT_THAT(with("lfm2", "layer_types", {"conv", "scan", "conv", "conv"}),
              HasSubstr("this version supports conv and full_attention"));
  EXPECT_THAT(with("lfm2", "conv_L_cache", nullptr), HasSubstr("is missing: conv_L_cache"));
  EXPECT_THAT(with("qwen3next", "linear_num_key_heads", 3), HasSubstr("wrong shape"));
  EXPECT_THAT(with("qwen3next", "linear_num_key_heads", 0), HasSubstr("wrong shape"));
  EXPECT_THAT(with("qwen3next", "layer_types", {"full_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(with("gemma4", "layer_types", nullptr), HasSubstr("layer_types"));
  EXPECT_THAT(with("gemma4", "global_head_dim", 65537), HasSubstr("global_head_dim = 65537"));
  EXPECT_THAT(
      with("gemma4", "per_layer_config", {{"2", {{"head_dim", 32}}}, {"5", {{"head_dim", 8}}}}),
      HasSubstr("per_layer_config.5.head_dim = 8: layers of one type"));
  EXPECT_THAT(with("gemma4", "per_layer_config", {{"2", 3}}),
              HasSubstr("not a JSON object: per_layer_config.2."));
  EXPECT_THAT(with("gemma4", "use_bidirectional_attention", "all"),
              HasSubstr("use_bidirectional_attention = \"all\""));
  EXPECT_THAT(with("gemma4-moe", "top_k_experts", nullptr), HasSubstr("missing: top_k_experts"));
}

TEST_F(HfErrors, RefusesInvalidPoolings) {
  TinyModel::read("bert").write_directory(path(), 1);
  std::filesystem::create_directories(path() + "/1_P");
  const auto with = [&](const std::string& modules, const std::string& pooling) {
    write("modules.json", modules);
    write("1_P/config.json", pooling);
    return error();
  };
  const std::string list = R"([{"type":"Pooling","path":"1_P"}])";
  EXPECT_THAT(with("{}", "{}"), HasSubstr("modules.json: not a JSON array"));
  EXPECT_THAT(with("[1]", "{}"), HasSubstr("modules.json: not a JSON object"));
  for (const char* folder : {"../1_P", "..", ""}) {
    EXPECT_THAT(with(R"([{"type":"Pooling","path":")" + std::string(folder) + "\"}]", "{}"),
                HasSubstr("need the name of a folder"));
  }
  EXPECT_THAT(with(list, "{}"), HasSubstr("this version supports mean, cls, lasttoken"));
  EXPECT_THAT(with(list, R"({"pooling_mode":"max"})"), HasSubstr("pooling_mode = \"max\""));
  EXPECT_THAT(with(list, "x"), HasSubstr("1_P/config.json: not JSON"));
}

TEST_F(HfErrors, RefusesInvalidDenseLayers) {
  TinyModel::read("bert").write_directory(path(), 1);
  std::filesystem::create_directories(path() + "/2_D");
  const auto with = [&](int layers, const std::string& config, const std::string& weights) {
    std::string modules;
    for (int i = 0; i < layers; ++i) {
      modules += std::string(i == 0 ? "" : ",") + R"({"type":"m.Dense","path":"2_D"})";
    }
    write("modules.json", "[" + modules + "]");
    write("2_D/config.json", config);
    write("2_D/model.safetensors", weights);
    return error();
  };
  const std::string plain =
      R"({"in_features":1,"out_features":1,"activation_function":"torch.nn.Identity"})";
  const auto weights = [](const char* name, std::vector<int64_t> shape) {
    int64_t count = 4;
    for (const int64_t size : shape) count *= size;
    return io::test::SafetensorsBuilder()
        .tensor(name, "F32", shape, std::string(static_cast<size_t>(count), '\0'))
        .build();
  };
  const std::string any = weights("linear.weight", {1, 1});
  EXPECT_THAT(with(1, R"({"in_features":1,"out_features":1})", any),
              HasSubstr("activation_function"));
  EXPECT_THAT(with(1, R"({"activation_function":"torch.nn.modules.activation.Tanh"})", any),
              HasSubstr("need torch.nn.modules.linear.Identity"));
  EXPECT_THAT(with(1, R"({"activation_function":"torch.nn.Identity"})", any),
              HasSubstr("missing: in_features"));
  EXPECT_THAT(with(3, plain, any), HasSubstr("this version supports two dense layers"));
  EXPECT_THAT(with(1, plain, "x"), HasSubstr("2_D/model.safetensors"));
  EXPECT_THAT(with(1, plain, weights("weight", {1, 1})),
              HasSubstr("tensor has no place in a dense layer"));
  EXPECT_THAT(with(1, plain, any), HasSubstr("dense_2.weight"));  // BERT's rows are longer
  EXPECT_THAT(with(1, plain, weights("linear.weight", {4})), HasSubstr("dense_2.weight"));
  std::filesystem::remove(path() + "/2_D/model.safetensors");
  EXPECT_THAT(error(), HasSubstr("folder has no weights"));
}

TEST_F(HfErrors, RefusesOtherTensors) {
  TinyModel tiny = TinyModel::read("mixtral");
  tiny.without = {"model.layers.1.block_sparse_moe.experts.3.w2.weight"};
  tiny.write_directory(path(), 1);
  EXPECT_THAT(error(), HasSubstr("tensors before this one are missing: "
                                 "model.layers.1.block_sparse_moe.experts.4.w2.weight"));
  tiny.without = {"model.norm.weight"};
  tiny.write_directory(path(), 1);
  EXPECT_THAT(error(), HasSubstr("tensor is missing: output_norm.weight in " + path()));
  tiny.without = {};
  tiny.write_directory(path(), 1);
  rename_tensors(path() + "/model.safetensors", "", "model.layers.0.self_attn.gate.weight");
  EXPECT_THAT(error(), HasSubstr("tensor that this version doesn't use: "
                                 "model.layers.0.self_attn.gate.weight F32[0]"));
  tiny.write_directory(path(), 1);
  rename_tensors(path() + "/model.safetensors", "", "model.embed_tokens.bias");
  EXPECT_THAT(error(), HasSubstr("doesn't use: token_embd.bias"));
  tiny.write_directory(path(), 1);
  rename_tensors(path() + "/model.safetensors", "", "transformer.embed_tokens.weight");
  EXPECT_THAT(error(), HasSubstr("two tensors have the same meaning"));
  tiny.write_directory(path(), 1);
  rename_tensors(path() + "/model.safetensors", "",
                 "model.layers.0.block_sparse_moe.experts.99999999.w2.weight");
  EXPECT_THAT(error(), HasSubstr("number is too large"));
}

TEST_F(HfErrors, RefusesEveryCutOfAShard) {
  TinyModel::read("llama").write_directory(path(), 1);
  const std::string file = path() + "/model.safetensors";
  for (const double part : {0.999, 0.5, 0.02, 0.001, 0.0}) {
    std::filesystem::resize_file(
        file, static_cast<uintmax_t>(part * static_cast<double>(std::filesystem::file_size(file))));
    EXPECT_THAT(error(), HasSubstr(file)) << part;
  }
}

TEST_F(HfErrors, NamesTheChangedShard) {
  TinyModel::read("llama").write_directory(path(), 2);
  const auto file = open_model(path());
  std::filesystem::resize_file(path() + "/model-00002-of-00002.safetensors", 1000);
  EXPECT_THAT(error_of([&] { CausalLm::load(*file, {}); }),
              HasSubstr("file was changed while it was in use: " + path() + "/model-00002"));
}

}  // namespace
}  // namespace wick::models
