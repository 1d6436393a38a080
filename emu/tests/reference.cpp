#include "emu/tests/reference.h"

namespace emu::test {
namespace {

/// Returns a finite f16 as an integer multiple of 2^-24.
i64 fixed(half x) {
  const auto bits = static_cast<u16>(to_bits(x));
  const int exponent = bits >> 10 & 31;
  const i64 mantissa = (bits & 0x3ff) | (exponent != 0 ? 0x400 : 0);
  const i64 value = mantissa << (exponent != 0 ? exponent - 1 : 0);
  return bits >> 15 != 0 ? -value : value;
}

bool finite(half x) { return (to_bits(x) & 0x7c00) != 0x7c00; }

}  // namespace

half half_from_fixed(__int128 value, int exponent, bool negative_zero) {
  bool negative = value < 0;
  if (value == 0) negative = negative_zero;
  unsigned __int128 magnitude = static_cast<unsigned __int128>(value < 0 ? -value : value);
  // Converts to units of 2^-24 with eleven mantissa bits, rounding once.
  int shift = -24 - exponent;
  int width = 0;
  for (unsigned __int128 rest = magnitude; rest != 0; rest >>= 1) ++width;
  if (width - shift > 11) shift = width - 11;
  unsigned __int128 kept = shift > 0 ? magnitude >> shift : magnitude << -shift;
  if (shift > 0) {
    const unsigned __int128 rest = magnitude - (kept << shift),
                            tie = (unsigned __int128){1} << (shift - 1);
    if (rest > tie || (rest == tie && (kept & 1) != 0)) ++kept;
  }
  const double result = std::ldexp(static_cast<double>(static_cast<u64>(kept)), shift + exponent);
  const half rounded =
      result > 65504 ? std::numeric_limits<float>::infinity() : static_cast<half>(result);
  return negative ? -rounded : rounded;
}

half half_fma(half a, half b, half c) {
  if (!finite(a) || !finite(b) || !finite(c)) {
    return static_cast<half>(static_cast<float>(a) * static_cast<float>(b) + static_cast<float>(c));
  }
  const __int128 sum = __int128{fixed(a)} * fixed(b) + (__int128{fixed(c)} << 24);
  const bool product_negative = sign_of(a) != sign_of(b);
  return half_from_fixed(sum, -48, product_negative && sign_of(c));
}

half half_nearest(double x) {
  if (x != x || std::isinf(x)) return static_cast<half>(x);
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  if (exponent < -60) return static_cast<half>(std::copysign(0.0, x));
  if (exponent > 20) return static_cast<half>(std::copysign(1.0, x) * HUGE_VAL);
  return half_from_fixed(static_cast<__int128>(std::ldexp(mantissa, 60)), exponent - 60,
                         std::signbit(x));
}

half half_towards_zero(float x) {
  if (x != x || std::isinf(x)) return static_cast<half>(x);
  const half nearest = half_nearest(x);
  if (std::abs(static_cast<double>(nearest)) <= std::abs(static_cast<double>(x))) return nearest;
  return from_bits<half>(to_bits(nearest) - 1);  // infinity becomes the largest finite number
}

float bf16_value(u16 bits) { return from_bits<float>(u32{bits} << 16); }

}  // namespace emu::test
