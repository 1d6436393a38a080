#pragma once

// The 8-bit floats. gfx942 has the FNUZ formats: one zero, no infinity, and 0x80 as the only NaN.
// gfx950 and gfx12 have those of the Open Compute Project (OCP): signed zeros, and infinities in
// the format with two bits of fraction only.

#include <array>
#include <cstring>

#include "emu/exec/numbers.h"

namespace emu {
namespace {

template <int kFractionBits, int kExponentBias, bool kNoSignedZero, bool kInfinite>
struct Float8 {
  static constexpr int kFraction = kFractionBits, kBias = kExponentBias;
  static constexpr bool kFnuz = kNoSignedZero, kHasInfinity = kInfinite;
  /// The largest finite number, and what replaces the magnitudes above it.
  static constexpr uint32_t kMost = kFnuz ? 0x7f : kHasInfinity ? 0x7b : 0x7e;
  static constexpr uint32_t kAbove = kHasInfinity ? 0x7c : 0x7f;
};

using Fp8Fnuz = Float8<3, 8, true, false>;
using Bf8Fnuz = Float8<2, 16, true, false>;
using Fp8Ocp = Float8<3, 7, false, false>;
using Bf8Ocp = Float8<2, 15, false, true>;

template <class Format>
constexpr float value_of_byte(uint32_t byte) {
  const uint32_t magnitude = byte & 0x7f;
  if (Format::kFnuz && byte == 0x80) return __builtin_nanf("");
  if (!Format::kFnuz && magnitude > Format::kMost) {
    const float beyond =
        Format::kHasInfinity && magnitude == Format::kAbove ? __builtin_inff() : __builtin_nanf("");
    return byte >= 0x80 ? -beyond : beyond;
  }
  const int exponent = static_cast<int>(magnitude >> Format::kFraction);
  const uint32_t fraction = magnitude & ((1u << Format::kFraction) - 1);
  const uint32_t hidden = exponent == 0 ? 0 : 1u << Format::kFraction;
  auto value = static_cast<float>(fraction + hidden);
  const int power = (exponent == 0 ? 1 : exponent) - Format::kBias - Format::kFraction;
  for (int i = 0; i < power; ++i) value *= 2;
  for (int i = power; i < 0; ++i) value /= 2;
  return byte >= 0x80 ? -value : value;
}

/// The values of all 256 bytes.
template <class Format>
inline constexpr auto kFloat8Values = [] {
  std::array<float, 256> values{};
  for (uint32_t i = 0; i < 256; ++i) values[i] = value_of_byte<Format>(i);
  return values;
}();

/// Returns the values of the low bytes.
template <class Format>
EMU_INLINE F32 from_float8(U32 bytes) {
  F32 values;
  for (int lane = 0; lane < kLanes; ++lane) {
    values[lane] = kFloat8Values<Format>[bytes[lane] & 0xff];
  }
  return values;
}

enum class Rounding8 : uint8_t { nearest, stochastic };

/// Rounds to 8 bits. kClamp: finite numbers beyond the largest one become the largest one, as with
/// MODE's bit FP16_OVFL. Stochastic rounding adds the upper bits of `seed` below the result's last
/// bit and truncates, so that the mean of the results is the number.
template <class Format, bool kClamp, Rounding8 kRounding>
EMU_INLINE U32 to_float8(F32 x, U32 seed) {
  constexpr uint32_t kInfinity = 0x7f800000;
  constexpr uint32_t kLeast = 128 - Format::kBias;  // f32's exponent of the smallest normal number
  constexpr bool kStochastic = kRounding == Rounding8::stochastic;
  const U32 original = float_bits(absolute(x));
  U32 magnitude = original;
  if (kStochastic) {
    magnitude += seed >> (9 + Format::kFraction);
    magnitude = magnitude >= kInfinity ? splat<U32>(kInfinity - 1) : magnitude;
  }
  U32 exponent = magnitude >> 23;
  exponent = exponent < kLeast ? splat<U32>(kLeast) : exponent;
  // In units of the result's last bit.
  const F32 units =
      bits_as<F32>(magnitude) * bits_as<F32>((254 + Format::kFraction - exponent) << 23);
  const F32 whole =
      kStochastic ? __builtin_elementwise_trunc(units) : __builtin_elementwise_roundeven(units);
  const U32 code = ((exponent - kLeast) << Format::kFraction) + bits_as<U32>(convert<I32>(whole));
  const auto beyond = (original >= kInfinity) | (code > Format::kMost);
  U32 result = code;
  if (kClamp) result = beyond ? splat<U32>(Format::kMost) : result;
  const auto lost = kClamp ? original >= kInfinity : beyond;
  result = lost ? splat<U32>(Format::kAbove) : result;
  result = original > kInfinity ? splat<U32>(0x7f) : result;
  const U32 sign = float_bits(x) >> 24 & 0x80;
  if constexpr (Format::kFnuz) {
    const U32 with_sign = result == 0 ? splat<U32>(0) : result | sign;
    return lost ? splat<U32>(0x80) : with_sign;
  }
  return result | sign;
}

}  // namespace
}  // namespace emu
