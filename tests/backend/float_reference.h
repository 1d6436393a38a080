#pragma once

// Values, references and the checker of the `bound` class for matrix products. Written without the
// library's conversions.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/powers.h"
#include "wick/base/dtype.h"
#include "wick/base/layout.h"

namespace wick::test {

/// The sizes of the exponent and mantissa of a float dtype.
struct FloatFormat {
  int mantissa_bits, min_exponent, exponent_bias, exponent_bits;
  double largest;
};

inline FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return {7, -126, 127, 8, 0x1.fep127};
    case DType::f16:
      return {10, -14, 15, 5, 65504};
    case DType::f8e4m3:
      return {3, -6, 7, 4, 448};
    case DType::f64:
      return {52, -1022, 1023, 11, std::numeric_limits<double>::max()};
    default:
      return {23, -126, 127, 8, 0x1.fffffep127};
  }
}

/// Returns x * 2^exponent, which must be representable in double.
inline double scaled(double x, int exponent) {
  return static_cast<double>(x * power_of_two(exponent));
}

inline double ulp(DType dtype, double x) {
  const FloatFormat format = format_of(dtype);
  const int exponent = x == 0 ? format.min_exponent : std::max(exponent_of(x), format.min_exponent);
  return scaled(1, exponent - format.mantissa_bits);
}

/// Rounds to a float dtype's grid, ties to even, without an upper limit.
inline double round_to(DType dtype, double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const double unit = ulp(dtype, x);
  return std::nearbyint(x / unit) * unit;
}

/// Returns the bits of a value on the dtype's grid that is finite and normal, or zero.
inline uint64_t encode(DType dtype, double x) {
  const FloatFormat format = format_of(dtype);
  const int size = info(dtype).block_bytes * 8;
  const uint64_t sign = std::signbit(x) ? uint64_t{1} << (size - 1) : 0;
  if (x == 0) return sign;
  const int exponent = exponent_of(x);
  const double mantissa = scaled(std::fabs(x), format.mantissa_bits - exponent);
  const auto fraction =
      static_cast<uint64_t>(mantissa) & ((uint64_t{1} << format.mantissa_bits) - 1);
  return sign | static_cast<uint64_t>(exponent + format.exponent_bias) << format.mantissa_bits |
         fraction;
}

/// Returns the value of a float dtype's bits. f8e4m3 has NaN but no infinity.
inline double decode(DType dtype, uint64_t bits) {
  const FloatFormat format = format_of(dtype);
  const int size = info(dtype).block_bytes * 8;
  const double sign = (bits >> (size - 1) & 1) != 0 ? -1 : 1;
  const auto top = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & top;
  const uint64_t fraction = bits & ((uint64_t{1} << format.mantissa_bits) - 1);
  const double value = static_cast<double>(fraction);
  if (dtype == DType::f8e4m3) {
    if (exponent == top && fraction == 7) return std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == top) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * scaled(value, format.min_exponent - format.mantissa_bits);
  const double mantissa = value + scaled(1, format.mantissa_bits);
  return sign * scaled(mantissa, exponent - format.exponent_bias - format.mantissa_bits);
}

/// Returns a stateless random 64-bit number.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Returns random bits of a dtype: floats on their grid in ±[2^-4, 1), integers of any pattern.
inline uint64_t random_bits(DType dtype, uint64_t seed) {
  const uint64_t r = mix(seed);
  if (is_integer(dtype)) return r;
  const double size = 0.0625 + 0.9375 * static_cast<double>(r >> 12) * 0x1p-52;
  // The number is normal in every dtype, so it is rounded to the nearest, ties to even, by an
  // integer addition and a shift of its bits. A carry out of the mantissa increments the exponent.
  const FloatFormat format = format_of(dtype);
  const int dropped = 52 - format.mantissa_bits;
  uint64_t bits = std::bit_cast<uint64_t>(size);
  if (dropped > 0) bits += (uint64_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
  bits >>= dropped;
  const uint64_t sign = (r & 1) << (info(dtype).block_bytes * 8 - 1);
  return sign |
         (bits - (static_cast<uint64_t>(1023 - format.exponent_bias) << format.mantissa_bits));
}

inline uint64_t read_bits(DType dtype, const void* data, int64_t index) {
  const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + index * static_cast<int64_t>(bytes), bytes);
  return bits;
}
inline void write_bits(DType dtype, void* data, int64_t index, uint64_t bits) {
  const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(bytes), &bits, bytes);
}

/// The true value of one output, and Σ|aᵢbᵢ|.
struct Truth {
  long double value = 0, magnitude = 0;
};

/// Checks the class `bound`: the error is at most half an ulp of the output plus 4·√k·u·Σ|aᵢbᵢ|,
/// with u = 2^-24 (2^-53 for f64). NaN must be NaN. Returns an empty string on success.
inline std::string outside_bound(DType dtype, double got, const Truth& truth, int64_t k) {
  const double want = static_cast<double>(truth.value);
  const double largest = format_of(dtype).largest;
  const auto report = [&](double limit) {
    return "got " + std::to_string(got) + ", want " + std::to_string(want) + " within " +
           std::to_string(limit);
  };
  if (std::isnan(want)) return std::isnan(got) ? "" : report(0);
  if (std::isinf(want)) return got == want ? "" : report(0);
  const double u = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double limit =
      0.5 * ulp(dtype, std::max(std::fabs(want), std::fabs(got))) +
      4 * std::sqrt(static_cast<double>(k)) * u * static_cast<double>(truth.magnitude);
  const long double error = std::fabs(static_cast<long double>(got) -
                                      std::clamp<long double>(truth.value, -largest, largest));
  return error <= limit ? "" : report(limit);
}

/// Memory for a layout: its storage, including the elements that the layout doesn't reach.
struct Buffer {
  DType dtype;
  Layout layout;
  std::vector<char> bytes;

  Buffer(DType d, const Layout& l, int64_t storage_elems)
      : dtype(d),
        layout(l),
        bytes(static_cast<size_t>(storage_elems * info(d).block_bytes), char{0x5a}) {}
  int64_t storage_elems() const {
    return static_cast<int64_t>(bytes.size()) / info(dtype).block_bytes;
  }
  uint64_t get(int64_t index) const { return read_bits(dtype, bytes.data(), index); }
  void set(int64_t index, uint64_t bits) { write_bits(dtype, bytes.data(), index, bits); }
};

}  // namespace wick::test
