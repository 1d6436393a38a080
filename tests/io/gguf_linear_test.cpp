// Reading and writing headers with very many entries takes nearly linear time.
#include <gtest/gtest.h>

#include "gguf_builder.h"
#include "tests/io/temp_folder.h"
#include "tests/near_linear.h"
#include "wick/io/gguf.h"
#include "wick/io/gguf_writer.h"

namespace wick::io {
namespace {

using test::TempFolder;
using wick::test::expect_near_linear;

TEST(GgufLinear, ManyKeysAndTensors) {
  const TempFolder folder;
  expect_near_linear("keys and tensors", 2000, [&](size_t n) {
    return [&, n] {
      GgufWriter writer(folder.path("m.gguf"));
      for (size_t i = 0; i < n; ++i) writer.set_u32("split." + std::to_string(i), 1);
      for (size_t i = 0; i < n; ++i) writer.set_string("key" + std::to_string(i), "value");
      for (size_t i = 0; i < n; ++i) writer.remove("split." + std::to_string(i));
      writer.set_u32("split.0", 2);
      for (size_t i = 0; i < n; ++i)
        writer.add_tensor("t" + std::to_string(i), DType::f32, Shape{});
      const float value = 1;
      for (size_t i = 0; i < n; ++i) {
        writer.write("t" + std::to_string(i), std::as_bytes(std::span(&value, 1)));
      }
      writer.finish();
      const auto file = Gguf::open(folder.path("m.gguf"));
      ASSERT_EQ(file->metadata().size(), n + 1);
      EXPECT_EQ(file->metadata().back().key, "split.0");
      EXPECT_EQ(file->get_u32("split.0"), 2u);
      EXPECT_EQ(file->find("split.1"), nullptr);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(file->get_string("key" + std::to_string(i)), "value");
        ASSERT_NE(file->find_tensor("t" + std::to_string(i)), nullptr);
      }
    };
  });
}

TEST(GgufLinear, ManyStrings) {
  const TempFolder folder;
  expect_near_linear("strings", 20000, [&](size_t n) {
    return [&, n] {
      const std::vector<std::string_view> words(n, "a word");
      GgufWriter writer(folder.path("m.gguf"));
      writer.set_strings("words", words);
      writer.finish();
      const auto file = Gguf::open(folder.path("m.gguf"));
      EXPECT_EQ(file->get_strings("words").size(), n);
      EXPECT_EQ(file->find("words")->elements().size(), n);
      EXPECT_LT(file->find("words")->str(5).size(), 200u);
    };
  });
}

}  // namespace
}  // namespace wick::io
