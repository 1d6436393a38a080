#pragma once

// Lane arithmetic that C++ has no operator for: AMD's minimum and maximum, fused 16-bit
// multiplication, saturation, rounding, and access to the fields of a float.

#include "emu/exec/values.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace emu {
namespace {

/// Positions of the fields of a float.
template <class V>
struct Layout {
  using B = Unsigned<V>;
  using E = Element<B>;
  static constexpr int kBits = 8 * sizeof(E);
  static constexpr int kFraction = kBits == 16 ? 10 : kBits == 32 ? 23 : 52;
  static constexpr E kSign = static_cast<E>(E{1} << (kBits - 1));
  static constexpr E kQuiet = static_cast<E>(E{1} << (kFraction - 1));
  static constexpr E kInfinity = static_cast<E>((kSign - 1) & ~((E{1} << kFraction) - 1));
  static constexpr int kBias = kBits == 16 ? 15 : kBits == 32 ? 127 : 1023;
};

template <class V>
EMU_INLINE Unsigned<V> float_bits(V x) {
  return bits_as<Unsigned<V>>(x);
}

template <class V>
EMU_INLINE V absolute(V x) {
  return bits_as<V>(float_bits(x) & static_cast<typename Layout<V>::E>(~Layout<V>::kSign));
}

/// Sets all bits in lanes that hold a NaN. It tests the bits, since a comparison would widen f16.
template <class V>
EMU_INLINE auto is_nan(V x) {
  return float_bits(absolute(x)) > Layout<V>::kInfinity;
}

template <class V>
EMU_INLINE auto is_signalling(V x) {
  return is_nan(x) & ((float_bits(x) & Layout<V>::kQuiet) == 0);
}

template <class V>
EMU_INLINE auto is_infinite(V x) {
  return float_bits(absolute(x)) == Layout<V>::kInfinity;
}

template <class V>
EMU_INLINE auto is_zero(V x) {
  return float_bits(absolute(x)) == 0;
}

template <class V>
EMU_INLINE auto is_negative(V x) {
  return bits_as<Truth<V>>(float_bits(x)) < 0;
}

template <class V>
EMU_INLINE auto is_denormal(V x) {
  const auto magnitude = float_bits(absolute(x));
  using E = typename Layout<V>::E;
  return (magnitude != 0) & (magnitude < static_cast<E>(E{1} << Layout<V>::kFraction));
}

template <class V>
EMU_INLINE V quieted(V x) {
  return bits_as<V>(float_bits(x) | Layout<V>::kQuiet);
}

/// Maps float bits to integers of the same order, with -0 below +0.
template <class V>
EMU_INLINE Truth<V> order(V x) {
  using S = Truth<V>;
  const S bits = bits_as<S>(x);
  constexpr auto kRest = static_cast<Element<S>>(Layout<V>::kSign - 1);
  return bits ^ ((bits >> (Layout<V>::kBits - 1)) & kRest);
}

/// Returns the lesser or greater of a and b. -0 is below +0, and a NaN is ignored unless MODE's
/// IEEE bit is set and the NaN is signalling: then the result is that NaN, quieted.
template <bool kMax, bool kIeee, class V>
EMU_INLINE V pick(V a, V b) {
  const auto a_first = kMax ? order(a) > order(b) : order(a) < order(b);
  V r = a_first ? a : b;
  const auto nan_a = is_nan(a), nan_b = is_nan(b);
  if (lane_mask(nan_a | nan_b) != 0) [[unlikely]] {
    r = nan_a ? b : r;
    r = nan_b ? a : r;
    if constexpr (kIeee) {
      r = is_signalling(b) ? quieted(b) : r;
      r = is_signalling(a) ? quieted(a) : r;
    }
  }
  return r;
}

#if defined(__AVX512DQ__)
template <bool kMax>
EMU_INLINE F32 pick_ieee(F32 a, F32 b) {
  __m512 x[2], y[2];
  __builtin_memcpy(x, &a, sizeof a);
  __builtin_memcpy(y, &b, sizeof b);
  constexpr int kWhich = 4 | kMax;  // the result's sign is kept
  for (int i = 0; i < 2; ++i) x[i] = _mm512_range_ps(x[i], y[i], kWhich);
  __builtin_memcpy(&a, x, sizeof a);
  return a;
}
#endif
template <bool kMax, class V>
EMU_INLINE V pick_ieee(V a, V b) {
  return pick<kMax, true>(a, b);
}

/// Compares numbers: zeros are equal whatever their sign.
template <class V>
EMU_INLINE auto same_number(V a, V b) {
  return (float_bits(a) == float_bits(b)) | (is_zero(a) & is_zero(b));
}

/// Minimum, maximum and median of floats, with or without MODE's IEEE bit.
template <bool kIeee>
struct FloatOrder {
  template <class V>
  EMU_INLINE V least(V a, V b) {
    if constexpr (kIeee)
      return pick_ieee<false>(a, b);
    else
      return pick<false, false>(a, b);
  }
  template <class V>
  EMU_INLINE V most(V a, V b) {
    if constexpr (kIeee)
      return pick_ieee<true>(a, b);
    else
      return pick<true, false>(a, b);
  }
  /// As documented: the larger of the two operands other than the first one that equals the
  /// maximum.
  template <class V>
  EMU_INLINE V middle(V a, V b, V c) {
    const V first = most(most(a, b), c);
    const V without_a = most(b, c), without_b = most(a, c), without_c = most(a, b);
    const V second = same_number(first, a)   ? without_a
                     : same_number(first, b) ? without_b
                                             : without_c;
    const auto nan = is_nan(a) | is_nan(b) | is_nan(c);
    return nan ? least(least(a, b), c) : second;
  }
};

template <class V>
EMU_INLINE V minimum(V a, V b) {
  static_assert(!kIsFloat<V>);
  return a < b ? a : b;
}

template <class V>
EMU_INLINE V maximum(V a, V b) {
  static_assert(!kIsFloat<V>);
  return a > b ? a : b;
}

template <class V>
EMU_INLINE V median(V a, V b, V c) {
  return maximum(minimum(a, b), minimum(maximum(a, b), c));
}

/// Rounds `value` to odd where `error`, the exact result less `value`, isn't zero. Rounding the
/// result again to a narrower type then equals rounding the exact result once.
template <class V>
EMU_INLINE V round_to_odd(V value, V error) {
  using S = Truth<V>;
  const S bits = bits_as<S>(value);
  const S inexact = (error != 0) & ((bits & 1) == 0);
  const S outwards = (bits_as<S>(error) ^ bits) >= 0;
  return bits_as<V>(bits + (inexact & (outwards ? bits_as<S>(splat<S>(1)) : splat<S>(-1))));
}

/// Returns the exact a + b less its rounded value, provided that nothing overflows.
template <class V>
EMU_INLINE V sum_error(V a, V b, V sum) {
  const V b_part = sum - a;
  return (a - (sum - b_part)) + (b - b_part);
}

/// Rounds only once, because the product of two f16 is exact in f32.
EMU_INLINE F32 fma_odd(F16 a, F16 b, F16 c) {
  const F32 product = convert<F32>(a) * convert<F32>(b), addend = convert<F32>(c);
  const F32 sum = product + addend;
  const F32 error = sum_error(product, addend, sum);
  const auto finite = float_bits(absolute(sum)) < 0x7f800000;
  return finite ? round_to_odd(sum, error) : sum;
}

EMU_INLINE F16 fma(F16 a, F16 b, F16 c) { return convert<F16>(fma_odd(a, b, c)); }

template <class V>
EMU_INLINE V round_down(V x) {
  if constexpr (std::is_same_v<V, F16>)
    return convert<F16>(__builtin_elementwise_floor(convert<F32>(x)));
  else
    return __builtin_elementwise_floor(x);
}
template <class V>
EMU_INLINE V round_up(V x) {
  if constexpr (std::is_same_v<V, F16>)
    return convert<F16>(__builtin_elementwise_ceil(convert<F32>(x)));
  else
    return __builtin_elementwise_ceil(x);
}
template <class V>
EMU_INLINE V round_even(V x) {
  if constexpr (std::is_same_v<V, F16>) {
    return convert<F16>(__builtin_elementwise_roundeven(convert<F32>(x)));
  } else {
    return __builtin_elementwise_roundeven(x);
  }
}
template <class V>
EMU_INLINE V round_to_zero(V x) {
  if constexpr (std::is_same_v<V, F16>)
    return convert<F16>(__builtin_elementwise_trunc(convert<F32>(x)));
  else
    return __builtin_elementwise_trunc(x);
}

/// Truncates and clamps to [low, high]; NaN becomes 0.
template <class To, class V>
EMU_INLINE To saturate(V x, Element<V> low, Element<V> high) {
  V t = x > splat<V>(low) ? x : splat<V>(low);
  t = t < splat<V>(high) ? t : splat<V>(high);
  t = x == x ? t : splat<V>(0);
  return convert<To>(t);
}

EMU_INLINE I32 to_i32(F32 x) {
  const I32 in_range = convert<I32>(x < 2147483648.0f ? x : splat<F32>(0));
  const I32 clipped = x >= 2147483648.0f ? splat<I32>(0x7fffffff) : in_range;
  const I32 low = x < -2147483648.0f ? splat<I32>(-0x7fffffff - 1) : clipped;
  return x == x ? low : splat<I32>(0);
}

EMU_INLINE U32 to_u32(F32 x) {
  const F32 positive = x > 0.0f ? x : splat<F32>(0);  // also maps NaN to 0
  const auto big = positive >= 2147483648.0f;
  const F32 reduced = big ? positive - 2147483648.0f : positive;
  const U32 whole = bits_as<U32>(convert<I32>(reduced < 2147483648.0f ? reduced : splat<F32>(0)));
  const U32 result = big ? whole | 0x80000000u : whole;
  return positive >= 4294967296.0f ? splat<U32>(~0u) : result;
}

EMU_INLINE I32 to_i32(F64 x) { return saturate<I32>(x, -2147483648.0, 2147483647.0); }
EMU_INLINE U32 to_u32(F64 x) {
  return bits_as<U32>(convert<U32>(saturate<I64>(x, 0.0, 4294967295.0)));
}

EMU_INLINE F32 from_bf16(U32 low_bits) { return bits_as<F32>(low_bits << 16); }

/// Rounds to the nearest bf16, ties to even; NaN stays NaN.
EMU_INLINE U32 to_bf16(F32 x) {
  const U32 bits = bits_as<U32>(x);
  const U32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return is_nan(x) ? (bits >> 16) | 0x40 : rounded;
}

EMU_INLINE U32 bit_count(U32 x) {
  x -= x >> 1 & 0x55555555;
  x = (x & 0x33333333) + (x >> 2 & 0x33333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f;
  return x * 0x01010101 >> 24;
}

template <class V>
EMU_INLINE V clip(V x, Element<V> low, Element<V> high) {
  x = x < low ? splat<V>(low) : x;
  return x > high ? splat<V>(high) : x;
}

EMU_INLINE F64 power_of_two(I64 n) { return bits_as<F64>((n + 1023) << 52); }

/// Returns x times 2^n for any n, rounded once: only the last multiplication may round.
EMU_INLINE F64 scale(F64 x, I32 n) {
  const I64 exponent = convert<I64>(clip(n, -2200, 2200));
  const I64 last = clip(exponent, -1022, 1000);
  const I64 rest = exponent - last;
  const I64 middle = clip(rest, -1000, 1000);
  return x * power_of_two(rest - middle) * power_of_two(middle) * power_of_two(last);
}
EMU_INLINE F32 scale(F32 x, I32 n) {
  return convert<F32>(convert<F64>(x) * power_of_two(convert<I64>(clip(n, -400, 400))));
}
EMU_INLINE F16 scale(F16 x, I32 n) {
  const F32 power = bits_as<F32>((clip(n, -60, 60) + 127) << 23);
  return convert<F16>(convert<F32>(x) * power);
}

/// Returns the exponent that leaves a magnitude in [0.5, 1), and 0 for zero, infinity and NaN.
template <class V>
EMU_INLINE Truth<V> fraction_exponent(V x) {
  using L = Layout<V>;
  using S = Truth<V>;
  using E = Element<S>;
  const S biased = bits_as<S>(float_bits(absolute(x)) >> static_cast<typename L::E>(L::kFraction));
  const S raw = bits_as<S>(float_bits(absolute(x)));
  S result = biased - static_cast<E>(L::kBias - 1);
  // For denormals, the exponent follows from the number of zeros above the fraction's highest set
  // bit.
  S small = splat<S>(static_cast<E>(2 - L::kBias));
  S bits = raw;
  for (int step = 32; step > 0; step /= 2) {
    if (step > L::kFraction) continue;
    const S low = bits < static_cast<E>(E{1} << (L::kFraction + 1 - step));
    const S move = low & static_cast<E>(step);
    bits = bits << move;
    small -= move;
  }
  result = is_denormal(x) ? small : result;
  const auto none = is_zero(x) | (float_bits(absolute(x)) >= L::kInfinity);
  return none ? splat<S>(0) : result;
}

/// Returns the fraction that belongs to fraction_exponent().
template <class V>
EMU_INLINE V fraction(V x) {
  using L = Layout<V>;
  using E = typename L::E;
  using S = Truth<V>;
  const S exponent = fraction_exponent(x);
  // A denormal's bits move up by the difference between the smallest normal exponent and its own.
  const S up = (2 - static_cast<Element<S>>(L::kBias)) - exponent;
  const auto bits = float_bits(x);
  const auto moved = is_denormal(x) ? bits << bits_as<Unsigned<V>>(up) : bits;
  constexpr E kFractionMask = static_cast<E>((E{1} << L::kFraction) - 1);
  constexpr E kHalf = static_cast<E>(E(L::kBias - 1) << L::kFraction);
  const auto result = (bits & L::kSign) | (moved & kFractionMask) | kHalf;
  const auto none = is_zero(x) | (float_bits(absolute(x)) >= L::kInfinity);
  return none ? x : bits_as<V>(result);
}

}  // namespace
}  // namespace emu
