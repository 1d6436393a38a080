// Checksums of bytes in pieces, and of damaged bytes.
#include "wick/base/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace wick {
namespace {

uint64_t checksum(std::string_view bytes) {
  Checksum sum;
  sum.add(std::as_bytes(std::span(bytes)));
  return sum.value();
}

std::string some_bytes(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(i * i * 7 + 3);
  return bytes;
}

/// The polynomial of checksum.h, one product of 128 bits after the other.
uint64_t by_definition(std::string_view bytes) {
  constexpr unsigned __int128 kPrime = (uint64_t{1} << 61) - 1;
  constexpr unsigned __int128 kBase = 0x0d3f5b79a2c4e68fULL;
  unsigned __int128 sum = 0;
  for (size_t at = 0; at < bytes.size() || at == 0; at += 7) {
    uint64_t word = 0;
    for (size_t i = 0; i < 7 && at + i < bytes.size(); ++i) {
      word |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    sum = (sum + word) * kBase % kPrime;
  }
  // A last word of zeros follows whole words.
  if (!bytes.empty() && bytes.size() % 7 == 0) sum = sum * kBase % kPrime;
  return static_cast<uint64_t>((sum + bytes.size()) * kBase % kPrime);
}

TEST(Checksum, IsThePolynomial) {
  for (const size_t count : {0, 1, 6, 7, 8, 14, 15, 100, 5000}) {
    EXPECT_EQ(checksum(some_bytes(count)), by_definition(some_bytes(count))) << count;
    EXPECT_EQ(checksum(std::string(count, '\xff')), by_definition(std::string(count, '\xff')));
  }
}

TEST(Checksum, TakesPiecesOfAnyLength) {
  const std::string bytes = some_bytes(200);
  for (size_t first = 0; first <= 30; ++first) {
    for (size_t second = 0; second <= 30; ++second) {
      const std::string_view all = bytes;
      Checksum sum;
      for (const std::string_view piece :
           {all.substr(0, first), all.substr(first, second), all.substr(first + second)}) {
        sum.add(std::as_bytes(std::span(piece)));
      }
      EXPECT_EQ(sum.value(), checksum(bytes));
    }
  }
}

TEST(Checksum, SeesEveryBitAndTheLength) {
  const std::string bytes = some_bytes(60);
  const uint64_t sum = checksum(bytes);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = bytes;
      bad[at] = static_cast<char>(static_cast<unsigned>(bad[at]) ^ (1U << bit));
      EXPECT_NE(checksum(bad), sum);
    }
  }
  for (size_t zeros = 0; zeros < 20; ++zeros) {
    EXPECT_NE(checksum(std::string(zeros, '\0')), checksum(std::string(zeros + 1, '\0')));
  }
}

}  // namespace
}  // namespace wick
