// UTF-8: appending characters and checking bytes.
#include "wick/base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wick {
namespace {

TEST(Utf8, AppendsCharacters) {
  const std::vector<std::pair<char32_t, std::string>> characters = {
      {0, std::string(1, '\0')},     {0x7f, "\x7f"},           {0x80, "\xc2\x80"},
      {0x7ff, "\xdf\xbf"},           {0x800, "\xe0\xa0\x80"},  {0xd7ff, "\xed\x9f\xbf"},
      {0xe000, "\xee\x80\x80"},      {0xffff, "\xef\xbf\xbf"}, {0x10000, "\xf0\x90\x80\x80"},
      {0x10ffff, "\xf4\x8f\xbf\xbf"}};
  std::string all, wanted;
  for (const auto& [point, bytes] : characters) {
    append_utf8(all, point);
    wanted += bytes;
  }
  EXPECT_EQ(all, wanted);
}

TEST(Utf8, EveryCharacterIsWellFormed) {
  for (char32_t point = 0; point <= 0x110000; ++point) {
    std::string bytes;
    append_utf8(bytes, point);
    const Utf8Step step = utf8_step(bytes);
    const bool whole = step.kind == Utf8Step::valid && step.length == bytes.size();
    ASSERT_EQ(whole, is_character(point)) << static_cast<uint32_t>(point);
  }
}

}  // namespace
}  // namespace wick
