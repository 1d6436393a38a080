#pragma once

// Reference values for wick/math: MPFR, and the C library's double functions as a fast reference
// for f32. The latter have an error of some 1e-9 ulp of a float; oracle_test.cpp checks them with
// MPFR.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/math/loops.h"

namespace wick::math_test {

/// Returns f(x) or f(x, y) rounded to double from 160 bits.
double true_value(Unary f, double x);
double true_value(Binary f, double x, double y);

/// fast_value returns f computed by the C library in double, whose error is far below an ulp of
/// float for every float. fast_error returns the largest relative error.
double fast_value(Unary f, double x);
double fast_value(Binary f, double x, double y);
double fast_error(Unary f);

/// Returns |got − want| in ulps of float in want's binade. Infinite if NaN, infinity or the sign of
/// zero differ. If want ≥ 2^128, infinity is expected.
double ulp_error(float got, double want);

/// Returns |got − f(x)| in ulps of double, using 160 bits of f(x).
double ulp_error_f64(Unary f, double x, double got);
double ulp_error_f64(Binary f, double x, double y, double got);

/// The largest error in ulps a function may have: a little above the worst that was measured (the
/// comments in wick/math), 0.5 for the correctly rounded ones and 0 for the exact ones.
double limit_f32(Unary f);
double limit_f32(Binary f);
double limit_f64(Unary f);
double limit_f64(Binary f);

/// The loops that this CPU can run.
struct NamedLoops {
  std::string name;
  const Loops* loops;
  bool calls_fma;  // there is no fma instruction: each fma calls the C library
};
std::vector<NamedLoops> available_loops();

/// A small float format by enumeration: the values of its patterns, and the nearest pattern to a
/// number, without bit manipulation.
class SmallFloat {
 public:
  SmallFloat(int exponent_bits, int mantissa_bits, bool has_infinity);

  /// Returns the value of a pattern, including NaN and infinities.
  double value(std::uint32_t bits) const;
  /// Returns the pattern nearest to x, with ties to the even pattern, and overflow and NaN as in
  /// the format.
  std::uint32_t nearest(long double x) const;

  std::uint32_t patterns() const {
    return std::uint32_t{1} << (exponent_bits_ + mantissa_bits_ + 1);
  }
  std::uint32_t sign_bit() const { return patterns() / 2; }
  bool is_nan(std::uint32_t bits) const { return value(bits) != value(bits); }

 private:
  int exponent_bits_, mantissa_bits_;
  bool has_infinity_;
  std::vector<double> finite_;  // the non-negative finite values in the order of their patterns
};

const SmallFloat& small_f16();
const SmallFloat& small_bf16();
const SmallFloat& small_f8e4m3();
/// Returns the formats of kF16, kBF16 and kF8E4M3, and null for other dtypes.
const SmallFloat* small_float(Real dtype);

}  // namespace wick::math_test
