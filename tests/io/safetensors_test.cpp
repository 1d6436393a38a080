// The reader of safetensors files, and the limits of JSON.
#include "wick/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/expect_error.h"
#include "tests/io/safetensors_builder.h"
#include "tests/io/temp_folder.h"
#include "wick/io/json.h"

namespace wick::io::test {
namespace {

using testing::HasSubstr;
using wick::test::error_of;
using B = SafetensorsBuilder;

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::shared_ptr<const Safetensors> parse(const std::string& bytes) {
  return Safetensors::parse(Bytes::copy_of(std::as_bytes(std::span(bytes))), "f.safetensors");
}

std::string message(const std::string& bytes) {
  return error_of([&] { parse(bytes); });
}

/// A file with the header, and 8 bytes of data.
std::string with(const std::string& header) { return B::file(header, "12345678"); }

B model() {
  B b;
  b.entry(R"("__metadata__":{"format":"pt"})");
  b.tensor("b", "F32", {2, 3}, raw<float>({1, 2, 3, 4, 5, 6}));
  b.tensor("a", "BF16", {2}, raw<uint16_t>({0x3f80, 0xc000}));
  b.tensor("f8", "F8_E4M3", {4}, std::string("\x38\xb8\x40\x00", 4));
  b.tensor("scalar", "F16", {}, raw<uint16_t>({0x3c00}));
  b.tensor("empty", "F32", {0, 5}, "");
  b.tensor("unknown", "F4", {3}, "12");
  b.tensor("bytes", "U8", {1}, "7");
  return b;
}

TEST(Safetensors, ReadsEveryTensor) {
  const TempFolder folder;
  const auto file = Safetensors::open(folder.write("m.safetensors", model().build()));
  EXPECT_EQ(file->tensors().size(), 7u);
  EXPECT_EQ(file->find("__metadata__"), nullptr);
  const Tensor b = file->tensor(*file->find("b"));
  EXPECT_EQ(b.shape(), (Shape{2, 3}));
  EXPECT_TRUE(b.storage()->file_backed());
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const auto floats = [&](const char* name) {
    return file->tensor(*file->find(name)).to(DType::f32).to_vector<float>();
  };
  EXPECT_EQ(floats("a"), (std::vector<float>{1, -2}));
  EXPECT_EQ(floats("f8"), (std::vector<float>{1, -1, 2, 0}));
  EXPECT_EQ(floats("scalar"), std::vector<float>{1});
  EXPECT_EQ(floats("empty"), std::vector<float>{});
  EXPECT_EQ(file->find("b")->str(), "F32[2,3]");
  EXPECT_EQ(file->part(*file->find("b"), 3, {3}).to_vector<float>(), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(error_of([&] { file->tensor(*file->find("unknown")); }),
            "safetensors: tensor has a type that wick doesn't read: unknown in " +
                folder.path("m.safetensors") + ", F4[3]");
}

// The data of a file may begin at any byte.
TEST(Safetensors, CopiesUnalignedTensors) {
  for (size_t pad = 0; pad < 8; ++pad) {
    B b;
    b.tensor("pad", "U8", {static_cast<int64_t>(pad)}, std::string(pad, 'x'));
    b.tensor("x", "F64", {2}, raw<double>({1.5, -2}));
    const auto file = parse(b.build());
    EXPECT_EQ(file->tensor(*file->find("x")).to_vector<double>(), (std::vector<double>{1.5, -2}));
  }
}

TEST(Safetensors, RefusesEveryCut) {
  const std::string whole = model().build();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(message(whole.substr(0, length)), "no error") << length;
  }
  EXPECT_EQ(message(whole), "no error");
  EXPECT_EQ(message(""), "safetensors: file is truncated: f.safetensors: it has 0 bytes");
  EXPECT_EQ(message("1234567"), "safetensors: file is truncated: f.safetensors: it has 7 bytes");
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto tensor = [](const std::string& members) { return with("{\"a\":{" + members + "}}"); };
  const auto of = [&](const std::string& type, const std::string& shape, const std::string& place) {
    return tensor("\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + place);
  };
  EXPECT_EQ(message(of("F32", "[2]", "[0,8]")), "no error");
  EXPECT_EQ(message(of("F32", "[2]", "[0,9]")),
            "safetensors: tensor lies outside the file: a in f.safetensors: it ends at byte 9 of 8 "
            "bytes of data");
  EXPECT_EQ(message(of("F32", "[3]", "[0,8]")),
            "safetensors: tensor's bytes don't fit its shape: a in f.safetensors: 8 bytes for "
            "F32[3]");
  EXPECT_THAT(message(of("F32", "[1]", "[0,7]")), HasSubstr("don't fit its shape"));
  EXPECT_THAT(message(of("F32", "[2]", "[8,0]")), HasSubstr("'data_offsets' is invalid"));
  for (const char* place : {"[0]", "[0,8,8]", "[0,-8]", "[0,8.0]", "{}", "[0,\"8\"]", "null",
                            "[0,18446744073709551615]"}) {
    EXPECT_THAT(message(of("F32", "[2]", place)), HasSubstr("a in f.safetensors")) << place;
  }
  for (const char* shape : {"[-2]", "2", "[2.0]", "[1,1,1,1,1,1,1,1,2]", "[\"2\"]", "null"}) {
    EXPECT_THAT(message(of("F32", shape, "[0,8]")), HasSubstr("'shape' is invalid")) << shape;
  }
  EXPECT_THAT(message(of("F32", "[4294967296,4294967296]", "[0,8]")),
              HasSubstr("tensor is too large"));
  EXPECT_THAT(message(of("F32", "[0,4611686018427387905]", "[0,0]")),
              HasSubstr("tensor is too large"));
  EXPECT_THAT(message(tensor(R"("shape":[2],"data_offsets":[0,8])")), HasSubstr("lacks 'dtype'"));
  EXPECT_THAT(message(tensor(R"("dtype":1,"shape":[2],"data_offsets":[0,8])")),
              HasSubstr("'dtype' is invalid"));
  EXPECT_THAT(message(with(R"({"a":[]})")), HasSubstr("lacks 'dtype'"));
  EXPECT_THAT(message(with("[]")), HasSubstr("header isn't an object"));
  EXPECT_THAT(message(with("{")), HasSubstr("f.safetensors: not JSON: at byte"));
  EXPECT_THAT(message(with(R"({"a":{},"a":{}})")), HasSubstr("key appears twice: a"));
  EXPECT_THAT(message(with("{\"" + std::string(70000, 'n') + "\":{}}")),
              HasSubstr("name is too long"));
  EXPECT_THAT(message(with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                               "b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}})")),
              HasSubstr("tensors overlap: a and b"));
  const uint64_t huge = uint64_t{1} << 60;
  EXPECT_THAT(message(std::string(reinterpret_cast<const char*>(&huge), 8) + "{}"),
              HasSubstr("not a safetensors file, or its header is too large"));
}

TEST(Safetensors, ReportsAChangedFile) {
  const TempFolder folder;
  const std::string path = folder.write("m.safetensors", model().build());
  const auto file = Safetensors::open(path);
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(error_of([&] { file->bytes()->require_unchanged("load"); }), HasSubstr(path));
}

TEST(Json, IsLimited) {
  const auto message_of = [](const std::string& text) {
    return error_of([&] { parse_json(text, "f.json"); });
  };
  EXPECT_EQ(parse_json(R"({"a":[1,2.5,"x",null,true]})", "f.json").at("a").size(), 5u);
  EXPECT_EQ(message_of(""), "f.json: not JSON: at byte 1");
  EXPECT_EQ(message_of("{\"a\":1}x"), "f.json: not JSON: at byte 8");
  EXPECT_EQ(message_of("[NaN]"), "f.json: not JSON: at byte 2");
  EXPECT_EQ(message_of("[1e999]"), "f.json: not JSON: a number is out of range");
  EXPECT_EQ(message_of(R"({"a":{"b":1,"b":2}})"), "f.json: key appears twice: b");
  EXPECT_EQ(message_of(R"([{"b":1},{"b":2}])"), "no error");
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(message_of(nested(64)), "no error");
  EXPECT_EQ(message_of(nested(65)), "f.json: nested too deeply: at most 64");
  EXPECT_THAT(message_of(std::string(10'000'000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(message_of("\"\xff\""), HasSubstr("not JSON"));
  const TempFolder folder;
  folder.write("big.json", "[" + std::string(100, ' ') + "]");
  EXPECT_THAT(error_of([&] { read_json(folder.path("big.json"), 101); }),
              HasSubstr("file is too large: " + folder.path("big.json") + ", 102 bytes"));
  EXPECT_EQ(read_json(folder.path("big.json"), 102).size(), 0u);
  EXPECT_THAT(error_of([&] { read_json(folder.path("none"), 10); }), HasSubstr("No such file"));
}

}  // namespace
}  // namespace wick::io::test
