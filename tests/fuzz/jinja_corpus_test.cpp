// Replays the corpus of jinja_fuzz, which consists of seeds and finds, in every build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/jinja_render.h"

namespace wick::text::jinja::test {
namespace {

TEST(JinjaCorpus, EveryFileIsRenderedOrRefused) {
  int rendered = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(WICK_SOURCE_DIR "/tests/fuzz/jinja_corpus")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string source{std::istreambuf_iterator<char>(in), {}};
    const bool valid = render_if_valid(source);
    rendered += valid;
    if (entry.path().filename().string().starts_with("seed-")) {
      EXPECT_TRUE(valid) << entry.path();
    }
  }
  EXPECT_GE(rendered, 5);
}

}  // namespace
}  // namespace wick::text::jinja::test
