#pragma once

#include <cstdint>

#include "wick/base/dtype.h"

namespace wick::cpu {

// Levels of codebooks, with the factor that the format gives them. An entry has kGroup codes of
// kBits bits.

/// 8, 25 or 43 eighths.
struct TwoBitLevels {
  static constexpr int kGroup = 8, kBits = 2, kCount = 3;
  static constexpr float kValues[kCount] = {1.0f, 3.125f, 5.375f};
};
/// −1, 0 or 1, to which 1/8 is added or from which it is subtracted.
struct OneBitLevels {
  static constexpr int kGroup = 8, kBits = 2, kCount = 3;
  static constexpr float kValues[kCount] = {-1.0f, 0.0f, 1.0f};
};
/// 4, 12, … 52 or 62 quarters.
struct ThreeBitLevels {
  static constexpr int kGroup = 4, kBits = 3, kCount = 8;
  static constexpr float kValues[kCount] = {1, 3, 5, 7, 9, 11, 13, 15.5f};
};
/// 1, 3, … 15.
struct OddThreeBitLevels {
  static constexpr int kGroup = 4, kBits = 3, kCount = 8;
  static constexpr float kValues[kCount] = {1, 3, 5, 7, 9, 11, 13, 15};
};

/// A codebook (wick/math/codebooks.h) for the search of its nearest entries. A group of codes, one
/// for each value of an entry, has the number Σ code·base^i, where base is the number of levels.
struct Neighbours {
  static constexpr int kNear = 16;

  const float* levels;      ///< the levels of each entry
  const int16_t* entry_of;  ///< for each group's number, the entry with its codes; −1: none
  /// For each group's number, the kNear entries with the least Σ (difference of codes)², the
  /// nearest first: the entry above 16 bits of its codes.
  const uint32_t* near;
};

/// The neighbours in the codebook of a dtype, made by the first call, which takes some 20 ms.
/// Errors: the dtype isn't one of iq1 to iq3.
Neighbours neighbours_of(DType dtype);

}  // namespace wick::cpu
