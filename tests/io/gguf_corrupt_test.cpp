// Malformed files. Each must give an Error, or a file that can be walked safely.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fuzz/gguf_walk.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"

namespace wick::io::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using B = GgufBuilder;

std::string parse_error(std::string_view bytes) {
  return error_of([&] { parse(bytes); });
}

ErrorKind parse_error_kind(std::string_view bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::runtime;
}

/// A truncated file has the same error kind as one that is truncated while it is in use.
TEST(GgufCorrupt, TruncatedAtEveryByte) {
  B b = everything();
  b.tensor("last", {3}, 0, "123456789abc");  // data up to the end of the file
  const std::string whole = b.build();
  walk(*parse(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(std::to_string(size) + " bytes of " + std::to_string(whole.size()));
    EXPECT_THAT(parse_error(std::string_view(whole).substr(0, size)), StartsWith("gguf: "));
    EXPECT_EQ(parse_error_kind(std::string_view(whole).substr(0, size)), ErrorKind::file);
  }
}

TEST(GgufCorrupt, EveryByteOfTheHeaderChanged) {
  const B b = everything();
  const std::string whole = b.build();
  int parsed = 0;
  for (size_t i = 0; i < b.header().size(); ++i) {
    for (int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      parsed += walk_if_valid(std::as_bytes(std::span(bytes)));
    }
  }
  EXPECT_GT(parsed, 0);  // changed names and numbers may be valid
}

TEST(GgufCorrupt, NotAGguf) {
  EXPECT_EQ(parse_error("PK\3\4 some archive"),
            "gguf: not a GGUF file: test.gguf: such a file starts with \"GGUF\"");
  EXPECT_THAT(parse_error("GX"), HasSubstr("not a GGUF file"));
  EXPECT_EQ(
      parse_error("GG"),
      "gguf: file is truncated or corrupted: test.gguf, the magic at byte 0: needs 4 bytes where "
      "2 are left");
  for (const char* bytes : {"PK\3\4 some archive", "GGUX", "X"}) {
    EXPECT_EQ(parse_error_kind(bytes), ErrorKind::value);  // complete files of another format
  }
}

TEST(GgufCorrupt, VersionsAndByteOrder) {
  for (uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
    B b;
    b.version = version;
    EXPECT_THAT(parse_error(b.build()), HasSubstr("need 2 or 3"));
  }
  B b;
  b.version = 0x03000000;
  EXPECT_THAT(parse_error(b.build()), HasSubstr("file is big-endian"));
}

TEST(GgufCorrupt, HostileCounts) {
  const std::string start = "GGUF" + B::raw<uint32_t>(3);
  for (uint64_t count : {uint64_t{1} << 60, UINT64_MAX, uint64_t{1} << 32, uint64_t{100}}) {
    const auto zero = B::raw<uint64_t>(0), many = B::raw(count);
    EXPECT_THAT(parse_error(start + many + zero + std::string(50, '\0')), HasSubstr("tensors"));
    EXPECT_THAT(parse_error(start + zero + many + std::string(50, '\0')),
                HasSubstr("metadata entries"));
    for (uint32_t element = 0; element < 13; ++element) {
      B b;
      b.key("a", 9, B::array(element, count, std::string(60, '\0')));
      const std::string message = parse_error(b.build());
      if (count > 100 || element != 0) {
        EXPECT_THAT(message, HasSubstr("gguf: ")) << count << " of " << element;
      }
    }
  }
}

TEST(GgufCorrupt, HostileLengths) {
  for (uint64_t length : {uint64_t{1} << 60, UINT64_MAX, UINT64_MAX - 20, uint64_t{1000}}) {
    EXPECT_THAT(parse_error(B().key("s", 8, B::raw(length) + "abc").build()),
                HasSubstr("the value of s"));
    B array;
    array.key("s", 9, B::array(8, 2, B::text("a") + B::raw(length) + "abc"));
    EXPECT_THAT(parse_error(array.build()), HasSubstr("the value of s"));
    const std::string head =
        "GGUF" + B::raw<uint32_t>(3) + B::raw<uint64_t>(0) + B::raw<uint64_t>(1);
    EXPECT_THAT(parse_error(head + B::raw(length) + std::string(30, 'k')),
                HasSubstr("a metadata key"));
  }
}

TEST(GgufCorrupt, LongNames) {
  const std::string name(70000, 'n');
  EXPECT_THAT(parse_error(B().u32(name, 1).build()), HasSubstr("name is too long"));
  EXPECT_THAT(parse_error(B().tensor(name, {1}, 0, "1234").build()), HasSubstr("name is too long"));
}

TEST(GgufCorrupt, NestingHasALimit) {
  std::string value = B::array(0, 1, "x");
  for (int depth = 1; depth < 4; ++depth) value = B::array(9, 1, value);
  walk(*parse(B().key("deep", 9, value).build()));
  EXPECT_THAT(parse_error(B().key("deep", 9, B::array(9, 1, value)).build()),
              HasSubstr("nested too deep"));
  // Nested so deep that a recursive parser's stack would overflow.
  std::string endless;
  for (int i = 0; i < 100000; ++i) endless += B::array(9, 1, "");
  EXPECT_THAT(parse_error(B().key("deep", 9, endless).build()), HasSubstr("nested too deep"));
}

TEST(GgufCorrupt, Types) {
  EXPECT_THAT(parse_error(B().key("k", 13, "12345678").build()),
              HasSubstr("value type is unknown: test.gguf, k, type 13"));
  EXPECT_THAT(parse_error(B().key("k", 9, B::array(99, 0, "")).build()),
              HasSubstr("value type is unknown"));
  EXPECT_THAT(parse_error(B().key("k", 7, "\2").build()), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(parse_error(B().key("k", 9, B::array(7, 2, "\1\xff")).build()),
              HasSubstr("neither 0 nor 1"));
}

TEST(GgufCorrupt, Duplicates) {
  EXPECT_EQ(parse_error(B().u32("k", 1).u32("k", 1).build()),
            "gguf: key appears twice: test.gguf, k");
  EXPECT_EQ(parse_error(B().tensor("w", {1}, 0, "1234").tensor("w", {1}, 0, "1234").build()),
            "gguf: tensor appears twice: test.gguf, w");
}

TEST(GgufCorrupt, Alignment) {
  for (uint32_t alignment : {0u, 1u, 4u, 7u, 24u, 33u, 0xffffffffu}) {
    EXPECT_THAT(parse_error(B().u32("general.alignment", alignment).build()),
                HasSubstr("alignment is invalid"))
        << alignment;
  }
  EXPECT_THAT(parse_error(B().string("general.alignment", "32").build()),
              HasSubstr("general.alignment"));
  // A valid alignment that moves the data beyond the end.
  B b;
  b.u32("general.alignment", 1u << 31).tensor_at("w", {1}, 0, 0);
  EXPECT_THAT(parse_error(b.build() + "1234"), HasSubstr("outside the file"));
}

TEST(GgufCorrupt, TensorPlaces) {
  const std::string data(64, 'x');
  const auto with = [&](std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    return parse_error(B().tensor_at("w", dims, type, offset).build() + data);
  };
  EXPECT_EQ(with({16}, 0, 0), "");
  EXPECT_EQ(with({8}, 0, 32), "");
  EXPECT_THAT(with({17}, 0, 0), HasSubstr("outside the file"));
  EXPECT_THAT(with({9}, 0, 32), HasSubstr("outside the file"));
  EXPECT_THAT(with({1}, 0, 96), HasSubstr("outside the file"));
  EXPECT_THAT(with({1}, 0, UINT64_MAX - 31), HasSubstr("outside the file"));
  EXPECT_THAT(with({1}, 77, UINT64_MAX - 31), HasSubstr("outside the file"));
  EXPECT_THAT(with({1}, 0, 4), HasSubstr("isn't aligned"));
  EXPECT_THAT(with({33}, 8, 0), HasSubstr("aren't whole blocks"));
  EXPECT_THAT(with({}, 2, 0), HasSubstr("aren't whole blocks"));
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0, 0), HasSubstr("too many dimensions"));
  EXPECT_THAT(with({UINT64_MAX}, 0, 0), HasSubstr("too large"));
  EXPECT_THAT(with({uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), HasSubstr("too large"));
  EXPECT_THAT(with({0, uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), HasSubstr("too large"));
  EXPECT_THAT(with({uint64_t{1} << 62}, 28, 0), HasSubstr("doesn't fit"));
  EXPECT_THAT(with({uint64_t{1} << 62}, 77, 0), HasSubstr(""));
}

TEST(GgufCorrupt, HugeRank) {
  std::string bytes = "GGUF" + B::raw<uint32_t>(3) + B::raw<uint64_t>(1) + B::raw<uint64_t>(0) +
                      B::text("w") + B::raw<uint32_t>(0xffffffff) + std::string(64, '\0');
  EXPECT_THAT(parse_error(bytes), HasSubstr("rank 4294967295"));
}

TEST(GgufCorrupt, OverlappingTensors) {
  B b;
  b.tensor_at("a", {16}, 0, 0).tensor_at("b", {8}, 0, 32);
  EXPECT_EQ(parse_error(b.build() + std::string(64, 'x')),
            "gguf: tensors overlap: test.gguf, a and b");
}

TEST(GgufCorrupt, NamesAreEscapedInErrors) {
  const std::string message =
      parse_error(B().u32("evil\x1b[2J\nname\xff", 1).u32("evil\x1b[2J\nname\xff", 1).build());
  EXPECT_EQ(message, "gguf: key appears twice: test.gguf, evil\\x1b[2J\\nname\\xff");
}

}  // namespace
}  // namespace wick::io::test
