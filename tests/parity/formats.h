#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tests/powers.h"
#include "wick/base/dtype.h"

namespace wick::parity {

/// A binary floating-point format, for a reference that shares no code with the kernels.
struct FloatFormat {
  int precision;      ///< significant bits, including the hidden one
  int min_exponent;   ///< exponent of the smallest normal number, as in 1.x * 2^e
  long double max;    ///< largest finite number
  bool has_infinity;  ///< if false, numbers that are too large become max
};

inline FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return {8, -126, 0x1.fep127L, true};
    case DType::f16:
      return {11, -14, 65504.0L, true};
    case DType::f32:
      return {24, -126, 0x1.fffffep127L, true};
    case DType::f64:
      return {53, -1022, 0x1.fffffffffffffp1023L, true};
    default:
      return {4, -6, 448.0L, false};  // f8e4m3
  }
}

/// Returns the bits of an element, zero-extended.
inline uint64_t load_bits(DType dtype, const void* element) {
  const auto load = [element](auto bits) -> uint64_t {
    std::memcpy(&bits, element, sizeof bits);
    return bits;
  };
  switch (info(dtype).block_bytes) {
    case 1:
      return load(uint8_t{});
    case 2:
      return load(uint16_t{});
    case 4:
      return load(uint32_t{});
    default:
      return load(uint64_t{});
  }
}

/// Returns the number that the bits of a real dtype represent (exactly for i64, since long double
/// has 64 bits).
inline long double decode(DType dtype, uint64_t bits) {
  auto parts = [bits](int exponent_bits, int fraction_bits, bool ieee) -> long double {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const auto fraction = static_cast<long double>(bits & ((uint64_t{1} << fraction_bits) - 1));
    const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const bool negative = (bits >> (exponent_bits + fraction_bits)) & 1;
    const bool top = exponent == (1 << exponent_bits) - 1;
    long double magnitude;
    if (top && ieee) {
      magnitude = fraction == 0 ? std::numeric_limits<long double>::infinity()
                                : std::numeric_limits<long double>::quiet_NaN();
    } else if (top && !ieee && (bits & 0x7f) == 0x7f) {
      magnitude = std::numeric_limits<long double>::quiet_NaN();
    } else if (exponent == 0) {
      magnitude = fraction * test::power_of_two(1 - bias - fraction_bits);
    } else {
      magnitude = (fraction + test::power_of_two(fraction_bits)) *
                  test::power_of_two(exponent - bias - fraction_bits);
    }
    return negative ? -magnitude : magnitude;
  };
  switch (dtype) {
    case DType::boolean:
    case DType::u8:
      return static_cast<uint8_t>(bits);
    case DType::u32:
      return static_cast<uint32_t>(bits);
    case DType::i16:
      return static_cast<int16_t>(bits);
    case DType::i32:
      return static_cast<int32_t>(bits);
    case DType::i64:
      return static_cast<long double>(static_cast<int64_t>(bits));
    case DType::bf16:
      return parts(8, 7, true);
    case DType::f16:
      return parts(5, 10, true);
    case DType::f32:
      return parts(8, 23, true);
    case DType::f64:
      return parts(11, 52, true);
    default:
      return parts(4, 3, false);
  }
}

/// Returns the value of an integer dtype's bits.
inline int64_t decode_int(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8:
      return static_cast<uint8_t>(bits);
    case DType::u32:
      return static_cast<uint32_t>(bits);
    case DType::i16:
      return static_cast<int16_t>(bits);
    case DType::i32:
      return static_cast<int32_t>(bits);
    default:
      return static_cast<int64_t>(bits);
  }
}

/// Returns the exponent of the distance between adjacent numbers of the format in the binade of x.
inline int ulp_exponent(const FloatFormat& f, long double x) {
  const long double magnitude = std::fabs(x);
  int exponent = f.min_exponent;
  if (magnitude >= f.max) {
    exponent = test::exponent_of(f.max);
  } else if (magnitude > 0) {
    exponent = std::max(test::exponent_of(magnitude), f.min_exponent);
  }
  return exponent - f.precision + 1;
}

/// Returns the distance between adjacent numbers of the format in the binade of x.
inline long double ulp(DType dtype, long double x) {
  return test::power_of_two(ulp_exponent(format_of(dtype), x));
}

/// Returns x rounded to the nearest number of the format, ties to even.
inline long double round_to(DType dtype, long double x) {
  const FloatFormat f = format_of(dtype);
  if (std::isnan(x) || x == 0) return x;
  const int step = ulp_exponent(f, x);
  long double y = std::fabs(x);
  if (!std::isinf(y)) {
    y = test::to_nearest_integer(y * test::power_of_two(-step)) * test::power_of_two(step);
  }
  if (y > f.max) y = f.has_infinity ? std::numeric_limits<long double>::infinity() : f.max;
  return std::copysign(y, x);
}

/// Returns the bits of the float dtype's number to which x rounds. NaN becomes some NaN.
inline uint64_t encode(DType dtype, long double x) {
  const FloatFormat f = format_of(dtype);
  const int fraction_bits = f.precision - 1;
  const int width = info(dtype).block_bytes * 8;
  const uint64_t sign = std::signbit(x) ? uint64_t{1} << (width - 1) : 0;
  const uint64_t all = ~uint64_t{0} >> (65 - width);
  if (std::isnan(x)) return sign | all;
  const long double y = std::fabs(round_to(dtype, x));
  if (std::isinf(y)) return sign | (all >> fraction_bits << fraction_bits);
  if (y == 0) return sign;
  const int exponent = std::max(test::exponent_of(y), f.min_exponent);
  const auto significand = static_cast<uint64_t>(y * test::power_of_two(fraction_bits - exponent));
  // The hidden bit of a normal number carries into the exponent field; a denormal has no hidden
  // bit.
  const auto field = static_cast<uint64_t>(exponent - f.min_exponent);
  return sign | ((field << fraction_bits) + significand);
}

/// Returns whether `got` is a valid result for the exact value: NaN if it is NaN, the zero of equal
/// sign if it is zero, and otherwise within `ulps` units in the last place.
inline bool close(DType dtype, long double got, long double exact, long double ulps) {
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) == std::isnan(got);
  if (exact == 0 && got == 0) return std::signbit(exact) == std::signbit(got);
  const FloatFormat f = format_of(dtype);
  const long double beyond = f.has_infinity ? f.max + ulp(dtype, f.max) : f.max;
  auto bounded = [&](long double v) {
    return std::fabs(v) > beyond ? std::copysign(beyond, v) : v;
  };
  return std::fabs(bounded(got) - bounded(exact)) <= ulps * ulp(dtype, exact);
}

}  // namespace wick::parity
