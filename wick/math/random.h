#pragma once

// Counter-based random numbers. The i-th number is a function of (seed, i), so every backend and
// every partition of the work draws the same numbers.

#include "wick/math/fn.h"

namespace wick::math {

/// Four 32-bit words: the counter before philox(), random bits after it.
struct Philox4 {
  u32 v[4];
};

namespace detail {

/// The halves of a product.
struct Halves {
  u32 high, low;
};
WICK_FN Halves multiply(u32 a, u32 b) {
#if WICK_FN_NVCC_DEVICE
  // With a product in u64, nvcc carries all words of philox() as 64-bit numbers.
  Halves h;
  asm("{\n\t.reg .b64 p;\n\tmul.wide.u32 p, %2, %3;\n\tmov.b64 {%0, %1}, p;\n\t}"
      : "=r"(h.low), "=r"(h.high)
      : "r"(a), "r"(b));
  return h;
#else
  const u64 product = u64{a} * b;
  return {static_cast<u32>(product >> 32), static_cast<u32>(product)};
#endif
}

}  // namespace detail

/// Philox4x32-10: the random block of a 128-bit counter and a 64-bit key. Every input; exact.
/// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
/// (SC11).
WICK_FN Philox4 philox(Philox4 counter, u64 key) {
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  u32 c0 = counter.v[0], c1 = counter.v[1], c2 = counter.v[2], c3 = counter.v[3];
  for (int round = 0; round < 10; ++round) {
    const detail::Halves a = detail::multiply(0xd2511f53u, c0);
    const detail::Halves b = detail::multiply(0xcd9e8d57u, c2);
    c0 = b.high ^ c1 ^ k0;
    c1 = b.low;
    c2 = a.high ^ c3 ^ k1;
    c3 = a.low;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

/// The i-th block of four random words in a stream of a seed. Every input; exact.
WICK_FN Philox4 philox(u64 seed, u64 stream, u64 i) {
  return philox(Philox4{{static_cast<u32>(i), static_cast<u32>(i >> 32), static_cast<u32>(stream),
                         static_cast<u32>(stream >> 32)}},
                seed);
}

/// A float in [0, 1) from the upper 24 bits of a random word: a multiple of 2^-24. Exact.
WICK_FN float uniform_f32(u32 bits) {
  return static_cast<float>(static_cast<i32>(bits >> 8)) * 0x1p-24f;
}

/// A double in [0, 1) from 53 bits of two random words: a multiple of 2^-53. Exact.
WICK_FN double uniform_f64(u32 high, u32 low) {
  const u64 mantissa = (u64{high} << 32 | low) >> 12;
  const double half = (low >> 11 & 1u) != 0 ? 0x1p-53 : 0.0;
  return (bits_f64(0x3ff0000000000000u | mantissa) - 1.0) + half;  // no 64-bit conversion
}

}  // namespace wick::math
