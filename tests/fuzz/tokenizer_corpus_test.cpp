// Replays the corpus of the tokenizers' fuzzer in every build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/tokenizer_walk.h"

namespace wick::text::test {
namespace {

TEST(TokenizerCorpus, EveryFileIsReadOrRefused) {
  int files = 0, valid = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(WICK_SOURCE_DIR "/tests/fuzz/tokenizers")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const bool made = walk_if_valid(bytes);
    ++files;
    valid += made;
    if (entry.path().filename().string().starts_with("seed-")) {
      EXPECT_TRUE(made) << entry.path();
    }
  }
  EXPECT_GE(files, 10);
  EXPECT_GE(valid, 10);
}

}  // namespace
}  // namespace wick::text::test
