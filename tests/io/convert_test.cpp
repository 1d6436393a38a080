#include "wick/io/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/backend/block_reference.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"
#include "wick/backend/cpu/search/search.h"
#include "wick/math/half.h"
#include "wick/math/quants.h"

namespace wick::io::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using B = GgufBuilder;

struct Type {
  DType dtype;
  uint32_t number;
  uint32_t file_type;
};
constexpr Type kTypes[] = {{DType::f32, 0, 0},     {DType::f16, 1, 1},      {DType::bf16, 30, 32},
                           {DType::q4_0, 2, 2},    {DType::q4_1, 3, 3},     {DType::q8_0, 8, 7},
                           {DType::q5_0, 6, 8},    {DType::q5_1, 7, 9},     {DType::q4_k, 12, 14},
                           {DType::q6_k, 14, 18},  {DType::q2_k, 10, 10},   {DType::q3_k, 11, 11},
                           {DType::q5_k, 13, 16},  {DType::iq4_nl, 20, 25}, {DType::iq4_xs, 23, 30},
                           {DType::mxfp4, 39, 38}, {DType::iq3_s, 21, 26},  {DType::tq1_0, 34, 36},
                           {DType::tq2_0, 35, 37}, {DType::nvfp4, 40, 39},  {DType::q1_0, 41, 40},
                           {DType::q2_0, 42, 41}};

/// Whether blocks are searched (tests/backend/search_test.cpp) instead of rounded by the op's rule.
bool is_searched(DType type) {
  constexpr auto kRounded =
      DTypeSet::of(DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0);
  return is_block(type) && !kRounded.contains(type);
}

std::vector<float> weights(size_t count, float seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = std::sin(static_cast<float>(i) * 0.7f + seed) * (1.0f + 0.1f * seed);
  }
  return values;
}

template <class Block>
std::string quantized(const std::vector<float>& values) {
  std::string out;
  for (size_t i = 0; i < values.size(); i += math::kBlockValues<Block>) {
    Block block{};
    math::quantize(values.data() + i, &block);
    out += B::raw(block);
  }
  return out;
}
template <class Block>
std::vector<float> dequantized(std::string_view bytes) {
  constexpr size_t kValues = math::kBlockValues<Block>;
  std::vector<float> values(bytes.size() / sizeof(Block) * kValues);
  for (size_t i = 0; i < values.size() / kValues; ++i) {
    Block block{};
    std::memcpy(&block, bytes.data() + i * sizeof(Block), sizeof(Block));
    math::dequantize(block, values.data() + i * kValues);
  }
  return values;
}
template <class Half>
std::string halves(const std::vector<float>& values) {
  std::string out;
  for (float v : values) out += B::raw(math::from_f32<Half>(v));
  return out;
}
template <class Half>
std::vector<float> floats(std::string_view bytes) {
  std::vector<float> values;
  for (size_t i = 0; i + sizeof(Half) <= bytes.size(); i += sizeof(Half)) {
    Half h{};
    std::memcpy(&h, bytes.data() + i, sizeof(Half));
    values.push_back(math::to_f32(h));
  }
  return values;
}

/// Encodes values by the formats' definitions, without the backend.
std::string encode(DType type, const std::vector<float>& values) {
  if (is_searched(type)) {
    std::vector<std::byte> out(
        static_cast<size_t>(wick::bytes_of(type, static_cast<int64_t>(values.size()))));
    cpu::search_rows(type, values.data(), 1, static_cast<int64_t>(values.size()), nullptr,
                     out.data());
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }
  switch (type) {
    case DType::f16:
      return halves<math::f16>(values);
    case DType::bf16:
      return halves<math::bf16>(values);
#define WICK_OF_written(name, Type) \
  case DType::name:                 \
    return quantized<math::Block##Type>(values);
#define WICK_OF_searched(name, Type)
#define WICK_OF_read(name, Type)
#define WICK_QUANT(name, Type, number, size, bytes, bits, offset, code, part, scale, at, \
                   minimum_at, products, writes, reach)                                  \
  WICK_OF_##writes(name, Type)
#include "wick/math/quants.def"
    default:
      return B::bytes_of(values);
  }
}
std::vector<float> decode(DType type, std::string_view bytes) {
  switch (type) {
    case DType::f16:
      return floats<math::f16>(bytes);
    case DType::bf16:
      return floats<math::bf16>(bytes);
#define WICK_QUANT(name, Type, ...) \
  case DType::name:                 \
    return dequantized<math::Block##Type>(bytes);
#include "wick/math/quants.def"
    default: {
      std::vector<float> values(bytes.size() / 4);
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    }
  }
}

/// Returns a model with one matrix of the type, a tied embedding, a norm, and other tensors and
/// keys.
GgufBuilder model(const Type& type) {
  B b;
  b.string("general.architecture", "llama").u32("general.file_type", 99);
  b.u32("split.count", 1).string("quantize.imatrix.file", "x");
  const auto embedding = weights(5 * 256, 1), matrix = weights(3 * 512, 2), norm = weights(64, 3);
  b.tensor("token_embd.weight", {256, 5}, type.number, encode(type.dtype, embedding));
  b.tensor("blk.0.attn_q.weight", {512, 3}, type.number, encode(type.dtype, matrix));
  b.tensor("blk.0.attn_norm.weight", {64}, 0, B::bytes_of(norm));
  b.tensor("ids", {3}, 26, B::bytes_of<int32_t>({1, 2, 3}));
  return b;
}

std::string_view bytes_of(const Gguf& f, std::string_view name) {
  const auto bytes = f.data(f.require_tensor(name));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Quantize, EveryPairOfTypesFollowsTheFormats) {
  TempFolder folder;
  for (const Type& from : kTypes) {
    const std::string in = folder.write("in.gguf", model(from).build());
    const auto source = Gguf::open(in);
    for (const Type& to : kTypes) {
      SCOPED_TRACE(std::string(name(from.dtype)) + " to " + std::string(name(to.dtype)));
      const std::string out = folder.path("out.gguf");
      const QuantizeResult result = quantize_gguf(in, out, to.dtype);
      const auto f = Gguf::open(out);
      EXPECT_THAT(result.notes, IsEmpty());
      EXPECT_EQ(result.bytes_out, f->file_bytes());
      EXPECT_EQ(result.bytes_in, source->file_bytes());
      EXPECT_EQ(f->get_u32("general.file_type"), to.file_type);
      EXPECT_EQ(f->get_u32("general.quantization_version"), 2u);
      EXPECT_EQ(f->get_string("general.architecture"), "llama");
      EXPECT_FALSE(f->contains("split.count"));
      EXPECT_FALSE(f->contains("quantize.imatrix.file"));

      const bool plain = is_block(to.dtype) && !is_searched(to.dtype);
      const DType logits = plain || to.dtype == DType::mxfp4 ? DType::q8_0
                           : is_block(to.dtype)              ? DType::q6_k
                                                             : to.dtype;
      const auto check = [&](const char* tensor, DType type) {
        EXPECT_EQ(f->require_tensor(tensor).dtype, type);
        EXPECT_EQ(f->require_tensor(tensor).shape, source->require_tensor(tensor).shape);
        const std::string_view before = bytes_of(*source, tensor);
        const std::string expected =
            type == from.dtype ? std::string(before) : encode(type, decode(from.dtype, before));
        EXPECT_EQ(bytes_of(*f, tensor), expected) << tensor;
      };
      check("blk.0.attn_q.weight", to.dtype);
      check("token_embd.weight", logits);
      EXPECT_EQ(f->require_tensor("blk.0.attn_norm.weight").dtype, DType::f32);
      EXPECT_EQ(bytes_of(*f, "blk.0.attn_norm.weight"),
                bytes_of(*source, "blk.0.attn_norm.weight"));
      EXPECT_EQ(f->require_tensor("ids").dtype, DType::i32);
      EXPECT_EQ(bytes_of(*f, "ids"), bytes_of(*source, "ids"));
    }
  }
  EXPECT_EQ(folder.list().size(), 2u);
}

/// Files of every block type, including those that can't be written, are converted to floats.
TEST(Quantize, ReadsEveryBlockType) {
  TempFolder folder;
  std::mt19937 random(3);
  for (const QuantInfo& quant : kQuants) {
    const DType type = quant.dtype;
    std::string blocks(static_cast<size_t>(wick::bytes_of(type, 3 * 512)), '\0');
    for (char& c : blocks) c = static_cast<char>(random());
    auto* const bytes = reinterpret_cast<uint8_t*>(blocks.data());
    for (size_t at = 0; at < blocks.size(); at += static_cast<size_t>(info(type).block_bytes)) {
      reference::write_scales(type, bytes + at, static_cast<uint16_t>(0x2400 + random() % 2048),
                              static_cast<uint16_t>(0xa000 + random() % 2048));
    }
    B b;
    b.tensor("blk.0.attn_q.weight", {512, 3}, quant.number, blocks);
    const std::string in = folder.write("in.gguf", b.build()), out = folder.path("out.gguf");
    const QuantizeResult result = quantize_gguf(in, out, DType::f32);
    EXPECT_EQ(result.types.at(0).dtype, DType::f32);
    EXPECT_EQ(bytes_of(*Gguf::open(out), "blk.0.attn_q.weight"),
              B::bytes_of(reference::row_values(type, bytes, 3 * 512)))
        << name(type);
    quantize_gguf(in, out, DType::q8_0);
    EXPECT_EQ(Gguf::open(out)->require_tensor("blk.0.attn_q.weight").dtype, DType::q8_0);
    EXPECT_EQ(Gguf::open(in)->require_tensor("blk.0.attn_q.weight").dtype, type);
  }
}

TEST(Quantize, ChoosesTypesAsUsersExpect) {
  TempFolder folder;
  B b;
  const auto f32s = [](size_t n) { return B::bytes_of(weights(n, 1)); };
  b.tensor("token_embd.weight", {64, 4}, 0, f32s(256));
  b.tensor("output.weight", {64, 4}, 0, f32s(256));
  b.tensor("blk.0.attn_q_norm.weight", {32, 2}, 0, f32s(64));
  b.tensor("blk.0.attn_q.bias", {64}, 1, std::string(128, '\0'));
  b.tensor("blk.0.ffn_gate_inp.weight", {64, 2}, 0, f32s(128));
  b.tensor("blk.0.ffn_up_exps.weight", {64, 2, 2}, 0, f32s(256));
  b.tensor("blk.0.odd.weight", {33, 2}, 0, f32s(66));
  const std::string in = folder.write("in.gguf", b.build());
  const QuantizeResult result = quantize_gguf(in, folder.path("out.gguf"), DType::q4_0);
  const auto f = Gguf::open(folder.path("out.gguf"));
  const auto type = [&](const char* name) { return f->require_tensor(name).dtype; };
  EXPECT_EQ(type("token_embd.weight"), DType::q4_0);  // not tied
  EXPECT_EQ(type("output.weight"), DType::q8_0);
  EXPECT_EQ(type("blk.0.attn_q_norm.weight"), DType::f32);
  EXPECT_EQ(type("blk.0.attn_q.bias"), DType::f32);
  EXPECT_EQ(type("blk.0.ffn_gate_inp.weight"), DType::f32);
  EXPECT_EQ(type("blk.0.ffn_up_exps.weight"), DType::q4_0);
  EXPECT_EQ(type("blk.0.odd.weight"), DType::f16);
  EXPECT_THAT(result.notes,
              ElementsAre("blk.0.odd.weight f32[2,33] becomes f16: its rows of 33 are not a "
                          "multiple of 32"));
  ASSERT_EQ(result.types.size(), 4u);
  EXPECT_EQ(result.types[0].dtype, DType::q4_0);
  EXPECT_EQ(result.types[0].tensors, 2u);
  EXPECT_EQ(result.types[0].bytes, 288u);
}

/// Weights whose rows aren't whole superblocks use the fallback type, which has smaller blocks.
TEST(Quantize, SuperblocksThatDontFit) {
  TempFolder folder;
  B b;
  const auto f32s = [](size_t n) { return B::bytes_of(weights(n, 1)); };
  b.tensor("token_embd.weight", {96, 4}, 0, f32s(384));
  b.tensor("blk.0.attn_q.weight", {256, 2}, 0, f32s(512));
  b.tensor("blk.0.attn_k.weight", {288, 2}, 0, f32s(576));
  b.tensor("blk.0.odd.weight", {33, 2}, 0, f32s(66));
  const std::string in = folder.write("in.gguf", b.build());
  const auto types = [&](DType to, std::vector<std::string>* notes) {
    *notes = quantize_gguf(in, folder.path("out.gguf"), to).notes;
    const auto f = Gguf::open(folder.path("out.gguf"));
    std::vector<DType> found;
    for (const GgufTensor& t : f->tensors()) found.push_back(*t.dtype);
    return found;
  };
  std::vector<std::string> notes;
  EXPECT_THAT(types(DType::q4_k, &notes),
              ElementsAre(DType::q8_0, DType::q4_k, DType::q5_0, DType::f16));
  EXPECT_THAT(
      notes,
      ElementsAre(
          "token_embd.weight f32[4,96] becomes q8_0: its rows of 96 are not a multiple of 256",
          "blk.0.attn_k.weight f32[2,288] becomes q5_0: its rows of 288 are not a multiple of 256",
          "blk.0.odd.weight f32[2,33] becomes f16: its rows of 33 are not a multiple of 256"));
  EXPECT_THAT(types(DType::q6_k, &notes),
              ElementsAre(DType::q8_0, DType::q6_k, DType::q8_0, DType::f16));
  EXPECT_EQ(notes.size(), 3u);
}

TEST(Quantize, LargeTensorsGoInPieces) {
  TempFolder folder;
  B b;
  const auto values = weights(1024 * 3000, 1);
  b.tensor("blk.0.big.weight", {1024, 3000}, 0, B::bytes_of(values));
  const std::string in = folder.write("in.gguf", b.build());
  size_t calls = 0;
  uint64_t last = 0;
  quantize_gguf(in, folder.path("out.gguf"), DType::q8_0, [&](const QuantizeProgress& p) {
    ++calls;
    EXPECT_EQ(p.tensor, "blk.0.big.weight");
    EXPECT_GE(p.done_bytes, last);
    last = p.done_bytes;
    EXPECT_EQ(p.total_bytes, values.size() * 4);
    return true;
  });
  EXPECT_GE(calls, 3u);
  EXPECT_EQ(last, values.size() * 4);
  EXPECT_EQ(bytes_of(*Gguf::open(folder.path("out.gguf")), "blk.0.big.weight"),
            encode(DType::q8_0, values));
}

TEST(Quantize, Errors) {
  TempFolder folder;
  const std::string in = folder.write("in.gguf", model(kTypes[0]).build());
  const std::string out = folder.path("out.gguf");
  const auto error = [&](const std::string& from, const std::string& to, DType type,
                         const QuantizeProgressFn& progress = {}) {
    return error_of([&] { quantize_gguf(from, to, type, progress); });
  };
  EXPECT_EQ(error(in, in, DType::f16), "quantize: input and output are the same file: " + in);
  EXPECT_THAT(error(in, folder.path("./in.gguf"), DType::f16), HasSubstr("the same file"));
  EXPECT_EQ(error(in, out, DType::q8_k),
            "quantize: can't convert to this type: q8_k: use " + names(dtypes::kWeightFiles));
  EXPECT_THAT(error(folder.path("none"), out, DType::f16), HasSubstr("No such file"));
  EXPECT_THAT(error(in, "/no/such/folder/out.gguf", DType::f16), HasSubstr("cannot write"));
  EXPECT_EQ(error(in, out, DType::q8_0, [](const QuantizeProgress&) { return false; }),
            "quantize: stopped");

  for (const auto& [type, says] :
       {std::pair("session", "a saved session"), std::pair("imatrix", "an importance matrix")}) {
    B other;
    other.string("general.type", type);
    EXPECT_THAT(error(folder.write("other", other.build()), out, DType::f16),
                testing::EndsWith(std::string("other: not a model: it is ") + says));
  }
  B split;
  split.key("split.count", 2, B::raw<uint16_t>(3));
  EXPECT_THAT(error(folder.write("split", split.build()), out, DType::f16),
              HasSubstr("one part of a split model"));
  B unknown;
  unknown.tensor("a.weight", {256, 1}, 24, std::string(256, '\0'));
  EXPECT_THAT(error(folder.write("u", unknown.build()), out, DType::f16),
              HasSubstr("type that wick doesn't read"));

  EXPECT_THAT(folder.list(), testing::UnorderedElementsAre("in.gguf", "other", "split", "u"));
}

/// Dtypes of the options that can't be written are errors, before anything is written.
TEST(Quantize, TypesThatCantBeWritten) {
  TempFolder folder;
  const auto in = Gguf::open(folder.write("in.gguf", model(kTypes[0]).build()));
  for (const DType bad : {DType::q8_1, DType::q8_k, DType::i32, DType::f64, DType::boolean}) {
    SCOPED_TRACE(name(bad));
    const QuantizeOptions of_tensors{.type = *file_type_of(DType::q4_0),
                                     .tensor_types = {{"attn_q", bad}}};
    const QuantizeOptions of_output{.type = *file_type_of(DType::q4_0), .output_type = bad};
    const QuantizeOptions of_embedding{.type = *file_type_of(DType::q4_0), .embedding_type = bad};
    const QuantizeOptions of_all{.type = {"x", bad, 0}};
    for (const QuantizeOptions& options : {of_tensors, of_output, of_embedding, of_all}) {
      EXPECT_EQ(error_of([&] { quantize_gguf(*in, folder.path("out.gguf"), options); }),
                "quantize: can't convert to this type: " + std::string(name(bad)) + ": use " +
                    names(dtypes::kWeightFiles));
    }
  }
  EXPECT_THAT(folder.list(), ElementsAre("in.gguf"));
}

/// Values that aren't finite are counted where they are kept: in tensors that become f32 or are
/// copied.
TEST(Quantize, TellsOfPatternsThatNoWeightGets) {
  TempFolder folder;
  B b = model(kTypes[0]);
  const auto in = Gguf::open(folder.write("in.gguf", b.build()));
  QuantizeOptions options{.type = *file_type_of(DType::q8_0),
                          .tensor_types = {{"attn_q", DType::q4_0},
                                           {"none", DType::q4_0},
                                           {"blk.*attn", DType::q5_0},
                                           {"_norm", DType::q4_0}}};
  EXPECT_THAT(quantize_gguf(*in, folder.path("out.gguf"), options).unused_patterns,
              ElementsAre("none", "blk.*attn", "_norm"));
  options.type = *file_type_of(DType::f32);
  EXPECT_THAT(quantize_gguf(*in, folder.path("out.gguf"), options).unused_patterns,
              ElementsAre("none", "blk.*attn", "_norm"));
}

TEST(Quantize, CountsValuesThatArentFinite) {
  TempFolder folder;
  std::vector<float> values = weights(512, 1), norm = weights(64, 2);
  values[37] = NAN;
  values[400] = -INFINITY;
  norm[3] = INFINITY;
  B b;
  b.tensor("a.weight", {256, 2}, 0, B::bytes_of(values));
  b.tensor("a_norm.weight", {64}, 0, B::bytes_of(norm));
  b.tensor("b.weight", {256, 2}, 0, B::bytes_of(weights(512, 1)));
  const std::string in = folder.write("in.gguf", b.build());
  const QuantizeResult result = quantize_gguf(in, folder.path("out.gguf"), DType::f32);
  ASSERT_EQ(result.not_finite.size(), 2u);
  EXPECT_EQ(result.not_finite[0].tensor, "a.weight");
  EXPECT_EQ(result.not_finite[0].values, 2u);
  EXPECT_EQ(result.not_finite[1].tensor, "a_norm.weight");
  EXPECT_EQ(result.not_finite[1].values, 1u);

  B blocks;
  std::string q8(2 * 34 * 8, '\1');
  q8[0] = '\0';
  q8[1] = '\x7c';  // the first scale is infinite
  blocks.tensor("a.weight", {256, 2}, 8, q8);
  const QuantizeResult copied =
      quantize_gguf(folder.write("q8.gguf", blocks.build()), folder.path("out.gguf"), DType::q8_0);
  ASSERT_EQ(copied.not_finite.size(), 1u);
  EXPECT_EQ(copied.not_finite[0].values, 32u);
}

TEST(Quantize, ValuesThatDontFitAreErrors) {
  TempFolder folder;
  const auto error = [&](float value, DType type) {
    std::vector<float> values = weights(512, 1);
    values[37] = value;
    B b;
    b.tensor("a.weight", {256, 2}, 0, B::bytes_of(values));
    const std::string in = folder.write("in.gguf", b.build());
    return error_of([&] { quantize_gguf(in, folder.path("out.gguf"), type); });
  };
  for (const Type& type : kTypes) {
    const bool to_f32 = type.dtype == DType::f32;
    EXPECT_EQ(error(NAN, type.dtype).empty(), to_f32) << name(type.dtype);
    EXPECT_EQ(error(INFINITY, type.dtype).empty(), to_f32) << name(type.dtype);
    if (type.dtype == DType::nvfp4) continue;  // its scales end at 448
    EXPECT_EQ(error(60000.0f, type.dtype), "") << name(type.dtype);
  }
  EXPECT_EQ(error(-70000.0f, DType::f16),
            "quantize: value doesn't fit in f16: a.weight f32[2,256], 70000: magnitudes must be "
            "below 65520");
  EXPECT_EQ(error(70000.0f, DType::bf16), "");
  EXPECT_EQ(error(70000.0f, DType::q4_0), "");
  EXPECT_NE(error(6e5f, DType::q4_0), "");
  EXPECT_NE(error(70000.0f, DType::q4_1), "");
  EXPECT_EQ(error(1e6f, DType::q5_0), "");
  EXPECT_NE(error(2e6f, DType::q5_0), "");
  EXPECT_NE(error(70000.0f, DType::q5_1), "");
  EXPECT_EQ(error(2e6f, DType::q4_k), "");
  EXPECT_NE(error(3e6f, DType::q4_k), "");
  EXPECT_EQ(error(1e8f, DType::q6_k), "");
  EXPECT_NE(error(2e8f, DType::q6_k), "");
  EXPECT_EQ(error(8e6f, DType::q8_0), "");
  EXPECT_NE(error(9e6f, DType::q8_0), "");
  EXPECT_EQ(error(5e5f, DType::q2_k), "");
  EXPECT_NE(error(6e5f, DType::q2_k), "");
  EXPECT_EQ(error(4e6f, DType::q3_k), "");
  EXPECT_NE(error(5e6f, DType::q3_k), "");
  EXPECT_EQ(error(2e6f, DType::q5_k), "");
  EXPECT_NE(error(3e6f, DType::q5_k), "");
  EXPECT_EQ(error(4e6f, DType::iq4_nl), "");
  EXPECT_NE(error(5e6f, DType::iq4_nl), "");
  EXPECT_EQ(error(6e7f, DType::iq4_xs), "");
  EXPECT_NE(error(7e7f, DType::iq4_xs), "");
  EXPECT_EQ(error(8e6f, DType::iq3_s), "");
  EXPECT_NE(error(2e7f, DType::iq3_s), "");
  EXPECT_EQ(error(2783.0f, DType::nvfp4), "");
  EXPECT_NE(error(2784.0f, DType::nvfp4), "");
  for (const DType type : {DType::tq1_0, DType::tq2_0, DType::q1_0, DType::q2_0}) {
    EXPECT_NE(error(70000.0f, type), "");
  }
  EXPECT_EQ(error(0x1.ffp126f, DType::mxfp4), "");
  EXPECT_NE(error(0x1p127f, DType::mxfp4), "");
}

}  // namespace
}  // namespace wick::io::test
