#pragma once

#include <cstdint>

#include "wick/base/dtype.h"

namespace wick::cpu {

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

/// The neighbours in the codebook of a dtype, made by the first call, which takes some 20 ms. The
/// levels are those of LatticeFormat (lattice.h). The dtype must be one of iq1 to iq3.
Neighbours neighbours_of(DType dtype);

}  // namespace wick::cpu
