// Digests of the examples in FIPS 180-4, with the input split in different ways.

#include "wick/base/sha256.h"

#include <gtest/gtest.h>

namespace wick {
namespace {

std::string sha256(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return hex(sum.finish());
}

TEST(Sha256, GivesTheStandardsDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TakesPiecesOfAnyLength) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t length = 50; length < 140; ++length) {
    const std::string_view all = std::string_view(text).substr(0, length);
    const std::string whole = sha256(all);
    for (size_t cut = 0; cut <= length; cut += 3) {
      Sha256 sum;
      sum.add(all.substr(0, cut));
      sum.add(all.substr(cut));
      ASSERT_EQ(hex(sum.finish()), whole) << length << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace wick
