// Weights of few bits in Hugging Face directories: F8, GPTQ, AWQ and MXFP4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/models/hf_directory.h"
#include "tests/models/tiny_model.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

using io::test::SafetensorsBuilder;
using test::error_of;
using test::TinyModel;
using testing::HasSubstr;

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

  /// A matrix of a file, and the two files that get it.
  struct Matrix {
    const std::string& name;
    int64_t rows, columns;
    const std::string& data;  ///< f32
    SafetensorsBuilder &packed, &plain;
  };
  /// Writes a model whose matrices that `is_packed` chooses by name are written by `pack`, and one
  /// with the values that they stand for under "plain".
  void write_both(const std::function<bool(const std::string& name)>& is_packed,
                  const std::function<void(const Matrix&)>& pack, const json& quantization,
                  const char* model = "llama-linear") {
    const TinyModel tiny = TinyModel::read(model);
    tiny.write_directory(path(), 1);
    tiny.write_directory(folder_.path("plain"), 1);
    const auto [header, all] = read_tensors(path() + "/model.safetensors");
    SafetensorsBuilder packed, plain;
    for (const auto& [name, entry] : header.items()) {
      const auto shape = entry.at("shape").get<std::vector<int64_t>>();
      const size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
      const std::string data = all.substr(begin, end - begin);
      if (is_packed(name)) {
        pack({name, shape[0], shape[1], data, packed, plain});
      } else {
        packed.tensor(name, "F32", shape, data);
        plain.tensor(name, "F32", shape, data);
      }
    }
    write("model.safetensors", packed.build());
    std::ofstream(folder_.path("plain/model.safetensors"), std::ios::binary) << plain.build();
    edit_config([&](json& config) { config["quantization_config"] = quantization; });
  }
  static bool is_in_mlp(const std::string& name) { return name.find(".mlp.") != std::string::npos; }

  /// Writes a Llama whose feed-forward matrices are f8 with scales of blocks of 40 × 24, and one
  /// with the same values in f32 under "plain". `scale_name` follows ".weight".
  void write_f8(const std::string& scale_name, const ScaleShape& scales_of,
                const json& quantization) {
    const auto pack = [&](const Matrix& m) { add_f8(m, scale_name, scales_of); };
    write_both(is_in_mlp, pack, quantization);
  }
  static void add_f8(const Matrix& m, const std::string& scale_name, const ScaleShape& scales_of) {
    std::vector<float> values(m.data.size() / 4);
    std::memcpy(values.data(), m.data.data(), m.data.size());
    const Shape shape{m.rows, m.columns};
    const Tensor f8 = (Tensor::from(values, shape) * 16.0).to(DType::f8e4m3);
    const std::vector<int64_t> scale_shape = scales_of(m.rows, m.columns);
    std::vector<float> scale;
    int64_t count = 1;
    for (const int64_t size : scale_shape) count *= size;
    for (int64_t n = 0; n < count; ++n) scale.push_back(0.05f + 0.01f * static_cast<float>(n % 5));
    values = f8.to(DType::f32).to_vector<float>();
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t c = 0; c < m.columns; ++c) {
        const bool in_rows = count == m.rows;
        const int64_t at = count == 1 ? 0 : in_rows ? r : r / 40 * ((m.columns + 23) / 24) + c / 24;
        values[static_cast<size_t>(r * m.columns + c)] *= scale[static_cast<size_t>(at % count)];
      }
    }
    values = Tensor::from(values, shape).to(DType::bf16).to(DType::f32).to_vector<float>();
    m.packed.tensor(m.name, "F8_E4M3", {m.rows, m.columns},
                    {static_cast<const char*>(f8.storage()->data()), f8.storage()->bytes()});
    m.packed.tensor(m.name + scale_name, "F32", scale_shape,
                    {reinterpret_cast<const char*>(scale.data()), scale.size() * 4});
    m.plain.tensor(m.name, "F32", {m.rows, m.columns},
                   {reinterpret_cast<const char*>(values.data()), values.size() * 4});
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
  write_f8("_scale", of_rows, {{"quant_method", "fbgemm_fp8"}, {"activation_scale_ub", 1200.0}});
  expect_equal();
  write_f8("_scale", one, {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}});
  expect_equal();
  const json nested = {{"quant_algo", "FP8_PER_CHANNEL_PER_TOKEN"}};
  write_f8("_scale", of_rows, {{"quant_method", "modelopt"}, {"quantization", nested}});
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
  write_f8("_scale", one, {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}});
  EXPECT_THAT(error(), HasSubstr("quantization_config.quant_algo = \"NVFP4\": this version "
                                 "supports FP8 and FP8_PER_CHANNEL_PER_TOKEN"));
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
    const auto is_packed = [](const std::string& name) {
      return is_in_mlp(name) || name.find("q_proj") != std::string::npos;
    };
    const auto pack = [&](const Matrix& m) {
      add_int4(m.packed, m.plain, m.name, m.rows, m.columns, layout);
    };
    write_both(is_packed, pack, quantization);
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
      if (packed) {
        EXPECT_EQ(values.dtype(), dtype);
      }
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

// The matrix's rows are those of gate and up.
TEST_F(Int4Weights, SymmetricGptqOfASharedExpertIsExact) {
  const auto is_packed = [](const std::string& name) {
    return name.find("shared_mlp.input_linear") != std::string::npos;
  };
  const auto pack = [&](const Matrix& m) {
    add_int4(m.packed, m.plain, m.name, m.rows, m.columns, {});
  };
  write_both(is_packed, pack,
             {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"sym", true}},
             "granitemoe-shared");
  const auto got = open_model(path()), expected = open_model(folder_.path("plain"));
  for (const char* name : {"blk.0.ffn_gate_shexp.weight", "blk.1.ffn_up_shexp.weight"}) {
    const Tensor values = got->tensor(got->require_tensor(name));
    EXPECT_EQ(values.dtype(), DType::q4_0);
    EXPECT_EQ(dequantize(values).to_vector<float>(),
              expected->tensor(expected->require_tensor(name)).to_vector<float>());
  }
  EXPECT_EQ(error(), "no error");
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
