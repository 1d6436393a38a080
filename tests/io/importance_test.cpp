// Importance matrices: files in both formats, bad files, and what they change in quantized files;
// and the dtypes that mixtures give.
#include "wick/io/importance.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/backend/block_reference.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"
#include "wick/io/convert.h"
#include "wick/io/gguf.h"

namespace wick::io::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using B = GgufBuilder;

std::string failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

std::string i32(int32_t value) { return B::raw(value); }
std::string legacy_text(const std::string& text) {
  return i32(static_cast<int32_t>(text.size())) + text;
}

std::vector<float> waves(size_t count, float seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(i);
    values[i] = std::sin(x * 0.7f + seed) * std::exp(std::sin(x * 1.3f));
  }
  return values;
}

TEST(Importance, IsSavedAndLoaded) {
  const TempFolder folder;
  Importance made;
  made.entries["blk.0.attn_q.weight"] = {{1, 2, 3, 4}, {8}};
  made.entries["blk.0.ffn_up_exps.weight"] = {{1, 2, 3, 4, 5, 6}, {2, 0, 4}};
  made.datasets = {"text.txt"};
  made.chunk_count = 3;
  made.chunk_size = 512;
  made.save(folder.path("m.gguf"));

  // The names and shapes that llama.cpp reads.
  const auto file = Gguf::open(folder.path("m.gguf"));
  EXPECT_EQ(file->get_string("general.type"), "imatrix");
  EXPECT_THAT(file->get_strings("imatrix.datasets"), ElementsAre("text.txt"));
  EXPECT_EQ(file->get_u32("imatrix.chunk_count"), 3u);
  EXPECT_EQ(file->get_u32("imatrix.chunk_size"), 512u);
  EXPECT_EQ(file->require_tensor("blk.0.attn_q.weight.in_sum2").shape, (Shape{1, 4}));
  EXPECT_EQ(file->require_tensor("blk.0.attn_q.weight.counts").shape, (Shape{1, 1}));
  EXPECT_EQ(file->require_tensor("blk.0.ffn_up_exps.weight.in_sum2").shape, (Shape{3, 2}));
  EXPECT_EQ(file->require_tensor("blk.0.ffn_up_exps.weight.counts").shape, (Shape{3, 1}));
  EXPECT_EQ(file->tensors().size(), 4u);

  const Importance read = Importance::load(folder.path("m.gguf"));
  ASSERT_EQ(read.entries.size(), 2u);
  EXPECT_THAT(read.entries.at("blk.0.ffn_up_exps.weight").sums, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(read.entries.at("blk.0.ffn_up_exps.weight").counts, ElementsAre(2, 0, 4));
  EXPECT_THAT(read.datasets, ElementsAre("text.txt"));
  EXPECT_EQ(read.chunk_count, 3u);

  GgufTensor weight;
  weight.name = "blk.0.ffn_up_exps.weight";
  weight.shape = {3, 5, 2};
  EXPECT_THAT(read.mean_squares(weight), ElementsAre(0.5f, 1.0f, 0.0f, 0.0f, 1.25f, 1.5f));
  weight.name = "blk.1.ffn_up_exps.weight";
  EXPECT_THAT(read.mean_squares(weight), IsEmpty());
}

TEST(Importance, ReadsTheOlderFormat) {
  const TempFolder folder;
  const std::string entry = legacy_text("blk.0.attn_q.weight") + i32(4) + i32(2) +
                            B::bytes_of(std::vector<float>{2.0f, 8.0f});
  const std::string whole = i32(1) + entry + i32(7) + legacy_text("old.txt");
  const Importance read = Importance::load(folder.write("m.dat", whole));
  EXPECT_THAT(read.entries.at("blk.0.attn_q.weight").sums, ElementsAre(2.0f, 8.0f));
  EXPECT_THAT(read.entries.at("blk.0.attn_q.weight").counts, ElementsAre(4.0f));
  EXPECT_EQ(read.chunk_count, 7u);
  EXPECT_THAT(read.datasets, ElementsAre("old.txt"));
  // The end may be missing.
  EXPECT_EQ(Importance::load(folder.write("m.dat", i32(1) + entry)).entries.size(), 1u);
  for (size_t size = 1; size < whole.size(); ++size) {
    const std::string path = folder.write("cut.dat", whole.substr(0, size));
    const bool complete = size == 4 + entry.size() || size == 8 + entry.size();
    if (complete) continue;
    EXPECT_NE(failure([&] { Importance::load(path); }), "") << size;
  }
}

TEST(Importance, BadFiles) {
  const TempFolder folder;
  const auto error = [&](const std::string& bytes) {
    return failure([&] { Importance::load(folder.write("bad", bytes)); });
  };
  const auto gguf = [&](const std::vector<float>& sums, const std::vector<float>& counts) {
    B b;
    b.tensor("a.in_sum2", {sums.size()}, 0, B::bytes_of(sums));
    b.tensor("a.counts", {counts.size()}, 0, B::bytes_of(counts));
    return b.build();
  };
  EXPECT_EQ(error(gguf({1, 2}, {1})), "");
  EXPECT_THAT(error(gguf({1, 2, 3}, {1, 1})),
              HasSubstr("sums and counts don't fit together: a: 3"));
  EXPECT_THAT(error(gguf({1, NAN}, {1})), HasSubstr("isn't a number of at least 0: a: nan"));
  EXPECT_THAT(error(gguf({1, 2}, {-1})), HasSubstr("isn't a number of at least 0: a: -1"));
  B no_counts, half, model;
  no_counts.tensor("a.in_sum2", {1}, 0, B::bytes_of(std::vector<float>{1}));
  EXPECT_THAT(error(no_counts.build()), HasSubstr("sums without counts: a"));
  half.tensor("a.in_sum2", {2}, 1, std::string(4, '\0'));
  half.tensor("a.counts", {1}, 0, std::string(4, '\0'));
  EXPECT_THAT(error(half.build()), HasSubstr("must be f32"));
  model.tensor("a.weight", {1}, 0, std::string(4, '\0'));
  EXPECT_THAT(error(model.build()), HasSubstr("not an importance matrix"));
  EXPECT_THAT(
      error("some text that isn't a file of sums"),
      HasSubstr("not an importance matrix: it is neither a GGUF file nor in llama.cpp's older"));
  EXPECT_NE(error(""), "");
  EXPECT_THAT(failure([&] { Importance::load(folder.path("none")); }), HasSubstr("No such file"));
}

struct Model {
  TempFolder folder;
  std::string path;
  std::vector<float> dense = waves(256 * 8, 1), experts = waves(3 * 4 * 256, 2);
  Model() {
    B b;
    b.string("general.architecture", "llama");
    b.tensor("token_embd.weight", {256, 8}, 0, B::bytes_of(dense));
    b.tensor("blk.0.attn_q.weight", {256, 8}, 0, B::bytes_of(dense));
    b.tensor("blk.0.ffn_up_exps.weight", {256, 4, 3}, 0, B::bytes_of(experts));
    path = folder.write("in.gguf", b.build());
  }
  /// Data with which all columns count alike.
  static Importance all_alike() {
    Importance importance;
    importance.entries["blk.0.attn_q.weight"] = {std::vector<float>(256, 1), {1}};
    importance.entries["blk.0.ffn_up_exps.weight"] = {std::vector<float>(3 * 256, 1), {1, 1, 1}};
    return importance;
  }
  QuantizeResult quantize(DType type, const Importance* importance) const {
    return quantize_gguf(*Gguf::open(path), folder.path("out.gguf"),
                         {.type = *file_type_of(type), .importance = importance});
  }
  std::vector<float> values(const char* tensor) const {
    const auto file = Gguf::open(folder.path("out.gguf"));
    const GgufTensor& t = file->require_tensor(tensor);
    return reference::row_values(*t.dtype, reinterpret_cast<const uint8_t*>(file->data(t).data()),
                                 t.shape.elems());
  }
};

bool needs_importance(DType type) {
  return DTypeSet::of(DType::iq1_s, DType::iq1_m, DType::iq2_xxs, DType::iq2_xs, DType::iq2_s,
                      DType::iq3_xxs)
      .contains(type);
}

double weighted_error(const std::vector<float>& x, const std::vector<float>& y,
                      const std::vector<float>& w, size_t rows_of_matrix) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t matrix = i / 256 / rows_of_matrix, column = i % 256;
    const size_t at = w.size() == 256 ? column : matrix * 256 + column;
    sum += double{w[at]} * std::pow(double{x[i]} - double{y[i]}, 2);
  }
  return sum;
}

TEST(Importance, LowersTheErrorsOfColumnsThatMatter) {
  const Model model;
  Importance importance;
  std::vector<float> columns(256), of_experts(3 * 256);
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = i % 8 == 3 ? 100.0f : 1.0f;
  for (size_t i = 0; i < of_experts.size(); ++i) {
    of_experts[i] = i % 8 == i / 256 ? 100.0f : 1.0f;  // other columns for each expert
  }
  importance.entries["blk.0.attn_q.weight"] = {columns, {1}};
  importance.entries["blk.0.ffn_up_exps.weight"] = {of_experts, {1, 1, 1}};
  const Importance alike = model.all_alike();
  for (const DType type :
       {DType::q4_0,  DType::q4_1,  DType::q5_0,    DType::q5_1,   DType::q2_k,   DType::q3_k,
        DType::q4_k,  DType::q5_k,  DType::q6_k,    DType::iq4_nl, DType::iq4_xs, DType::mxfp4,
        DType::iq1_s, DType::iq1_m, DType::iq2_xxs, DType::iq2_xs, DType::iq2_s,  DType::iq3_xxs,
        DType::iq3_s, DType::tq1_0, DType::tq2_0,   DType::nvfp4,  DType::q1_0,   DType::q2_0}) {
    SCOPED_TRACE(name(type));
    const bool needed = needs_importance(type);
    QuantizeResult result = model.quantize(type, needed ? &alike : nullptr);
    EXPECT_THAT(result.without_importance, IsEmpty());
    EXPECT_EQ(Gguf::open(model.folder.path("out.gguf"))->contains("quantize.imatrix.file"), needed);
    const double plain =
        weighted_error(model.dense, model.values("blk.0.attn_q.weight"), columns, 8);
    const double plain_experts =
        weighted_error(model.experts, model.values("blk.0.ffn_up_exps.weight"), of_experts, 4);
    result = model.quantize(type, &importance);
    EXPECT_THAT(result.without_importance, IsEmpty());
    EXPECT_THAT(result.partial_importance, IsEmpty());
    EXPECT_LT(weighted_error(model.dense, model.values("blk.0.attn_q.weight"), columns, 8), plain);
    EXPECT_LT(
        weighted_error(model.experts, model.values("blk.0.ffn_up_exps.weight"), of_experts, 4),
        plain_experts);
    EXPECT_TRUE(Gguf::open(model.folder.path("out.gguf"))->contains("quantize.imatrix.file"));
  }
}

TEST(Importance, IsNeededByTypesOfFewBits) {
  const Model model;
  for (const FileType& type : file_types()) {
    if (!needs_importance(type.dtype)) continue;
    const auto refused = [&](const QuantizeOptions& options) {
      return failure(
          [&] { quantize_gguf(*Gguf::open(model.path), model.folder.path("out.gguf"), options); });
    };
    EXPECT_EQ(
        refused({.type = type}),
        fmt::format("quantize: {} needs an importance matrix: blk.0.attn_q.weight f32[8,256]: "
                    "make one with wick imatrix, and give it with --imatrix",
                    name(type.mix == FileType::Mix::iq3_xxs ? DType::iq2_s : type.dtype)));
    EXPECT_THAT(refused({.type = *file_type_of(DType::q8_0), .tensor_types = {{"up", type.dtype}}}),
                HasSubstr("needs an importance matrix: blk.0.ffn_up_exps.weight"));
    // Tables and the output matrix have no data, so they don't need it.
    EXPECT_EQ(refused({.type = *file_type_of(DType::q8_0), .output_type = type.dtype}), "");
  }
}

TEST(Importance, WeightsWithoutData) {
  const Model model;
  Importance importance;
  std::vector<float> sums(3 * 256, 1.0f);
  std::fill(sums.begin() + 256, sums.begin() + 512, 0.0f);
  importance.entries["blk.0.ffn_up_exps.weight"] = {sums, {5, 0, 5}};
  const QuantizeResult result = model.quantize(DType::q4_k, &importance);
  EXPECT_THAT(result.without_importance, ElementsAre("blk.0.attn_q.weight"));
  EXPECT_THAT(result.partial_importance, ElementsAre("blk.0.ffn_up_exps.weight"));
  // Experts without data are quantised as without a matrix, and so are those with equal columns.
  const std::vector<float> with = model.values("blk.0.ffn_up_exps.weight");
  model.quantize(DType::q4_k, nullptr);
  EXPECT_EQ(with, model.values("blk.0.ffn_up_exps.weight"));
}

TEST(Importance, IsNotOverwritten) {
  const Model model;
  Importance importance;
  importance.entries["blk.0.attn_q.weight"] = {std::vector<float>(256, 1), {1}};
  const std::string out = model.folder.path("out.gguf"), other = model.folder.path("other.gguf");
  importance.save(out);
  std::filesystem::create_hard_link(out, other);
  for (const std::string& path : {out, other}) {
    importance.path = path;
    EXPECT_EQ(failure([&] { model.quantize(DType::q4_k, &importance); }),
              "quantize: input and output are the same file: " +
                  (path == out ? out : path + " and " + out));
  }
}

/// Entries whose sums are all 0 count as missing. With some matrices of 0, experts are partial.
TEST(Importance, SumsOfZero) {
  const Model model;
  Importance importance;
  importance.entries["blk.0.attn_q.weight"] = {std::vector<float>(256, 0.0f), {3}};
  importance.entries["blk.0.ffn_up_exps.weight"] = {std::vector<float>(3 * 256, 0.0f), {0, 0, 0}};
  QuantizeResult result = model.quantize(DType::q4_0, &importance);
  EXPECT_THAT(result.without_importance,
              ElementsAre("blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight"));
  EXPECT_THAT(result.partial_importance, IsEmpty());
  // The blocks are those of the op `quantize`.
  const std::vector<float> with = model.values("blk.0.attn_q.weight");
  model.quantize(DType::q4_0, nullptr);
  EXPECT_EQ(with, model.values("blk.0.attn_q.weight"));
  importance.entries["blk.0.ffn_up_exps.weight"].sums[0] = 1;
  importance.entries["blk.0.ffn_up_exps.weight"].counts[0] = 1;
  result = model.quantize(DType::q4_k, &importance);
  EXPECT_THAT(result.without_importance, ElementsAre("blk.0.attn_q.weight"));
  EXPECT_THAT(result.partial_importance, ElementsAre("blk.0.ffn_up_exps.weight"));
}

TEST(Importance, WrongEntries) {
  const Model model;
  GgufTensor weight;
  weight.name = "blk.0.attn_q.weight";
  weight.shape = {8, 256};
  const std::vector<float> sums(256, 1.0f);
  std::vector<float> nan = sums;
  nan[3] = NAN;
  for (const Importance::Entry& entry :
       {Importance::Entry{sums, {}}, Importance::Entry{{}, {1}}, Importance::Entry{{}, {}},
        Importance::Entry{sums, {1, 1, 1}}, Importance::Entry{nan, {1}},
        Importance::Entry{sums, {-1}}}) {
    Importance importance;
    importance.entries["blk.0.attn_q.weight"] = entry;
    const auto rule = entry.sums.size() == 256 && entry.counts.size() == 1
                          ? HasSubstr("isn't a number of at least 0: blk.0.attn_q.weight")
                          : HasSubstr("sums and counts don't fit together: blk.0.attn_q.weight");
    EXPECT_THAT(failure([&] { importance.save(model.folder.path("m.gguf")); }), rule);
    EXPECT_THAT(failure([&] { importance.mean_squares(weight); }), rule);
    EXPECT_THAT(failure([&] { importance.require_fits(*Gguf::open(model.path)); }), rule);
    EXPECT_THAT(failure([&] { model.quantize(DType::q4_k, &importance); }), rule);
  }
  EXPECT_THAT(model.folder.list(), ElementsAre("in.gguf"));
}

TEST(Importance, OfAnotherModel) {
  const Model model;
  const auto error = [&](const char* name, size_t sums, size_t counts) {
    Importance importance;
    importance.path = "m.gguf";
    importance.entries[name] = {std::vector<float>(sums, 1), std::vector<float>(counts, 1)};
    return failure([&] { model.quantize(DType::q4_k, &importance); });
  };
  EXPECT_EQ(error("blk.0.attn_q.weight", 256, 1), "");
  EXPECT_EQ(error("blk.0.ffn_up_exps.weight", 256, 1), "");
  EXPECT_EQ(error("blk.0.ffn_up_exps.weight", 768, 1), "");
  EXPECT_EQ(error("blk.0.attn_q.weight", 512, 1),
            "m.gguf: importance matrix of another model: blk.0.attn_q.weight: 512 sums of 1 "
            "matrices for f32[8,256]");
  EXPECT_THAT(error("blk.0.ffn_up_exps.weight", 512, 2), HasSubstr("of another model"));
  EXPECT_THAT(error("blk.0.ffn_up_exps.weight", 256, 2), HasSubstr("of another model"));
  EXPECT_THAT(error("blk.7.attn_q.weight", 256, 1),
              HasSubstr("of another model: 1 entries: none has the name of a weight in "));
  EXPECT_THAT(model.folder.list(), testing::Contains("in.gguf"));
}

// ---- Mixtures ----

/// A model of `layers` layers with one of each weight.
/// kv_heads: 0 leaves the key out.
std::string mixed_model(uint32_t layers, uint32_t heads, uint32_t kv_heads, uint32_t experts) {
  B b;
  b.string("general.architecture", "llama");
  b.key("llama.block_count", 4, B::raw(layers));
  b.key("llama.attention.head_count", 4, B::raw(heads));
  if (kv_heads > 0) b.key("llama.attention.head_count_kv", 4, B::raw(kv_heads));
  if (experts > 0) b.key("llama.expert_count", 4, B::raw(experts));
  const std::string zeros(256 * 4, '\0');
  b.tensor("token_embd.weight", {256, 1}, 0, zeros);
  b.tensor("output.weight", {256, 1}, 0, zeros);
  for (uint32_t i = 0; i < layers; ++i) {
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up"}) {
      b.tensor("blk." + std::to_string(i) + "." + name + ".weight", {256, 1}, 0, zeros);
    }
    const std::string down = experts > 0 ? "ffn_down_exps" : "ffn_down";
    b.tensor("blk." + std::to_string(i) + "." + down + ".weight", {256, 1, 2}, 0, zeros + zeros);
  }
  return b.build();
}

/// The letter of a dtype: 2 to 6 and 8 for q2_k … q8_0, x: iq4_xs, m: mxfp4, t: tq1_0, a: iq1_s,
/// b: iq2_xxs, c: iq2_xs, d: iq2_s, e: iq3_xxs, f: iq3_s.
char letter_of(DType dtype) {
  switch (dtype) {
    case DType::iq4_xs:
      return 'x';
    case DType::mxfp4:
      return 'm';
    case DType::tq1_0:
      return 't';
    case DType::iq1_s:
      return 'a';
    case DType::iq2_xxs:
      return 'b';
    case DType::iq2_xs:
      return 'c';
    case DType::iq2_s:
      return 'd';
    case DType::iq3_xxs:
      return 'e';
    case DType::iq3_s:
      return 'f';
    default:
      return name(dtype)[1];
  }
}

/// The dtypes of a weight in all layers, as letters.
std::string types_of(const ModelFile& model, const FileType& type, const std::string& weight,
                     bool importance = false) {
  const Mixture mixture(model, type, importance);
  std::string letters;
  for (int i = 0;; ++i) {
    const GgufTensor* const t =
        model.find_tensor("blk." + std::to_string(i) + "." + weight + ".weight");
    if (t == nullptr) return letters;
    letters += letter_of(mixture.dtype_of(*t));
  }
}

TEST(Mixtures, GiveMoreBitsToSomeWeights) {
  const TempFolder folder;
  const auto model = Gguf::open(folder.write("m.gguf", mixed_model(16, 8, 8, 0)));
  struct Case {
    const char *type, *value, *down, *output;
  };
  // The first and last eighth of 16 layers are 0, 1 and 14, 15; between them every third: 4, 7, ….
  for (const Case& c : {
           Case{"q2_k", "3333333333333333", "3333333333333333", "3333333333333333"},
           Case{"q2_k_s", "2222222222222222", "4422222222222222", "2222222222222222"},
           Case{"q3_k_s", "3333333333333333", "3333333333333333", "3333333333333333"},
           Case{"q3_k_m", "5544444444444444", "5444444444444444", "4444444444444444"},
           Case{"q3_k_l", "5555555555555555", "5555555555555555", "5555555555555555"},
           Case{"q4_k_s", "5555444444444444", "5544444444444444", "4444444444444444"},
           Case{"q4_k_m", "6644644644644666", "6644644644644666", "4444444444444444"},
           Case{"q5_k_s", "5555555555555555", "5555555555555555", "5555555555555555"},
           Case{"q5_k_m", "6655655655655666", "6655655655655666", "5555555555555555"},
           Case{"q6_k", "6666666666666666", "6666666666666666", "6666666666666666"},
           Case{"q4_k", "4444444444444444", "4444444444444444", "4444444444444444"},
           Case{"iq4_xs", "xxxxxxxxxxxxxxxx", "55xxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxx"},
           Case{"mxfp4", "8888888888888888", "8888888888888888", "8888888888888888"},
       }) {
    SCOPED_TRACE(c.type);
    const FileType type = *find_file_type(c.type);
    EXPECT_EQ(types_of(*model, type, "attn_v"), c.value);
    EXPECT_EQ(types_of(*model, type, "ffn_down"), c.down);
    EXPECT_EQ(types_of(*model, type, "attn_output"), c.output);
    const std::string plain = types_of(*model, type, "ffn_up");
    EXPECT_EQ(plain, types_of(*model, type, "attn_q"));
    EXPECT_EQ(plain, std::string(16, type.dtype == DType::mxfp4 ? '8' : letter_of(type.dtype)));
    const Mixture mixture(*model, type, false);
    EXPECT_EQ(mixture.dtype_of(model->require_tensor("output.weight")),
              type.dtype == DType::mxfp4 ? DType::q8_0 : DType::q6_k);
  }
  EXPECT_EQ(types_of(*model, *find_file_type("iq4_xs"), "ffn_down", true), std::string(16, 'x'));
}

TEST(Mixtures, OfOneToThreeBits) {
  const TempFolder folder;
  const auto model = Gguf::open(folder.write("m.gguf", mixed_model(16, 8, 8, 0)));
  const auto all = [](char letter) { return std::string(16, letter); };
  struct Case {
    const char* type;
    std::string value, key, up, down, attention_output;
    DType table, logits;
  };
  // With an importance matrix.
  for (const Case& c : {
           Case{"iq1_s", all('2'), all('a'), all('a'), "22aaaaaaaaaaaaaa", all('b'), DType::q2_k,
                DType::q5_k},
           Case{"iq2_xxs", all('2'), all('b'), all('b'), "22bbbbbbbbbbbbbb", all('b'), DType::q2_k,
                DType::q5_k},
           Case{"iq2_xs", all('2'), all('c'), all('c'), "22cccccccccccccc", all('c'), DType::q2_k,
                DType::q5_k},
           Case{"iq2_s", all('f'), all('c'), all('c'), "ffcccccccccccccc", all('f'), DType::iq3_s,
                DType::q5_k},
           Case{"iq2_m", all('f'), all('d'), all('d'), "ffdddddddddddddd", all('f'), DType::iq3_s,
                DType::q5_k},
           Case{"iq3_xxs", all('e'), all('d'), all('e'), all('e'), all('f'), DType::iq3_s,
                DType::q5_k},
           Case{"iq3_xs", all('f'), all('e'), "ffeeeeeeeeeeeeff", all('f'), all('f'), DType::iq3_s,
                DType::q6_k},
           Case{"iq3_s", all('f'), all('f'), all('f'), all('f'), all('f'), DType::iq3_s,
                DType::q6_k},
           Case{"iq3_m", all('4'), all('f'), all('f'), "44ffffffffffffff", all('4'), DType::iq3_s,
                DType::q6_k},
           Case{"tq1_0", all('t'), all('t'), all('t'), all('t'), all('t'), DType::q4_k,
                DType::q6_k},
       }) {
    SCOPED_TRACE(c.type);
    const FileType type = *find_file_type(c.type);
    EXPECT_EQ(types_of(*model, type, "attn_v", true), c.value);
    EXPECT_EQ(types_of(*model, type, "attn_k", true), c.key);
    EXPECT_EQ(types_of(*model, type, "attn_q", true), c.key);
    EXPECT_EQ(types_of(*model, type, "ffn_up", true), c.up);
    EXPECT_EQ(types_of(*model, type, "ffn_down", true), c.down);
    EXPECT_EQ(types_of(*model, type, "attn_output", true), c.attention_output);
    const Mixture mixture(*model, type, true);
    EXPECT_EQ(mixture.dtype_of(model->require_tensor("token_embd.weight")), c.table);
    EXPECT_EQ(mixture.dtype_of(model->require_tensor("output.weight")), c.logits);
  }
  const FileType type = *find_file_type("iq3_xxs");
  EXPECT_EQ(types_of(*model, type, "attn_v"), all('f'));
  EXPECT_EQ(types_of(*model, type, "ffn_down"), "44" + std::string(14, '3'));
}

TEST(Mixtures, OfOneToThreeBitsDependOnTheModel) {
  const TempFolder folder;
  const auto shared = Gguf::open(folder.write("s.gguf", mixed_model(8, 8, 2, 0)));
  for (const char* type : {"iq1_s", "iq2_xxs", "iq2_s", "iq3_xxs", "iq3_xs", "iq3_s"}) {
    EXPECT_EQ(types_of(*shared, *find_file_type(type), "attn_v", true), "44444444") << type;
  }
  const auto experts = Gguf::open(folder.write("e.gguf", mixed_model(8, 8, 8, 8)));
  EXPECT_EQ(types_of(*experts, *find_file_type("iq1_s"), "attn_v", true), "44444444");
  EXPECT_EQ(types_of(*experts, *find_file_type("iq1_s"), "attn_k", true), "44444444");
  EXPECT_EQ(types_of(*experts, *find_file_type("iq1_s"), "attn_output", true), "55555555");
  EXPECT_EQ(types_of(*experts, *find_file_type("iq3_s"), "attn_v", true), "88888888");
  EXPECT_EQ(types_of(*experts, *find_file_type("iq3_s"), "attn_output", true), "55555555");
  EXPECT_EQ(types_of(*experts, *find_file_type("iq3_m"), "ffn_down_exps", true), "4ff4ff44");
  EXPECT_EQ(types_of(*experts, *find_file_type("tq1_0"), "attn_k", true), "88888888");
}

TEST(Mixtures, DependOnTheModel) {
  const TempFolder folder;
  const auto shared = Gguf::open(folder.write("s.gguf", mixed_model(8, 8, 2, 0)));
  EXPECT_EQ(types_of(*shared, *find_file_type("q2_k"), "attn_v"), "44444444");
  EXPECT_EQ(types_of(*shared, *find_file_type("iq4_xs"), "attn_v"), "55555555");
  const auto experts = Gguf::open(folder.write("e.gguf", mixed_model(8, 8, 8, 8)));
  EXPECT_EQ(types_of(*experts, *find_file_type("q4_k_m"), "attn_v"), "88888888");
  EXPECT_EQ(types_of(*experts, *find_file_type("q4_k_m"), "attn_k"), "88888888");
  EXPECT_EQ(types_of(*experts, *find_file_type("q4_k_m"), "attn_output"), "55555555");
  EXPECT_EQ(types_of(*experts, *find_file_type("q4_k_m"), "ffn_down_exps"), "64464466");
  EXPECT_EQ(types_of(*experts, *find_file_type("mxfp4"), "ffn_down_exps"), "mmmmmmmm");
  EXPECT_EQ(types_of(*experts, *find_file_type("mxfp4"), "ffn_up"), "88888888");
}

/// Llama models of 80 layers whose queries share values are those of 70B. Without a number of value
/// heads there is one for each query head.
TEST(Mixtures, ModelsOf80Layers) {
  const TempFolder folder;
  const FileType type = *find_file_type("q3_k_m");
  const std::string of_70b(80, '5'), others = "55" + std::string(78, '4');
  const auto values = [&](uint32_t kv_heads) {
    const auto model = Gguf::open(folder.write("m.gguf", mixed_model(80, 8, kv_heads, 0)));
    return types_of(*model, type, "attn_v");
  };
  EXPECT_EQ(values(1), of_70b);
  EXPECT_EQ(values(8), others);
  EXPECT_EQ(values(0), others);
}

TEST(Mixtures, Names) {
  EXPECT_EQ(find_file_type("Q4_K_M")->number, 15u);
  EXPECT_EQ(find_file_type("iq4_xs")->number, 30u);
  EXPECT_EQ(find_file_type("bf16")->dtype, DType::bf16);
  for (const char* no : {"", "q4", "q4_k_l", "q8_k", "q8_1", "i32", "f8e4m3"}) {
    EXPECT_FALSE(find_file_type(no)) << no;
  }
  EXPECT_FALSE(file_type_of(DType::q8_k));
  EXPECT_EQ(file_type_of(DType::q2_k)->mix, FileType::Mix::none);
  EXPECT_EQ(find_file_type("iq2_s")->dtype, DType::iq2_xs);
  EXPECT_EQ(file_type_of(DType::iq2_s)->dtype, DType::iq2_s);
  EXPECT_THAT(file_type_names(), HasSubstr("q3_k_m"));
}

TEST(Mixtures, TypesOfSingleWeights) {
  const TempFolder folder;
  const std::string in = folder.write("m.gguf", mixed_model(2, 8, 8, 0));
  QuantizeOptions options{.type = *find_file_type("q4_k_m")};
  options.tensor_types = {
      {"blk.1*attn_k", DType::q8_0}, {"attn_", DType::q5_k}, {"*", DType::q2_k}};
  options.output_type = DType::f16;
  options.embedding_type = DType::q3_k;
  quantize_gguf(*Gguf::open(in), folder.path("out.gguf"), options);
  auto file = Gguf::open(folder.path("out.gguf"));
  EXPECT_EQ(file->require_tensor("blk.1.attn_k.weight").dtype, DType::q8_0);
  EXPECT_EQ(file->require_tensor("blk.0.attn_k.weight").dtype, DType::q5_k);
  EXPECT_EQ(file->require_tensor("blk.0.ffn_up.weight").dtype, DType::q2_k);
  EXPECT_EQ(file->require_tensor("output.weight").dtype, DType::q2_k);
  options.tensor_types.clear();
  quantize_gguf(*Gguf::open(in), folder.path("out.gguf"), options);
  file = Gguf::open(folder.path("out.gguf"));
  EXPECT_EQ(file->require_tensor("output.weight").dtype, DType::f16);
  EXPECT_EQ(file->require_tensor("token_embd.weight").dtype, DType::q3_k);
}

TEST(Mixtures, TypesOfSingleWeightsInF32) {
  const TempFolder folder;
  const std::string in = folder.write("m.gguf", mixed_model(2, 8, 8, 0));
  const QuantizeOptions options{.type = *find_file_type("f32"),
                                .tensor_types = {{"attn_k", DType::q8_0}},
                                .output_type = DType::f16,
                                .embedding_type = DType::q3_k};
  quantize_gguf(*Gguf::open(in), folder.path("out.gguf"), options);
  const auto file = Gguf::open(folder.path("out.gguf"));
  EXPECT_EQ(file->require_tensor("blk.1.attn_k.weight").dtype, DType::q8_0);
  EXPECT_EQ(file->require_tensor("blk.1.attn_q.weight").dtype, DType::f32);
  EXPECT_EQ(file->require_tensor("output.weight").dtype, DType::f16);
  EXPECT_EQ(file->require_tensor("token_embd.weight").dtype, DType::q3_k);
}

TEST(Mixtures, LayersOfNames) {
  EXPECT_EQ(layer_of("blk.0.attn_v.weight"), 0);
  EXPECT_EQ(layer_of("blk.17."), 17);
  for (const char* none : {"", "blk.", "blk.3", "blk.x.w", "blk.-1.w", "blk.3w.x", "output.weight",
                           "blk.99999999999999999999.w"}) {
    EXPECT_EQ(layer_of(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace wick::io::test
