#pragma once

// 16-bit and 8-bit floats as storage types, and the casts between the ten real dtypes. Branch-free;
// each conversion rounds once, to nearest with ties to even.

#include "wick/math/fn.h"

namespace wick::math {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa bits.
struct f16 {
  u16 bits;
};
/// The upper half of a binary32: 1 sign, 8 exponent, 7 mantissa bits.
struct bf16 {
  u16 bits;
};
/// OCP FP8 E4M3: 1 sign, 4 exponent (bias 7), 3 mantissa bits; no infinity, NaN is 0x7f, largest
/// 448. Source: OCP 8-bit Floating Point Specification, revision 1.0.
struct f8e4m3 {
  u8 bits;
};
static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2 && sizeof(f8e4m3) == 1);

/// The value as a float. Every bit pattern; exact.
WICK_FN float to_f32(f16 x) {
#if WICK_FN_NVCC_DEVICE
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#elif WICK_FN_AMD_DEVICE
  return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
#else
  const u32 b = x.bits;
  const u32 magnitude = (b & 0x7fffu) << 13;
  const bool denormal = magnitude < 0x00800000u;
  const bool special = magnitude >= 0x0f800000u;
  // A denormal becomes 2^-14 + value, and then 2^-14 is subtracted, so that no denormal is ever an
  // operand.
  const u32 rebias = denormal ? 0x38800000u : (special ? 0x70000000u : 0x38000000u);
  const float y = bits_f32(magnitude + rebias) - (denormal ? 0x1p-14f : 0.0f);
  return bits_f32(f32_bits(y) | (b & 0x8000u) << 16);
#endif
}
WICK_FN float to_f32(bf16 x) { return bits_f32(u32{x.bits} << 16); }
WICK_FN float to_f32(f8e4m3 x) {
  const u32 b = x.bits;
  const u32 magnitude = (b & 0x7fu) << 20;
  const bool denormal = magnitude < 0x00800000u;
  const bool nan = magnitude == 0x07f00000u;
  const u32 rebias = denormal ? 0x3c800000u : (nan ? 0x78000000u : 0x3c000000u);
  const float y = bits_f32(magnitude + rebias) - (denormal ? 0x1p-6f : 0.0f);
  return bits_f32(f32_bits(y) | (b & 0x80u) << 24);
}

namespace detail {

/// Rounds a double to a float by round-to-odd: an inexact result gets an odd last bit, so that a
/// second rounding to at most 22 bits gives the same result as a single rounding. Source: S. Boldo
/// and G. Melquiond, "When double rounding is odd" (IMACS 2005).
WICK_FN float f64_to_f32_odd(double x) {
  const float y = static_cast<float>(x);
  const double back = static_cast<double>(y);
  const u32 b = f32_bits(y);
  const u32 toward_zero = b - ((back < 0.0 ? -back : back) > (x < 0.0 ? -x : x) ? 1u : 0u);
  return bits_f32(toward_zero | (back != x ? 1u : 0u));
}

WICK_FN f16 f16_from(float x) {
#if WICK_FN_NVCC_DEVICE
  u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return {y};
#elif WICK_FN_AMD_DEVICE
  // Hides the origin of x from clang. Otherwise it would divide in f16, which loses the last bits,
  // and turn products into fma with +0, which loses the sign of −0.
  asm("" : "+v"(x));
  return {__builtin_bit_cast(u16, static_cast<_Float16>(x))};
#else
  const u32 b = f32_bits(x);
  const u32 magnitude = b & 0x7fffffffu;
  const u32 finite = magnitude < 0x47800000u ? magnitude : 0x47800000u;  // 2^16 rounds to infinity
  const u32 normal = (finite - 0x38000000u + 0xfffu + ((finite >> 13) & 1u)) >> 13;
  // one ulp of ½ is 2^-24
  const u32 denormal = f32_bits(bits_f32(finite) + 0.5f) - 0x3f000000u;
  u32 y = finite < 0x38800000u ? denormal : normal;
  y = magnitude > 0x7f800000u ? 0x7e00u : y;
  return {static_cast<u16>(y | (b >> 16 & 0x8000u))};
#endif
}

WICK_FN bf16 bf16_from(float x) {
#if WICK_FN_NVCC_DEVICE
  u16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return {y};
#else
  const u32 b = f32_bits(x);
  const u32 rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  return {static_cast<u16>((b & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded)};
#endif
}

WICK_FN f8e4m3 f8e4m3_from(float x) {
  const u32 b = f32_bits(x);
  const u32 magnitude = b & 0x7fffffffu;
  const u32 finite = magnitude < 0x43e00000u ? magnitude : 0x43e00000u;  // 448
  const u32 normal = (finite - 0x3c000000u + 0x7ffffu + ((finite >> 20) & 1u)) >> 20;
  // one ulp there is 2^-9
  const u32 denormal = f32_bits(bits_f32(finite) + 0x1p14f) - 0x46800000u;
  u32 y = finite < 0x3c800000u ? denormal : normal;
  y = magnitude > 0x7f800000u ? 0x7fu : y;
  return {static_cast<u8>(y | (b >> 24 & 0x80u))};
}

}  // namespace detail

/// The nearest value of a storage type, correctly rounded. Every input; f16 and bf16 overflow to
/// infinity, f8e4m3 saturates at ±448; NaN stays NaN.
template <class T>
WICK_FN T from_f32(float x) {
  if constexpr (kSame<T, f16>) {
    return detail::f16_from(x);
  } else if constexpr (kSame<T, bf16>) {
    return detail::bf16_from(x);
  } else {
    static_assert(kSame<T, f8e4m3>);
    return detail::f8e4m3_from(x);
  }
}

/// The nearest value of a storage type, correctly rounded, with the domain of from_f32.
template <class T>
WICK_FN T from_f64(double x) {
  return from_f32<T>(detail::f64_to_f32_odd(x));
}

namespace detail {

template <class T>
inline constexpr bool kStorage = kSame<T, f16> || kSame<T, bf16> || kSame<T, f8e4m3>;
template <class T>
inline constexpr bool kReal = kSame<T, float> || kSame<T, double>;

/// Truncates toward zero and saturates; NaN gives 0.
template <class To, class F>
WICK_FN To saturated(F x) {
  constexpr bool kSigned = static_cast<To>(-1) < static_cast<To>(0);
  if constexpr (sizeof(To) < 4) {  // both limits are exact; i32 gives the shortest code
    constexpr F kMax = kSigned ? F((1 << (8 * sizeof(To) - 1)) - 1) : F((1 << 8 * sizeof(To)) - 1);
    constexpr F kMin = kSigned ? -kMax - F(1) : F(0);
    F y = x < kMax ? x : kMax;
    y = y > kMin ? y : kMin;
    return static_cast<To>(static_cast<i32>(x == x ? y : F(0)));
  } else {
    constexpr int kBits = 8 * static_cast<int>(sizeof(To)) - (kSigned ? 1 : 0);
    constexpr F kEnd = F(u64{1} << (kBits - 1)) * F(2);  // the smallest value that is too large
    constexpr u64 kAll = ~u64{0} >> (64 - kBits);
    const bool inside = (x < kEnd) & (kSigned ? x >= -kEnd : x > F(-1));
    const To y = static_cast<To>(inside ? x : F(0));
    const To low = (kSigned & (x < -kEnd)) ? static_cast<To>(~kAll) : y;
    return x >= kEnd ? static_cast<To>(kAll) : low;
  }
}

/// Converts an integer to a storage type, rounded once.
template <class To, class I>
WICK_FN To storage_from_integer(I x) {
  constexpr bool kSigned = static_cast<I>(-1) < static_cast<I>(0);
  if constexpr (sizeof(I) < 4) {
    return from_f32<To>(static_cast<float>(x));
  } else if constexpr (!kSame<To, bf16>) {
    // Values from 2^16 on overflow or saturate, so the operand is clamped to what a float
    // represents exactly.
    constexpr I kLimit = I{1} << 17;
    I y = x < kLimit ? x : kLimit;
    if constexpr (kSigned) y = y > -kLimit ? y : -kLimit;
    return from_f32<To>(static_cast<float>(static_cast<i32>(y)));
  } else {
    // If the intermediate float (double for i64) would round, rounds to odd at a higher bit first.
    constexpr int kDigits = sizeof(I) == 4 ? 24 : 53;
    constexpr I kExact = I{1} << kDigits;
    constexpr I kUnit = I{1} << (8 * sizeof(I) - kDigits);
    const I odd = (x & ~(kUnit - 1)) | ((x & (kUnit - 1)) != 0 ? kUnit : I{0});
    bool exact = x < kExact;
    if constexpr (kSigned) exact = exact & (x > -kExact);
    const I y = exact ? x : odd;
    if constexpr (sizeof(I) == 4) {
      return from_f32<To>(static_cast<float>(y));
    } else {
      return from_f64<To>(static_cast<double>(y));
    }
  }
}

}  // namespace detail

/// The cast between any two of u8 u32 i16 i32 i64 bf16 f16 f32 f64 f8e4m3. To a float type: rounded
/// once. Float to integer: truncated toward zero, saturated, NaN gives 0. Integer to integer:
/// modulo 2^bits of the target.
template <class To, class From>
WICK_FN To cast(From x) {
  if constexpr (kSame<To, From>) {
    return x;
  } else if constexpr (detail::kStorage<From>) {
    return cast<To>(to_f32(x));
  } else if constexpr (detail::kStorage<To>) {
    if constexpr (kSame<From, float>) {
      return from_f32<To>(x);
    } else if constexpr (kSame<From, double>) {
      return from_f64<To>(x);
    } else {
      return detail::storage_from_integer<To>(x);
    }
  } else if constexpr (detail::kReal<From> && !detail::kReal<To>) {
    return detail::saturated<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace wick::math
