// Folders and files that leave out what has a default, that have no head, or that write a value in
// another form.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "tests/models/hf_directory.h"
#include "tests/models/record.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "wick/io/convert.h"
#include "wick/models/decoder_lm.h"

namespace wick::models {
namespace {

using io::test::SafetensorsBuilder;
using test::error_of;
using test::some_tokens;
using test::TinyModel;
using testing::HasSubstr;

/// The keys of a model with their values, without those of the tokenizer.
std::map<std::string, std::string> keys_of(const io::ModelFile& file) {
  std::map<std::string, std::string> keys;
  for (const io::GgufEntry& entry : file.metadata()) {
    if (!entry.key.starts_with("tokenizer.")) keys.emplace(entry.key, entry.value.str(64));
  }
  return keys;
}

/// A member of config.json that may be missing, and transformers' default.
struct Default {
  const char *model, *member, *value;  // value: JSON
};
constexpr Default kDefaults[] = {
    {"llama", "rms_norm_eps", "1e-6"},
    {"llama", "max_position_embeddings", "2048"},
    {"mixtral", "rms_norm_eps", "1e-5"},
    {"mixtral", "num_key_value_heads", "8"},
    {"mixtral", "num_experts_per_tok", "2"},
    {"ministral3", "rms_norm_eps", "1e-5"},
    {"llama4", "rms_norm_eps", "1e-5"},
    {"qwen2", "rms_norm_eps", "1e-6"},
    {"qwen2moe", "moe_intermediate_size", "1408"},
    {"qwen2moe", "norm_topk_prob", "false"},
    {"qwen3", "rms_norm_eps", "1e-6"},
    {"qwen3", "head_dim", "128"},
    {"qwen3moe", "norm_topk_prob", "false"},
    {"qwen3next", "rms_norm_eps", "1e-6"},
    {"qwen3next", "linear_conv_kernel_dim", "4"},
    {"gemma", "rms_norm_eps", "1e-6"},
    {"gemma", "head_dim", "256"},
    {"gemma2", "attn_logit_softcapping", "50"},
    {"gemma2", "final_logit_softcapping", "30"},
    {"gemma2", "sliding_window", "4096"},
    {"gemma4", "rms_norm_eps", "1e-6"},
    {"phi2", "layer_norm_eps", "1e-5"},
    {"phi3", "rms_norm_eps", "1e-5"},
    {"gpt2", "layer_norm_epsilon", "1e-5"},
    {"gpt2", "n_positions", "1024"},
    {"gptneox", "layer_norm_eps", "1e-5"},
    {"starcoder2", "norm_epsilon", "1e-5"},
    {"stablelm", "layer_norm_eps", "1e-5"},
    {"nemotron", "norm_eps", "1e-5"},
    {"olmo2", "rms_norm_eps", "1e-5"},
    {"olmoe", "rms_norm_eps", "1e-5"},
    {"granite", "rms_norm_eps", "1e-6"},
    {"granite", "attention_multiplier", "1"},
    {"cohere2", "layer_norm_eps", "1e-5"},
    {"cohere2", "logit_scale", "0.0625"},
    {"deepseek3", "rms_norm_eps", "1e-6"},
    {"deepseek3", "routed_scaling_factor", "2.5"},
    {"gpt-oss", "rms_norm_eps", "1e-5"},
    {"gpt-oss", "sliding_window", "128"},
    {"glm4", "rms_norm_eps", "1.5625e-7"},
    {"smollm3", "rms_norm_eps", "1e-6"},
    {"exaone4", "rms_norm_eps", "1e-5"},
    {"ernie4_5", "rms_norm_eps", "1e-5"},
    {"ernie4_5-moe", "moe_k", "6"},
    {"hunyuan-dense", "rms_norm_eps", "1e-5"},
    {"bert", "layer_norm_eps", "1e-12"},
    {"bert", "max_position_embeddings", "512"},
    {"modern-bert", "max_position_embeddings", "8192"},
    {"mamba2", "layer_norm_epsilon", "1e-5"},
    {"falcon-h1", "rms_norm_eps", "1e-5"},
    {"lfm2", "norm_eps", "1e-5"},
    {"lfm2", "conv_L_cache", "3"},
};

TEST_F(HfDirectory, MissingMembersHaveTransformersDefaults) {
  for (const auto& [model, member, value] : kDefaults) {
    SCOPED_TRACE(fmt::format("{} {}", model, member));
    const auto keys_with = [&](const std::function<void(json&)>& edit) {
      std::filesystem::remove_all(path());
      TinyModel::read(model).write_directory(path(), 1);
      edit_config(edit);
      return keys_of(*open_model(path()));
    };
    const auto written = keys_with([&](json& config) {
      ASSERT_TRUE(config.contains(member));
      config[member] = json::parse(value);
    });
    EXPECT_EQ(keys_with([&](json& config) { config.erase(member); }), written);
  }
}

// null isn't the default where it has a meaning of its own.
TEST_F(HfDirectory, NullMembersArentMissing) {
  TinyModel::read("llama").write_directory(path(), 1);
  edit_config([](json& config) { config["model_type"] = "mistral"; });
  EXPECT_EQ(open_model(path())->get_u32("llama.attention.sliding_window"), 4096u);
  edit_config([](json& config) { config["sliding_window"] = nullptr; });
  EXPECT_FALSE(open_model(path())->contains("llama.attention.sliding_window"));
}

/// Rewrites the weights without the output matrix, and without the prefix of a model with a head.
void remove_head(const std::string& folder) {
  std::ifstream in(folder + "/model.safetensors", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const json header = json::parse(bytes.substr(8, length));
  SafetensorsBuilder rest;
  for (const auto& [name, entry] : header.items()) {
    if (name == "lm_head.weight") continue;
    const size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
    constexpr std::string_view kPrefix = "model.";
    rest.tensor(name.substr(kPrefix.size()), entry.at("dtype"), entry.at("shape"),
                std::string_view(bytes).substr(8 + length + begin, end - begin));
  }
  std::ofstream(folder + "/model.safetensors", std::ios::binary) << rest.build();
}

TEST_F(HfDirectory, ModelsWithoutAHeadMakeEmbeddings) {
  const std::vector<std::vector<int32_t>> sequences = {some_tokens(24)};
  TinyModel::read("llama").write_directory(path(), 1);
  const auto embedded = [&](const io::ModelFile& file) {
    return CausalLm::load(file, {})->embed(sequences).to_vector<float>();
  };
  const std::vector<float> expected = embedded(*open_model(path()));
  remove_head(path());
  EXPECT_THAT(error(), HasSubstr("need true, because there is no tensor lm_head.weight"));
  edit_config([](json& config) { config["architectures"] = {"LlamaForCausalLM"}; });
  EXPECT_THAT(error(), HasSubstr("need true, because there is no tensor lm_head.weight"));
  edit_config([](json& config) { config["architectures"] = {"LlamaModel"}; });
  const auto check = [&](const io::ModelFile& file) {
    EXPECT_EQ(embedded(file), expected);
    const auto model = CausalLm::load(file, {});
    EXPECT_FALSE(model->makes_logits());
    nn::KvCache cache = model->make_cache(24, DType::f32);
    EXPECT_THAT(error_of([&] { model->forward(sequences[0], cache, Logits::last); }),
                HasSubstr("this model makes embeddings, not logits"));
  };
  check(*open_model(path()));
  io::quantize_gguf(*open_model(path()), folder_.path("m.gguf"), DType::f32);
  check(*open_model(folder_.path("m.gguf")));
  // A tied table is the output matrix.
  edit_config([](json& config) { config["tie_word_embeddings"] = true; });
  EXPECT_TRUE(CausalLm::load(*open_model(path()), {})->makes_logits());
}

TEST_F(HfDirectory, Llama4MayHaveNoTemperatures) {
  TinyModel::read("llama4").write_directory(path(), 1);
  const auto scale_with = [&](const json& value) {
    edit_config([&](json& config) { config["attn_temperature_tuning"] = value; });
    const auto model = CausalLm::load(*open_model(path()), {});
    const DecoderConfig& config = dynamic_cast<const DecoderLm&>(*model).config();
    const bool used = std::any_of(config.layers.begin(), config.layers.end(),
                                  [](const LayerConfig& layer) { return layer.temperature; });
    EXPECT_EQ(used, config.temperature.scale != 0.0f);
    return config.temperature.scale;
  };
  for (const json& on : {json(true), json(4), json(1), json()}) EXPECT_EQ(scale_with(on), 0.1f);
  for (const json& off : {json(false), json(0)}) EXPECT_EQ(scale_with(off), 0.0f);
  io::quantize_gguf(*open_model(path()), folder_.path("m.gguf"), DType::f32);
  const auto model = CausalLm::load(*open_model(folder_.path("m.gguf")), {});
  EXPECT_EQ(dynamic_cast<const DecoderLm&>(*model).config().temperature.scale, 0.0f);
  edit_config([](json& config) { config["attn_temperature_tuning"] = "yes"; });
  EXPECT_THAT(error(), HasSubstr("attn_temperature_tuning = \"yes\": need true or false"));
}

/// The logits of a Qwen2-MoE whose experts together have the width of its MLP, which the shared
/// expert has alone.
std::vector<float> logits_of_old(const std::string& path, bool with_keys) {
  TinyModel tiny = TinyModel::read("qwen2moe");
  tiny.edit = [with_keys](io::GgufWriter& w) {
    w.set_u32("qwen2moe.feed_forward_length", 64);
    constexpr const char *kExpert = "qwen2moe.expert_feed_forward_length",
                         *kShared = "qwen2moe.expert_shared_feed_forward_length";
    if (with_keys) {
      w.set_u32(kExpert, 32);
      w.set_u32(kShared, 64);
    } else {
      w.remove(kExpert);
      w.remove(kShared);
    }
  };
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* part : {"gate", "up", "down"}) {
      tiny.shapes[fmt::format("blk.{}.ffn_{}_shexp.weight", layer, part)] = {64, 64};
    }
  }
  tiny.write(path);
  const auto model = CausalLm::load(*io::Gguf::open(path), {});
  nn::KvCache cache = model->make_cache(24, DType::f32);
  return model->forward(some_tokens(24), cache, Logits::all).to_vector<float>();
}

TEST_F(HfDirectory, OldFilesOfQwen2MoeLackTheWidthsOfExperts) {
  const std::string path = folder_.path("m.gguf");
  EXPECT_EQ(logits_of_old(path, false), logits_of_old(path, true));
}

}  // namespace
}  // namespace wick::models
