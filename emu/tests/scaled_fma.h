#pragma once

// The reference of v_div_fmas.

#include <bit>
#include <cmath>

namespace emu::test {

/// Returns (a * b + c) * 2^exponent, rounded once even if the result is a denormal.
template <class T>
T scaled_fma(T a, T b, T c, int exponent) {
  using Wide = __float128;
  using Bits = unsigned __int128;
  if (!std::isfinite(std::fma(a, b, c))) return std::fma(a, b, c);
  const Wide product = Wide{a} * Wide{b}, sum = product + Wide{c};
  const Wide added = sum - product;
  const Wide error = (product - (sum - added)) + (Wide{c} - added);
  // Rounds to odd first, so that the second rounding sees whether the sum is exact.
  auto bits = std::bit_cast<Bits>(sum);
  if (error != 0 && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? Bits{1} : ~Bits{0};
  return static_cast<T>(std::bit_cast<Wide>(bits) * Wide{std::ldexp(1.0, exponent)});
}

}  // namespace emu::test
