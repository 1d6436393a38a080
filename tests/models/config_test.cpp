// Files that lack something or contain invalid values. The error must name what is wrong and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "wick/models/decoder_lm.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::error_of;
using test::TinyLlama;
using test::TinyModel;
using testing::HasSubstr;

class ModelFiles : public testing::Test {
 protected:
  /// Returns the error of loading the model, without a leading path.
  std::string error(TinyLlama tiny) { return error_of_model(std::move(tiny)); }
  template <class Model>
  std::string error_of_model(Model tiny) {
    const std::string path = folder_.path("m.gguf");
    tiny.write(path);
    const std::string message =
        error_of([&] { CausalLm::load(*io::Gguf::open(path), LoadOptions{}); });
    EXPECT_THAT(message, HasSubstr(path));
    return message.starts_with(path) ? message.substr(path.size() + 2) : message;
  }
  template <class Model = TinyLlama>
  std::string edited(std::function<void(io::GgufWriter&)> edit, Model tiny = {}) {
    tiny.edit = std::move(edit);
    return error_of_model(std::move(tiny));
  }

 private:
  TempFolder folder_;
};

TEST_F(ModelFiles, MissingTensors) {
  for (const char* name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.1.attn_q.weight",
        "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
        "blk.1.ffn_norm.weight", "blk.0.ffn_up.weight", "blk.1.ffn_down.weight"}) {
    EXPECT_THAT(error({.without = {name}}), HasSubstr(name));
  }
  EXPECT_EQ(error({.without = {"blk.0.ffn_gate.weight"}}),
            "tensor has the wrong shape: blk.0.ffn_up.weight f32[96,64]: need [192,64], with the "
            "rows of the gate, or a ffn_gate");
}

TEST_F(ModelFiles, WrongShapes) {
  EXPECT_EQ(error({.shapes = {{"blk.0.attn_q.weight", {64, 32}}}}),
            "tensor has the wrong shape: blk.0.attn_q.weight f32[64,32]: need [64,64]");
  EXPECT_EQ(error({.shapes = {{"blk.1.ffn_norm.weight", {32}}}}),
            "tensor has the wrong shape: blk.1.ffn_norm.weight f32[32]: need [64]");
  EXPECT_THAT(error({.shapes = {{"token_embd.weight", {40, 32}}}}), HasSubstr("need [40,64]"));
  EXPECT_EQ(error({.shapes = {{"token_embd.weight", {40}}}}),
            "embedding isn't a matrix: f32[40]: need [vocabulary, hidden]");
  EXPECT_THAT(error({.shapes = {{"token_embd.weight", {0, 64}}}}),
              HasSubstr("embedding isn't a matrix"));
  EXPECT_THAT(error({.shapes = {{"output.weight", {41, 64}}}}), HasSubstr("output.weight"));
  EXPECT_THAT(error({.biases = true, .shapes = {{"blk.0.attn_v.bias", {1}}}}),
              HasSubstr("blk.0.attn_v.bias f32[1]: need [32]"));
  EXPECT_THAT(error({.rope_divisors = {1, 1}}), HasSubstr("rope_freqs.weight f32[2]: need [8]"));
}

// A tensor that no step uses shows that the model is of another variant.
TEST_F(ModelFiles, TensorsThatNothingUses) {
  EXPECT_EQ(error({.added = "blk.0.attn_q_norm.weight"}),
            "tensor that this version doesn't use: blk.0.attn_q_norm.weight f32[16]: the model may "
            "be of a variant that isn't supported");
}

TEST_F(ModelFiles, TypesThatCantBeComputedWith) {
  EXPECT_THAT(error({.types = {{"blk.0.ffn_up.weight", DType::f64}}}),
              HasSubstr("weight type not supported: blk.0.ffn_up.weight f64[96,64]"));
  EXPECT_THAT(error({.types = {{"blk.1.attn_q.weight", DType::i32}}}),
              HasSubstr("weight type not supported: blk.1.attn_q.weight i32[64,64]"));
  EXPECT_THAT(error({.types = {{"output_norm.weight", DType::i32}}}),
              HasSubstr("tensor type not supported: output_norm.weight i32[64]"));
}

TEST_F(ModelFiles, ArchitectureAndRopeKind) {
  std::string known;
  for (const Architecture& a : architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(a.name);
  }
  EXPECT_EQ(edited([](auto& w) { w.set_string("general.architecture", "mamba"); }),
            "unsupported architecture: 'mamba': this version supports " + known);
  EXPECT_THAT(edited([](auto& w) { w.remove("general.architecture"); }),
              HasSubstr("general.architecture"));
  EXPECT_THAT(edited([](auto& w) { w.set_u32("general.architecture", 3); }),
              HasSubstr("general.architecture"));
  EXPECT_EQ(edited([](auto& w) { w.set_string("llama.rope.scaling.type", "spiral"); }),
            "unknown rope scaling: 'spiral': this version supports none, linear, yarn, llama3, "
            "longrope and dynamic");
  EXPECT_THAT(edited([](auto& w) { w.set_string("llama.rope.scaling.type", "longrope"); }),
              HasSubstr("rope_factors_short.weight"));
}

TEST_F(ModelFiles, HeadsThatDontGroup) {
  EXPECT_THAT(edited([](auto& w) { w.set_u32("llama.attention.head_count_kv", 3); }),
              HasSubstr("heads don't group: 4 over 3"));
  EXPECT_THAT(edited([](auto& w) { w.set_u32("llama.attention.head_count_kv", 8); }),
              HasSubstr("heads don't group: 4 over 8"));
  EXPECT_THAT(edited([](auto& w) {
                w.remove("llama.attention.key_length");
                w.set_u32("llama.attention.head_count", 6);
              }),
              HasSubstr("hidden size isn't whole heads: 64 over 6 heads"));
}

TEST_F(ModelFiles, MissingKeys) {
  for (const char* key : {"llama.block_count", "llama.embedding_length",
                          "llama.feed_forward_length", "llama.attention.head_count",
                          "llama.context_length", "llama.attention.layer_norm_rms_epsilon"}) {
    EXPECT_THAT(edited([&](auto& w) { w.remove(key); }), HasSubstr(key));
  }
}

TEST_F(ModelFiles, CountsOutOfRange) {
  for (const char* key :
       {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.head_count_kv", "llama.context_length",
        "llama.attention.key_length", "llama.attention.value_length", "llama.rope.dimension_count",
        "llama.rope.scaling.original_context_length"}) {
    for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{-64}, INT64_MIN, INT64_MAX,
                          int64_t{1} << 31, int64_t{1} << 32}) {
      EXPECT_THAT(edited([&](auto& w) { w.set_i64(key, value); }), HasSubstr(key)) << value;
    }
    EXPECT_THAT(edited([&](auto& w) { w.set_u64(key, UINT64_MAX); }), HasSubstr(key));
    EXPECT_THAT(edited([&](auto& w) { w.set_f32(key, 2.5f); }), HasSubstr(key));
    EXPECT_THAT(edited([&](auto& w) { w.set_string(key, "many"); }), HasSubstr(key));
  }
  // Counts within range that contradict the tensors.
  EXPECT_THAT(edited([](auto& w) { w.set_u32("llama.block_count", 3); }), HasSubstr("blk.2."));
  EXPECT_THAT(edited([](auto& w) { w.set_u32("llama.attention.head_count", 2); }),
              HasSubstr("attn_q.weight"));
  EXPECT_THAT(edited([](auto& w) { w.set_u32("llama.attention.value_length", 8); }),
              HasSubstr("attn_v.weight"));
  EXPECT_THAT(edited([](auto& w) { w.set_u32("llama.rope.dimension_count", 7); }),
              HasSubstr("llama.rope.dimension_count = 7"));
}

TEST_F(ModelFiles, NumbersOutOfRange) {
  for (const char* key :
       {"llama.rope.freq_base", "llama.rope.scaling.factor", "llama.rope.scaling.attn_factor",
        "llama.rope.scaling.yarn_beta_fast", "llama.rope.scaling.yarn_beta_slow",
        "llama.rope.scale_linear", "llama.attention.layer_norm_rms_epsilon"}) {
    for (float value : {-1.0f, NAN, INFINITY, -INFINITY}) {
      EXPECT_THAT(edited([&](auto& w) { w.set_f32(key, value); }), HasSubstr(key)) << value;
    }
  }
  for (const char* key : {"llama.rope.freq_base", "llama.rope.scaling.factor"}) {
    EXPECT_THAT(edited([&](auto& w) { w.set_f32(key, 0.0f); }), HasSubstr(key));
  }
  EXPECT_THAT(edited([](auto& w) { w.set_f32("llama.attention.scale", NAN); }),
              HasSubstr("llama.attention.scale"));
  EXPECT_THAT(edited([](auto& w) { w.set_i32("llama.attention.sliding_window", -1); }),
              HasSubstr("llama.attention.sliding_window = -1"));
  EXPECT_THAT(error({.rope_divisors = {1, 1, 1, 0, 1, 1, 1, 1}}), HasSubstr("divisors"));
  EXPECT_THAT(error({.rope_divisors = {1, 1, 1, NAN, 1, 1, 1, 1}}), HasSubstr("divisors"));
}

// Tensors and keys of other architectures that Llama doesn't have.
TEST_F(ModelFiles, OtherArchitectures) {
  const auto without = [&](const char* family, const char* tensor) {
    TinyModel tiny = TinyModel::read(family);
    tiny.without = {tensor};
    return error_of_model(tiny);
  };
  const auto shaped = [&](const char* family, const char* tensor, const Shape& shape) {
    TinyModel tiny = TinyModel::read(family);
    tiny.shapes = {{tensor, shape}};
    return error_of_model(tiny);
  };
  const auto changed = [&](const char* family, auto edit) {
    return edited(edit, TinyModel::read(family));
  };
  for (const auto& [family, tensor] : std::initializer_list<std::pair<const char*, const char*>>{
           {"qwen2", "blk.0.attn_q.bias"},
           {"qwen2", "blk.1.attn_k.bias"},
           {"qwen2", "blk.0.attn_v.bias"},
           {"qwen3", "blk.1.attn_q_norm.weight"},
           {"qwen3", "blk.0.attn_k_norm.weight"},
           {"gemma2", "blk.2.post_attention_norm.weight"},
           {"gemma2", "blk.0.post_ffw_norm.weight"},
           {"gemma3", "blk.6.attn_q_norm.weight"},
           {"gemma3", "blk.5.post_ffw_norm.weight"}}) {
    EXPECT_THAT(without(family, tensor), HasSubstr(tensor)) << family;
  }
  EXPECT_EQ(without("phi3", "blk.0.attn_qkv.weight"),
            "tensor is missing: blk.0.attn_q.weight or attn_qkv.weight");
  EXPECT_EQ(without("phi3", "blk.1.ffn_up.weight"), "tensor is missing: blk.1.ffn_up.weight");
  EXPECT_EQ(shaped("qwen3", "blk.0.attn_q_norm.weight", {64}),
            "tensor has the wrong shape: blk.0.attn_q_norm.weight f32[64]: need [24]");
  EXPECT_THAT(shaped("qwen2", "blk.0.attn_k.bias", {64}), HasSubstr("need [32]"));
  EXPECT_THAT(shaped("phi3", "blk.0.attn_qkv.weight", {64, 64}), HasSubstr("need [192,64]"));
  EXPECT_THAT(shaped("phi3", "blk.0.ffn_up.weight", {96, 64}), HasSubstr("need [192,64]"));
  EXPECT_THAT(shaped("gemma3", "blk.6.post_ffw_norm.weight", {33}), HasSubstr("need [32]"));
  EXPECT_THAT(changed("phi3", [](auto& w) { w.set_u32("phi3.attention.head_count_kv", 3); }),
              HasSubstr("heads don't group: 4 over 3"));

  for (const auto& [family, key] : std::initializer_list<std::pair<const char*, std::string>>{
           {"gemma3", "gemma3.attention.sliding_window"},
           {"gemma3", "gemma3.attention.sliding_window_pattern"},
           {"gemma2", "gemma2.attention.sliding_window"},
           {"qwen2", "qwen2.block_count"},
           {"qwen3", "qwen3.attention.key_length"}}) {
    for (const int64_t value : {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 31}) {
      EXPECT_THAT(changed(family, [&](auto& w) { w.set_i64(key, value); }), HasSubstr(key));
    }
    EXPECT_THAT(changed(family, [&](auto& w) { w.set_string(key, "many"); }), HasSubstr(key));
  }
  EXPECT_EQ(changed("qwen3", [](auto& w) { w.set_u32("qwen3.attention.key_length", 0); }),
            "head size out of range: qwen3.attention.key_length = 0: need 1 to 576");
  EXPECT_THAT(
      changed("gemma3", [](auto& w) { w.set_u32("gemma3.attention.sliding_window_pattern", 0); }),
      HasSubstr("gemma3.attention.sliding_window_pattern = 0: need 1 to 4096"));
  EXPECT_THAT(changed("gemma3",
                      [](auto& w) {
                        const std::vector<int32_t> numbers(7, 1);
                        w.set_i32s("gemma3.attention.sliding_window_pattern", numbers);
                      }),
              HasSubstr("gemma3.attention.sliding_window_pattern"));
  EXPECT_THAT(changed("gemma3",
                      [](auto& w) {
                        w.set_bools("gemma3.attention.sliding_window_pattern", {true, false});
                      }),
              HasSubstr("gemma3.attention.sliding_window_pattern = 2 values: need 7"));
  for (const char* key : {"gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping"}) {
    for (const float value : {-1.0f, NAN, INFINITY}) {
      EXPECT_THAT(changed("gemma2", [&](auto& w) { w.set_f32(key, value); }), HasSubstr(key));
    }
  }
  EXPECT_THAT(changed("gemma3", [](auto& w) { w.set_f32("gemma3.rope.freq_base_swa", 1.0f); }),
              HasSubstr("gemma3.rope.freq_base_swa = 1: need a finite number above 1"));
}

TEST_F(ModelFiles, RecurrentLayers) {
  const auto changed = [&](const char* family, auto edit) {
    return edited(edit, TinyModel::read(family));
  };
  EXPECT_THAT(changed("mamba2", [](auto& w) { w.set_u32("mamba2.ssm.inner_size", 100); }),
              HasSubstr("mamba2.ssm.inner_size = 100: need a multiple of the 8 heads"));
  EXPECT_THAT(changed("mamba2", [](auto& w) { w.set_u32("mamba2.ssm.group_count", 3); }),
              HasSubstr("mamba2.ssm.group_count = 3: need a divisor of the 8 heads"));
  EXPECT_THAT(changed("mamba2", [](auto& w) { w.set_u32("mamba2.ssm.conv_kernel", 0); }),
              HasSubstr("mamba2.ssm.conv_kernel = 0: need 1 to 64"));
  EXPECT_THAT(changed("mamba2", [](auto& w) { w.set_u32("mamba2.ssm.state_size", 8); }),
              HasSubstr("blk.0.ssm_in.weight"));
  EXPECT_THAT(changed("falcon-h1", [](auto& w) { w.set_u32("falcon-h1.attention.head_count", 0); }),
              HasSubstr("falcon-h1.attention.head_count = 0: need 1 or more"));
  EXPECT_THAT(changed("lfm2", [](auto& w) { w.set_u32("lfm2.shortconv.l_cache", 4); }),
              HasSubstr("blk.0.shortconv.conv.weight"));
  EXPECT_THAT(changed("qwen3next",
                      [](auto& w) {
                        w.set_bools("qwen3next.attention.recurrent_layers", {true, true});
                      }),
              HasSubstr("qwen3next.attention.recurrent_layers = 2 values: need 4"));
  // Without a list of layers, every second one would attend.
  EXPECT_THAT(changed("qwen3next",
                      [](auto& w) {
                        w.remove("qwen3next.attention.recurrent_layers");
                        w.set_u32("qwen3next.full_attention_interval", 2);
                      }),
              HasSubstr("blk.1.attn_qkv.weight"));
}

TEST_F(ModelFiles, EveryArchitectureNamesItsOwnKeys) {
  for (const TinyModel& tiny : TinyModel::all()) {
    for (const char* name : {"block_count", "embedding_length", "feed_forward_length",
                             "attention.head_count", "context_length"}) {
      const std::string key = tiny.architecture + "." + name;
      EXPECT_THAT(edited([&](auto& w) { w.remove(key); }, tiny), HasSubstr(key));
      EXPECT_THAT(edited([&](auto& w) { w.set_string(key, "4"); }, tiny), HasSubstr(key));
    }
  }
}

TEST_F(ModelFiles, WindowsOfLayers) {
  TempFolder folder;
  const auto windows = [&](const char* family, std::function<void(io::GgufWriter&)> edit) {
    TinyModel tiny = TinyModel::read(family);
    tiny.edit = std::move(edit);
    tiny.write(folder.path("m.gguf"));
    const auto file = io::Gguf::open(folder.path("m.gguf"));
    std::vector<int64_t> all;
    const DecoderConfig config = find_architecture(*file).configure(Metadata(*file));
    for (const LayerConfig& layer : config.layers) all.push_back(layer.window);
    return all;
  };
  using Windows = std::vector<int64_t>;
  EXPECT_EQ(windows("gemma3", {}), (Windows{5, 5, 5, 5, 5, 0, 5}));
  EXPECT_EQ(
      windows("gemma3", [](auto& w) { w.set_u32("gemma3.attention.sliding_window_pattern", 3); }),
      (Windows{5, 5, 0, 5, 5, 0, 5}));
  EXPECT_EQ(windows("gemma3",
                    [](auto& w) {
                      w.set_bools("gemma3.attention.sliding_window_pattern",
                                  {false, true, true, false, false, false, true});
                    }),
            (Windows{0, 5, 5, 0, 0, 0, 5}));
  EXPECT_EQ(windows("gemma3", [](auto& w) { w.remove("gemma3.attention.sliding_window"); }),
            (Windows{1024, 1024, 1024, 1024, 1024, 0, 1024}));
  EXPECT_EQ(windows("gemma2", {}), (Windows{5, 0, 5}));
  EXPECT_EQ(windows("phi3", {}), (Windows{7, 7}));
  EXPECT_EQ(windows("qwen3", {}), (Windows{0, 0}));
}

TEST_F(ModelFiles, ConfigIsRead) {
  TempFolder folder;
  TinyLlama tiny{.window = 9};
  tiny.edit = [](io::GgufWriter& w) { w.set_f32("llama.attention.scale", 0.5f); };
  tiny.write(folder.path("m.gguf"));
  const auto file = io::Gguf::open(folder.path("m.gguf"));
  const auto c = llama_config(Metadata(*file));
  ASSERT_EQ(c.layers.size(), 2U);
  for (const LayerConfig& layer : c.layers) {
    EXPECT_EQ(layer.key_size, 16);
    EXPECT_EQ(layer.kv_heads, 2);
    EXPECT_EQ(layer.window, 9);
  }
  EXPECT_EQ(c.vocabulary, 40);
  EXPECT_EQ(c.attention_scale, 0.5f);
}

}  // namespace
}  // namespace wick::models
