#include "wick/base/printable.h"

#include <gtest/gtest.h>

namespace wick::test {
namespace {

TEST(Printable, LeavesTextAlone) {
  EXPECT_EQ(printable("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
  EXPECT_EQ(printable("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, EscapesControlsAndBackslashes) {
  EXPECT_EQ(printable(std::string_view("a\0b\n\t\r\x1b\x7f\\", 9)),
            "a\\x00b\\n\\t\\r\\x1b\\x7f\\\\");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1 control character
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");  // line separator
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");                    // overlong encoding
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");  // beyond U+10FFFF
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(printable("abcdef", 3), "abc…");
  EXPECT_EQ(printable("ab\xc3\xa9", 3), "ab…");  // never cuts within a character
  EXPECT_EQ(printable("abc", 3), "abc");
}

}  // namespace
}  // namespace wick::test
