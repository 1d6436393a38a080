#include "wick/io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"

namespace wick::io::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using B = GgufBuilder;

TEST(Gguf, ReadsEveryMetadataType) {
  const auto f = parse(everything().build());
  EXPECT_EQ(f->version(), 3u);
  EXPECT_EQ(f->alignment(), 32u);
  EXPECT_EQ(f->metadata().size(), 18u);
  EXPECT_EQ(f->get_u32("t.u8"), 200u);
  EXPECT_EQ(f->get_i32("t.i8"), -100);
  EXPECT_EQ(f->get_u32("t.u16"), 60000u);
  EXPECT_EQ(f->get_i64("t.i16"), -30000);
  EXPECT_EQ(f->get_u32("t.u32"), 4000000000u);
  EXPECT_EQ(f->get_i32("t.i32"), -2000000000);
  EXPECT_EQ(f->get_f32("t.f32"), 1.5f);
  EXPECT_TRUE(f->get_bool("t.bool"));
  EXPECT_EQ(f->get_string("t.string"), "h\xc3\xa9llo");
  EXPECT_EQ(f->get_u64("t.u64"), UINT64_MAX);
  EXPECT_EQ(f->get_i64("t.i64"), INT64_MIN);
  EXPECT_EQ(f->find("t.f64")->as_f64(), 1e300);
  EXPECT_EQ(f->get_f32("t.u8"), 200.0f);
  EXPECT_THAT(f->get_i32s("t.i32s"), ElementsAre(1, -2, 3));
  EXPECT_THAT(f->get_f32s("t.f32s"), ElementsAre(0.5f, -1.0f));
  EXPECT_THAT(f->get_f32s("t.i32s"), ElementsAre(1.0f, -2.0f, 3.0f));
  EXPECT_THAT(f->get_strings("t.strings"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(f->get_bools("t.bools"), ElementsAre(true, false));
  EXPECT_TRUE(f->get_u32s("t.empty").empty());
  EXPECT_TRUE(f->get_strings("t.empty").empty());
}

TEST(Gguf, PrintsValues) {
  const auto f = parse(everything().build());
  const auto str = [&](const char* key) { return f->find(key)->str(); };
  EXPECT_EQ(str("t.u64"), "18446744073709551615");
  EXPECT_EQ(str("t.i8"), "-100");
  EXPECT_EQ(str("t.f32"), "1.5");
  EXPECT_EQ(str("t.bool"), "true");
  EXPECT_EQ(str("t.string"), "\"h\xc3\xa9llo\"");
  EXPECT_EQ(str("t.nested"), "[[97, 98], [\"deep\"]]");
  EXPECT_EQ(f->find("t.i32s")->str(2), "[1, -2, … 3 in all]");
  EXPECT_EQ(f->find("t.i32s")->type_str(), "array of i32");
  EXPECT_EQ(f->find("t.u16")->type_str(), "u16");
}

TEST(Gguf, NestedArraysCanBeWalked) {
  const auto f = parse(everything().build());
  const auto inner = f->find("t.nested")->elements();
  ASSERT_EQ(inner.size(), 2u);
  EXPECT_EQ(inner[0].elements().at(1).as_u64(), 98u);
  EXPECT_THAT(*inner[1].as_strings(), ElementsAre("deep"));
}

TEST(Gguf, DefaultsServeMissingKeysOnly) {
  const auto f = parse(everything().build());
  EXPECT_EQ(f->get_u32("no", 7), 7u);
  EXPECT_EQ(f->get_f32("no", 0.5f), 0.5f);
  EXPECT_EQ(f->get_string("no", "x"), "x");
  EXPECT_TRUE(f->get_bool("no", true));
  EXPECT_EQ(f->get_i64("no", -7), -7);
  EXPECT_THROW(f->get_u32("t.string", 7), Error);
}

TEST(Gguf, GetterErrorsNameKeyAndValue) {
  const auto f = parse(everything().build());
  EXPECT_EQ(error_of([&] { f->get_u32("llama.block_count"); }),
            "gguf: key is missing: llama.block_count in test.gguf");
  EXPECT_EQ(error_of([&] { f->get_u32("t.i8"); }),
            "gguf: value doesn't fit: t.i8 = -100 (i8) in test.gguf: need an integer within "
            "0..4294967295");
  EXPECT_EQ(error_of([&] { f->get_bool("t.u8"); }),
            "gguf: value doesn't fit: t.u8 = 200 (u8) in test.gguf: need a bool");
  EXPECT_THAT(error_of([&] { f->get_i64("t.u64"); }), HasSubstr("18446744073709551615 (u64)"));
  EXPECT_THAT(error_of([&] { f->get_u64("t.i64"); }), HasSubstr("(i64)"));
  EXPECT_THAT(error_of([&] { f->get_f32("t.f64"); }), HasSubstr("f32's range"));
  EXPECT_THAT(error_of([&] { f->get_i32s("t.strings"); }), HasSubstr("(array of string)"));
  EXPECT_THAT(error_of([&] { f->get_u32s("t.i32s"); }), HasSubstr("u32's range"));
  EXPECT_THAT(error_of([&] { f->get_u32s("t.u8"); }), HasSubstr("need an array"));
  EXPECT_THAT(error_of([&] { f->get_strings("t.i32s"); }), HasSubstr("need an array of strings"));
  EXPECT_THAT(error_of([&] { f->get_f32s("t.nested"); }), HasSubstr("need an array of numbers"));
}

TEST(Gguf, ListsTensors) {
  const auto f = parse(everything().build());
  ASSERT_EQ(f->tensors().size(), 3u);
  const GgufTensor& w = f->require_tensor("w.f32");
  EXPECT_EQ(w.shape, (Shape{2, 3}));
  EXPECT_EQ(w.dtype, DType::f32);
  EXPECT_EQ(w.bytes, 24u);
  EXPECT_EQ(w.offset % 32, 0u);
  EXPECT_EQ(w.str(), "f32[2,3]");
  EXPECT_EQ(f->find_tensor("none"), nullptr);
  EXPECT_EQ(error_of([&] { f->require_tensor("none"); }),
            "gguf: tensor is missing: none in test.gguf");
}

TEST(Gguf, UnknownTensorTypeFailsOnlyWhenAskedFor) {
  const auto f = parse(everything().build());
  const GgufTensor& odd = f->require_tensor("w.odd");
  EXPECT_EQ(odd.dtype, std::nullopt);
  EXPECT_EQ(odd.str(), "type 77[5]");
  EXPECT_EQ(
      error_of([&] { f->tensor("w.odd"); }),
      "gguf: tensor has a type that wick doesn't read: w.odd in test.gguf, type 77 (number 77)");
}

TEST(Gguf, KnownTypeWithoutDTypeIsStillMeasured) {
  B b;
  b.tensor("x", {66, 3}, 24, std::string(3 * 66, 'x'));
  const auto f = parse(b.build());
  EXPECT_EQ(f->tensors()[0].bytes, 198u);
  EXPECT_EQ(f->tensors()[0].str(), "i8[3,66]");
  EXPECT_THAT(error_of([&] { f->tensor("x"); }), HasSubstr("i8 (number 24)"));
}

TEST(Gguf, TensorsReadTheFileInPlaceAndKeepItAlive) {
  auto f = parse(everything().build());
  const Tensor t = f->tensor("w.f32");
  EXPECT_EQ(t.storage()->data(), f->data(f->require_tensor("w.f32")).data());
  EXPECT_FALSE(t.storage()->writable());
  EXPECT_FALSE(t.storage()->file_backed());
  f.reset();
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
  const auto* values = static_cast<const float*>(t.storage()->data());
  EXPECT_THAT(std::vector<float>(values, values + 6), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Gguf, ReadsVersionTwo) {
  B b = everything();
  b.version = 2;
  EXPECT_EQ(parse(b.build())->version(), 2u);
}

TEST(Gguf, HonoursAlignment) {
  B b;
  b.alignment = 128;
  b.u32("general.alignment", 128).tensor("a", {1}, 0, "1234").tensor("b", {1}, 0, "5678");
  const auto f = parse(b.build());
  EXPECT_EQ(f->tensors()[1].offset % 128, 0u);
  EXPECT_EQ(f->tensors()[1].offset - f->tensors()[0].offset, 128u);
  EXPECT_EQ(std::memcmp(f->data(f->tensors()[1]).data(), "5678", 4), 0);
}

TEST(Gguf, ScalarAndEmptyTensors) {
  B b;
  b.tensor("scalar", {}, 0, "1234").tensor("empty", {0, 4}, 0, "").tensor("last", {1}, 0, "1234");
  const auto f = parse(b.build());
  EXPECT_EQ(f->tensors()[0].shape.rank(), 0);
  EXPECT_EQ(f->tensors()[0].bytes, 4u);
  EXPECT_EQ(f->tensor("empty").elems(), 0);
}

TEST(Gguf, FileWithoutTensors) {
  const auto f = parse(B().u32("a", 1).build());
  EXPECT_TRUE(f->tensors().empty());
  EXPECT_EQ(f->get_u32("a"), 1u);
}

TEST(GgufOpen, NamesWhatIsWrongWithThePath) {
  TempFolder folder;
  EXPECT_EQ(error_of([] { Gguf::open("/no/such/file.gguf"); }),
            "gguf: cannot open: /no/such/file.gguf: No such file or directory");
  EXPECT_THAT(error_of([&] { Gguf::open(folder.path()); }), HasSubstr(": Is a directory"));
  EXPECT_THAT(error_of([&] { Gguf::open(folder.write("empty", "")); }),
              HasSubstr(": File is empty"));
  EXPECT_THAT(error_of([] { Gguf::open("/dev/null"); }), HasSubstr(": Not a regular file"));
  EXPECT_THAT(error_of([] { Gguf::open(""); }), StartsWith("gguf: cannot open"));
  EXPECT_THAT(error_of([&] { Gguf::open(folder.write("a\n.gguf", "nonsense")); }),
              HasSubstr("a\\n.gguf"));
}

TEST(GgufOpen, ReadsAFile) {
  TempFolder folder;
  const auto f = Gguf::open(folder.write("m.gguf", everything().build()));
  EXPECT_EQ(f->get_u32("t.u8"), 200u);
  const Tensor t = f->tensor("w.f32");
  EXPECT_TRUE(t.storage()->file_backed());
  EXPECT_EQ(static_cast<const float*>(t.storage()->data())[5], 6.0f);
}

TEST(GgufOpen, ReleasedPagesReadTheSame) {
  TempFolder folder;
  B b;
  std::string data(1 << 16, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 >> 3);
  b.tensor("big", {data.size() / 4}, 0, data);
  const auto f = Gguf::open(folder.write("m.gguf", b.build()));
  const auto part = f->data(f->tensors()[0]);
  f->bytes()->release(part);
  EXPECT_EQ(std::memcmp(part.data(), data.data(), data.size()), 0);
}

}  // namespace
}  // namespace wick::io::test
