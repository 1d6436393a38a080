#include "wick/io/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>

#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"

namespace wick::io::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(GgufWriter, RoundTripOfEveryType) {
  TempFolder folder;
  GgufWriter w(folder.path("m.gguf"));
  w.set_u32("u32", 1);
  w.set_i32("i32", -2);
  w.set_u64("u64", UINT64_MAX);
  w.set_i64("i64", -4);
  w.set_f32("f32", 0.5f);
  w.set_f64("f64", 1e300);
  w.set_bool("bool", true);
  w.set_string("string", "text");
  w.set_u32s("u32s", std::vector<uint32_t>{1, 2});
  w.set_i32s("i32s", std::vector<int32_t>{-1, 2});
  w.set_f32s("f32s", std::vector<float>{1.5f});
  w.set_bools("bools", {true, false, true});
  w.set_strings("strings", std::vector<std::string_view>{"a", "", "bc"});
  w.add_tensor("w", DType::q8_0, Shape{2, 32});
  w.add_tensor("empty", DType::f32, Shape{0, 3});
  w.add_tensor("b", DType::f32, Shape{3});
  const std::string q(68, 'q'), f(12, 'f');
  w.write("w", as_bytes(q).first(10));
  w.write("w", as_bytes(q).subspan(10));
  w.write("b", as_bytes(f));
  w.finish();
  EXPECT_THAT(folder.list(), ElementsAre("m.gguf"));

  const auto r = Gguf::open(folder.path("m.gguf"));
  EXPECT_EQ(r->version(), 3u);
  EXPECT_EQ(r->file_bytes(), w.file_bytes());
  EXPECT_EQ(r->get_u32("u32"), 1u);
  EXPECT_EQ(r->get_i32("i32"), -2);
  EXPECT_EQ(r->get_u64("u64"), UINT64_MAX);
  EXPECT_EQ(r->get_i64("i64"), -4);
  EXPECT_EQ(r->get_f32("f32"), 0.5f);
  EXPECT_EQ(r->find("f64")->as_f64(), 1e300);
  EXPECT_TRUE(r->get_bool("bool"));
  EXPECT_EQ(r->get_string("string"), "text");
  EXPECT_THAT(r->get_u32s("u32s"), ElementsAre(1u, 2u));
  EXPECT_THAT(r->get_i32s("i32s"), ElementsAre(-1, 2));
  EXPECT_THAT(r->get_f32s("f32s"), ElementsAre(1.5f));
  EXPECT_THAT(r->get_bools("bools"), ElementsAre(true, false, true));
  EXPECT_THAT(r->get_strings("strings"), ElementsAre("a", "", "bc"));
  EXPECT_EQ(r->require_tensor("w").shape, (Shape{2, 32}));
  EXPECT_EQ(r->require_tensor("empty").shape, (Shape{0, 3}));
  EXPECT_EQ(std::memcmp(r->data(r->require_tensor("w")).data(), q.data(), q.size()), 0);
  EXPECT_EQ(std::memcmp(r->data(r->require_tensor("b")).data(), f.data(), f.size()), 0);
}

TEST(GgufWriter, CopiesMetadataWithOverridesInPlace) {
  TempFolder folder;
  GgufBuilder b = everything();
  b.u32("general.alignment", 32);
  const auto source = parse(b.build());
  GgufWriter w(folder.path("m.gguf"));
  w.copy_metadata(*source);
  w.set_string("t.i8", "changed");
  w.remove("t.u8");
  w.remove("not.there");
  w.set_u32("added", 9);
  w.finish();
  const auto r = Gguf::open(folder.path("m.gguf"));
  EXPECT_EQ(r->metadata().size(), source->metadata().size() - 1);
  EXPECT_EQ(r->metadata()[0].key, "t.i8");
  EXPECT_EQ(r->get_string("t.i8"), "changed");
  EXPECT_EQ(r->get_u32("added"), 9u);
  EXPECT_FALSE(r->contains("general.alignment"));
  EXPECT_EQ(r->find("t.nested")->str(), source->find("t.nested")->str());
  EXPECT_EQ(r->find("t.f64")->as_f64(), 1e300);
}

TEST(GgufWriter, NothingRemainsWithoutFinish) {
  TempFolder folder;
  {
    GgufWriter w(folder.path("m.gguf"));
    w.add_tensor("a", DType::f32, Shape{4});
    w.write("a", as_bytes("12345678"));
    // A temporary file may exist, but not the final one.
    EXPECT_THAT(folder.list(), Not(Contains("m.gguf")));
    EXPECT_EQ(error_of([&] { w.finish(); }),
              "gguf: tensor lacks bytes: " + folder.path("m.gguf") + ", a: 8 of 16 are written");
  }
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(GgufWriter, AnOlderFileStaysUntilFinish) {
  TempFolder folder;
  folder.write("m.gguf", "old");
  { GgufWriter w(folder.path("m.gguf")); }
  EXPECT_EQ(folder.read("m.gguf"), "old");
  GgufWriter w(folder.path("m.gguf"));
  EXPECT_EQ(folder.read("m.gguf"), "old");
  w.finish();
  EXPECT_EQ(Gguf::open(folder.path("m.gguf"))->tensors().size(), 0u);
}

TEST(GgufWriter, OrderAndSizesAreChecked) {
  TempFolder folder;
  GgufWriter w(folder.path("m.gguf"));
  w.add_tensor("a", DType::f32, Shape{2});
  w.add_tensor("b", DType::f32, Shape{2});
  EXPECT_THAT(error_of([&] { w.write("b", as_bytes("1234")); }), HasSubstr("next is a"));
  EXPECT_THAT(error_of([&] { w.write("a", as_bytes("123456789")); }),
              HasSubstr("9 written where 8 are left"));
  EXPECT_THAT(error_of([&] { w.set_u32("late", 1); }), HasSubstr("already written"));
  EXPECT_THAT(error_of([&] { w.add_tensor("c", DType::f32, Shape{1}); }),
              HasSubstr("already written"));
  w.write("a", as_bytes("12345678"));
  w.write("b", as_bytes("12345678"));
  EXPECT_THAT(error_of([&] { w.write("b", as_bytes("1")); }), HasSubstr("all are written"));
  w.finish();
  EXPECT_THAT(error_of([&] { w.finish(); }), HasSubstr("cannot write"));
}

TEST(GgufWriter, RefusesWhatReadersWould) {
  TempFolder folder;
  GgufWriter w(folder.path("m.gguf"));
  EXPECT_THAT(error_of([&] { w.add_tensor("a", DType::u8, Shape{2}); }),
              HasSubstr("no such tensor type"));
  EXPECT_THAT(error_of([&] {
                w.add_tensor("a", DType::f32, Shape{1, 1, 1, 1, 1});
              }),
              HasSubstr("too many dimensions"));
  EXPECT_THAT(error_of([&] {
                w.add_tensor("a", DType::q4_0, Shape{2, 33});
              }),
              HasSubstr("multiple of 32"));
  EXPECT_THAT(error_of([&] { w.add_tensor("a", DType::f64, Shape{int64_t{1} << 61}); }),
              HasSubstr("too large"));
  EXPECT_THAT(error_of([&] { w.set_u32("general.alignment", 64); }), HasSubstr("reserved"));
  EXPECT_THAT(error_of([&] { w.set_u32(std::string(65536, 'k'), 64); }), HasSubstr("too long"));
  w.add_tensor("a", DType::f32, Shape{1});
  EXPECT_THAT(error_of([&] { w.add_tensor("a", DType::f32, Shape{1}); }), HasSubstr("twice"));
}

TEST(GgufWriter, PathErrors) {
  TempFolder folder;
  EXPECT_EQ(error_of([] { GgufWriter("/no/such/folder/m.gguf"); }),
            "gguf: cannot write: /no/such/folder/m.gguf: No such file or directory");
  EXPECT_THAT(error_of([&] { GgufWriter w(folder.path()); }), HasSubstr("Is a directory"));
  EXPECT_THAT(error_of([&] { GgufWriter w(folder.path("x/")); }), HasSubstr("cannot write"));
  EXPECT_THAT(error_of([] { GgufWriter("/dev/null"); }), HasSubstr("Not a regular file"));
  EXPECT_THAT(error_of([] { GgufWriter(""); }), HasSubstr("cannot write"));
}

TEST(GgufWriter, ADiskThatFillsUpIsAnErrorAndLeavesNothing) {
  TempFolder folder;
  // A limit on file sizes simulates a full disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string first, second;
  {
    GgufWriter w(folder.path("m.gguf"));
    w.add_tensor("a", DType::f32, Shape{4096});
    const std::string data(16384, 'x');
    first = error_of([&] { w.write("a", as_bytes(data)); });
    second = error_of([&] { w.finish(); });
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(first, HasSubstr("gguf: cannot write: "));
  EXPECT_THAT(second, HasSubstr("gguf: "));
  EXPECT_THAT(folder.list(), IsEmpty());
}

// As cp does.
TEST(GgufWriter, WritesThroughSymbolicLinks) {
  TempFolder folder;
  std::filesystem::create_directory(folder.path("there"));
  folder.write("there/m.gguf", "old");
  std::filesystem::create_symlink("there/m.gguf", folder.path("link"));
  std::filesystem::create_symlink("link", folder.path("second"));
  std::filesystem::create_hard_link(folder.path("there/m.gguf"), folder.path("hard"));
  GgufWriter(folder.path("second")).finish();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("second")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(Gguf::open(folder.path("there/m.gguf"))->version(), 3u);
  EXPECT_EQ(folder.read("hard"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path("there")), {}), 1);
  std::filesystem::create_symlink("none", folder.path("nowhere"));
  std::filesystem::create_symlink("circle", folder.path("circle"));
  for (const char* name : {"nowhere", "circle"}) {
    EXPECT_EQ(
        error_of([&] { GgufWriter w(folder.path(name)); }),
        "gguf: cannot write: " + folder.path(name) + ": symbolic link to a file that isn't there");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("none")));
}

TEST(GgufWriter, KeepsAChecksum) {
  TempFolder folder;
  GgufWriter w(folder.path("m.gguf"));
  EXPECT_THAT(error_of([&] { w.checksum(); }), HasSubstr("no checksum is kept"));
  w.keep_checksum();
  w.add_tensor("a", DType::f32, Shape{2});
  w.add_tensor("b", DType::f32, Shape{2});
  const std::string data(8, 'x');
  w.write("a", as_bytes(data));
  const uint64_t sum = w.checksum();
  w.write("b", as_bytes(data));
  w.finish();
  const auto file = Gguf::open(folder.path("m.gguf"));
  Checksum expected;
  expected.add(file->bytes()->span().first(file->require_tensor("b").offset));
  EXPECT_EQ(sum, expected.value());
  GgufWriter late(folder.path("late.gguf"));
  late.finish();
  EXPECT_THAT(error_of([&] { late.keep_checksum(); }), HasSubstr("already written"));
}

TEST(GgufWriter, FilesHaveOrdinaryPermissions) {
  TempFolder folder;
  GgufWriter(folder.path("m.gguf")).finish();
  struct stat status {};
  ASSERT_EQ(::stat(folder.path("m.gguf").c_str(), &status), 0);
  EXPECT_NE(status.st_mode & S_IRUSR, 0u);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask);
}

}  // namespace
}  // namespace wick::io::test
