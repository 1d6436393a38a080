// Files that lack something, or say something that cannot be: an error that names what and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "wick/models/decoder_lm.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::error_of;
using test::TinyLlama;
using testing::HasSubstr;

class ModelFiles : public testing::Test {
 protected:
  /// The error of loading the model, without the path if it starts with that.
  std::string error(TinyLlama tiny) {
    const std::string path = folder_.path("m.gguf");
    tiny.write(path);
    const std::string message =
        error_of([&] { CausalLm::load(*io::Gguf::open(path), LoadOptions{}); });
    EXPECT_THAT(message, HasSubstr(path));
    return message.starts_with(path) ? message.substr(path.size() + 2) : message;
  }
  std::string edited(std::function<void(io::GgufWriter&)> edit, TinyLlama tiny = {}) {
    tiny.edit = std::move(edit);
    return error(std::move(tiny));
  }

 private:
  TempFolder folder_;
};

TEST_F(ModelFiles, MissingTensors) {
  for (const char* name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.1.attn_q.weight",
        "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
        "blk.1.ffn_norm.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
        "blk.1.ffn_down.weight"}) {
    EXPECT_THAT(error({.without = {name}}), HasSubstr(name));
  }
}

TEST_F(ModelFiles, WrongShapes) {
  EXPECT_EQ(error({.shapes = {{"blk.0.attn_q.weight", {64, 32}}}}),
            "tensor has another shape: blk.0.attn_q.weight f32[64,32]: need [64,64]");
  EXPECT_EQ(error({.shapes = {{"blk.1.ffn_norm.weight", {32}}}}),
            "tensor has another shape: blk.1.ffn_norm.weight f32[32]: need [64]");
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

TEST_F(ModelFiles, TypesThatCantBeComputedWith) {
  EXPECT_THAT(error({.types = {{"blk.0.ffn_up.weight", DType::f64}}}),
              HasSubstr("weight type not supported: blk.0.ffn_up.weight f64[96,64]"));
  EXPECT_THAT(error({.types = {{"blk.1.attn_q.weight", DType::i32}}}),
              HasSubstr("weight type not supported: blk.1.attn_q.weight i32[64,64]"));
  EXPECT_THAT(error({.types = {{"output_norm.weight", DType::i32}}}),
              HasSubstr("tensor type not supported: output_norm.weight i32[64]"));
}

TEST_F(ModelFiles, ArchitectureAndRopeKind) {
  EXPECT_EQ(edited([](auto& w) { w.set_string("general.architecture", "mamba"); }),
            "unsupported architecture: 'mamba': this version runs llama (Llama 3, Mistral, "
            "SmolLM), qwen2 (Qwen 2 and 2.5), qwen3 (Qwen 3), "
            "phi3 (Phi 3 and 4), gemma (Gemma), gemma2 (Gemma 2), gemma3 (Gemma 3)");
  EXPECT_THAT(edited([](auto& w) { w.remove("general.architecture"); }),
              HasSubstr("general.architecture"));
  EXPECT_THAT(edited([](auto& w) { w.set_u32("general.architecture", 3); }),
              HasSubstr("general.architecture"));
  EXPECT_EQ(edited([](auto& w) { w.set_string("llama.rope.scaling.type", "longrope"); }),
            "unknown rope scaling: 'longrope': this version knows none, linear, yarn and llama3");
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
  // Counts in range that the tensors don't bear out.
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

TEST_F(ModelFiles, ConfigIsRead) {
  TempFolder folder;
  TinyLlama tiny{.window = 9};
  tiny.edit = [](io::GgufWriter& w) { w.set_f32("llama.attention.scale", 0.5f); };
  tiny.write(folder.path("m.gguf"));
  const auto file = io::Gguf::open(folder.path("m.gguf"));
  const auto c = llama_config(Metadata(*file));
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.key_size, 16);
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.vocabulary, 40);
  EXPECT_EQ(c.windows, (std::vector<int64_t>{9, 9}));
  EXPECT_EQ(c.attention_scale, 0.5f);
}

}  // namespace
}  // namespace wick::models
