// Models that are split into several GGUF files.
#include "wick/io/split_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/expect_error.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/split_writer.h"
#include "tests/io/temp_folder.h"
#include "wick/io/convert.h"
#include "wick/io/gguf.h"

namespace wick::io::test {
namespace {

using testing::HasSubstr;
using wick::test::error_of;
using B = GgufBuilder;

class SplitFile : public testing::Test {
 protected:
  /// Writes a model of seven tensors of different sizes.
  static GgufBuilder model(const std::string& architecture = "llama") {
    B b;
    b.string("general.architecture", architecture).u32("llama.block_count", 7);
    for (uint64_t i = 0; i < 7; ++i) {
      std::vector<float> values;
      for (uint64_t j = 0; j < 4 * (i + 1); ++j) values.push_back(static_cast<float>(100 * i + j));
      b.tensor("blk." + std::to_string(i) + ".w.weight", {4, i + 1}, 0, B::bytes_of(values));
    }
    return b;
  }
  std::shared_ptr<const Gguf> whole() const {
    return Gguf::open(folder_.write("whole.gguf", model().build()));
  }
  std::string part(int number, int count = 3) const {
    return folder_.path(fmt::format("m-{:05}-of-{:05}.gguf", number, count));
  }
  static std::string message(const std::string& path) {
    return error_of([&] { open_gguf(path); });
  }

  TempFolder folder_;
};

TEST_F(SplitFile, AnyPartOpensTheWholeModel) {
  const auto one = whole();
  for (const size_t count : {size_t{2}, size_t{3}, size_t{7}, size_t{9}}) {
    for (const std::string& path : split(*one, folder_.path("m"), count)) {
      SCOPED_TRACE(path);
      const auto file = open_gguf(path);
      EXPECT_EQ(file->path(), path);
      EXPECT_EQ(file->files().size(), count);
      EXPECT_EQ(file->format(), fmt::format("GGUF version 3 in {} files", count));
      ASSERT_EQ(file->metadata().size(), one->metadata().size());
      EXPECT_EQ(file->get_string("general.architecture"), "llama");
      EXPECT_EQ(file->get_u32("llama.block_count"), 7u);
      EXPECT_FALSE(file->contains("split.count"));
      ASSERT_EQ(file->tensors().size(), one->tensors().size());
      uint64_t bytes = 0;
      for (const std::string& of : file->files()) bytes += std::filesystem::file_size(of);
      EXPECT_EQ(file->file_bytes(), bytes);
      for (size_t i = 0; i < one->tensors().size(); ++i) {
        const GgufTensor& tensor = file->tensors()[i];
        EXPECT_EQ(tensor.name, one->tensors()[i].name);
        const Tensor t = file->tensor(tensor);
        EXPECT_EQ(t.shape(), one->tensors()[i].shape);
        EXPECT_TRUE(t.storage()->file_backed());
        EXPECT_EQ(t.to_vector<float>(), one->tensor(tensor.name).to_vector<float>());
      }
      EXPECT_NO_THROW(require_whole(*file));
      file->require_unchanged("test");
    }
  }
}

TEST_F(SplitFile, OneFileIsOpenedAsItIs) {
  EXPECT_EQ(open_gguf(whole()->path())->tensors().size(), 7u);
  // The name of a part alone doesn't make one.
  EXPECT_EQ(open_gguf(folder_.write("m-00001-of-00002.gguf", model().build()))->files().size(), 1u);
  B single = model();
  single.u32("split.count", 1).u32("split.no", 0);
  EXPECT_EQ(open_gguf(folder_.write("single.gguf", single.build()))->files().size(), 1u);
}

TEST_F(SplitFile, ConvertsToOneFile) {
  const auto one = whole();
  split(*one, folder_.path("m"), 3);
  const QuantizeResult result = quantize_gguf(part(2), folder_.path("out.gguf"), DType::f16);
  EXPECT_EQ(result.bytes_in, open_gguf(part(1))->file_bytes());
  quantize_gguf(one->path(), folder_.path("expected.gguf"), DType::f16);
  EXPECT_EQ(folder_.read("out.gguf"), folder_.read("expected.gguf"));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(error_of([&] { quantize_gguf(part(1), part(i), DType::f16); }),
                HasSubstr("input and output are the same file"));
  }
}

TEST_F(SplitFile, PathsAreKnownWithoutOpening) {
  std::vector<std::string> parts;
  for (int i = 1; i <= 3; ++i) parts.push_back(part(i));
  EXPECT_EQ(paths_of_model(part(2)), parts);
  EXPECT_EQ(paths_of_model("m.gguf"), std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(paths_of_model("m-00004-of-00003.gguf"),
            std::vector<std::string>{"m-00004-of-00003.gguf"});
  std::filesystem::create_directory(folder_.path("hf"));
  for (const char* name : {"config.json", "a.safetensors", "own.gguf"}) {
    folder_.write(std::string("hf/") + name, "");
  }
  std::vector<std::string> found = paths_of_model(folder_.path("hf"));
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::string>{folder_.path("hf/a.safetensors"),
                                             folder_.path("hf/config.json")}));
}

TEST_F(SplitFile, NamesMissingParts) {
  const auto paths = split(*whole(), folder_.path("m"), 3);
  std::filesystem::remove(paths[1]);
  EXPECT_EQ(message(paths[2]), paths[2] +
                                   ": parts of the split model are missing: m-00002-of-00003.gguf: "
                                   "all parts must lie in one folder");
  std::filesystem::remove(paths[0]);
  EXPECT_THAT(message(paths[2]),
              HasSubstr("missing: m-00001-of-00003.gguf, m-00002-of-00003.gguf: all"));
  // The list of a hostile count is short.
  const auto one = whole();
  write_part(*one, part(1, 60000), 0, 1, {.no = 0, .count = 60000, .tensors = 7});
  EXPECT_LT(message(part(1, 60000)).size(), 600u);
  EXPECT_THAT(message(part(1, 60000)), HasSubstr("…"));
}

TEST_F(SplitFile, RefusesPartsUnderOtherNames) {
  const auto one = whole();
  const auto paths = split(*one, folder_.path("m"), 3);
  std::filesystem::copy_file(paths[1], folder_.path("renamed.gguf"));
  EXPECT_EQ(message(folder_.path("renamed.gguf")),
            folder_.path("renamed.gguf") +
                ": file is one part of a split model: part 2 of 3: the parts' names must end in "
                "-00001-of-00002.gguf and so on");
  EXPECT_THAT(error_of([&] { require_whole(*Gguf::open(paths[1])); }),
              HasSubstr("file is one part of a split model: part 2 of 3"));
  for (const char* name : {"m-0001-of-00003.gguf", "m-00000-of-00003.gguf", "m-00004-of-00003.gguf",
                           "m-00001-of-00003.ggu", "m-0000x-of-00003.gguf", "m+00001-of-00003.gguf",
                           "-00001-of-0003.gguf", "m-+0001-of-00003.gguf"}) {
    std::filesystem::copy_file(paths[1], folder_.path(name));
    EXPECT_THAT(message(folder_.path(name)), HasSubstr("file is one part of a split model"))
        << name;
  }
  // The second part under the name of the third, and a part of four under a name of three.
  std::filesystem::copy_file(paths[1], paths[2], std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(message(paths[0]), paths[2] + ": part has another number than its name: part 2 of 3");
  write_part(*one, paths[2], 4, 7, {.no = 2, .count = 4, .tensors = 7});
  EXPECT_THAT(message(paths[0]), HasSubstr("another number than its name: part 3 of 4"));
  write_part(*one, paths[2], 4, 7, {.no = 5, .count = 3, .tensors = 7});
  EXPECT_THAT(message(paths[0]), HasSubstr("split.no = 5 of 3 parts"));
}

TEST_F(SplitFile, RefusesPartsOfOtherModels) {
  const auto one = whole();
  const auto paths = split(*one, folder_.path("m"), 3);
  const PartKeys last{.no = 2, .count = 3, .tensors = 7};
  write_part(*one, paths[2], 3, 7, last);  // tensor 3 is also in the second part
  EXPECT_EQ(message(paths[1]), paths[1] + ": tensor appears twice: blk.3.w.weight: in " + paths[1] +
                                   " and " + paths[2]);
  write_part(*one, paths[2], 5, 7, last);
  EXPECT_EQ(message(paths[1]),
            paths[0] +
                ": part belongs to another model: split.tensors.count = 7, but the parts "
                "have 6 tensors");
  write_part(*one, paths[2], 4, 7, {.no = 2, .count = 3, .tensors = 8});
  EXPECT_THAT(message(paths[0]),
              HasSubstr(paths[2] + ": part belongs to another model: split.tensors.count = 8"));
  B other;
  other.string("general.architecture", "qwen2").u32("split.no", 2).u32("split.count", 3);
  folder_.write("m-00003-of-00003.gguf", other.build());
  EXPECT_EQ(message(paths[0]), paths[2] +
                                   ": part belongs to another model: general.architecture is "
                                   "'qwen2' instead of 'llama'");
  folder_.write("m-00003-of-00003.gguf", "GGUX");
  EXPECT_THAT(message(paths[0]), HasSubstr("not a GGUF file: " + paths[2]));
  const std::string bytes = folder_.read("m-00002-of-00003.gguf");
  write_part(*one, paths[2], 4, 7, last);
  folder_.write("m-00002-of-00003.gguf", bytes.substr(0, bytes.size() - 8));
  EXPECT_THAT(message(paths[0]), HasSubstr(paths[1]));
}

TEST_F(SplitFile, NamesTheChangedPart) {
  const auto paths = split(*whole(), folder_.path("m"), 3);
  const auto file = open_gguf(paths[0]);
  std::filesystem::resize_file(paths[1], 100);
  EXPECT_THAT(error_of([&] { file->require_unchanged("test"); }), HasSubstr(paths[1]));
}

}  // namespace
}  // namespace wick::io::test
