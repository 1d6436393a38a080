#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// SHA-256 of data that is added in pieces. Source: FIPS 180-4.
class WICK_API Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  /// Returns the digest of all bytes added. Nothing may be added afterwards.
  std::array<uint8_t, 32> finish();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> rest_ = {};
  uint64_t length_ = 0;
};

/// The digest as 64 lower-case hexadecimal digits.
WICK_API std::string hex(const std::array<uint8_t, 32>& digest);

}  // namespace wick
