#pragma once

// Conversion of elements to the type that computes and back, one at a time and as vectors.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/math/half.h"
#include "wick/math/scalar.h"

namespace wick::gpu {

using Storage_u8 = math::u8;
using Storage_u32 = math::u32;
using Storage_i16 = math::i16;
using Storage_i32 = math::i32;
using Storage_i64 = math::i64;
using Storage_f32 = float;
using Storage_f64 = double;
using Storage_f16 = math::f16;
using Storage_bf16 = math::bf16;
using Storage_f8e4m3 = math::f8e4m3;

/// The type that an unsigned integer is promoted to before arithmetic: u64 for u64, otherwise u32.
template <class U>
using Promoted = decltype(U() | u32());

/// Types that are computed in f32 and rounded when they are stored.
template <class T>
inline constexpr bool kNarrow = kSame<T, f16> || kSame<T, bf16> || kSame<T, f8e4m3>;

/// Converts an element to its compute type: f32 for narrow floats, its own type otherwise.
template <class T>
WICK_DEVICE auto widen(T x) {
  if constexpr (kNarrow<T>) {
    return to_f32(x);
  } else {
    return x;
  }
}

/// The type in which elements of T are computed.
template <class T>
using Compute = decltype(widen(T()));

/// Rounds a computed value once to the element type.
template <class T>
WICK_DEVICE T narrow(Compute<T> x) {
  if constexpr (kNarrow<T>) {
    return from_f32<T>(x);
  } else {
    return x;
  }
}

/// N neighbouring elements that are loaded and stored at once. They are kept as words, because
/// compilers split structures of short members. A single element of 8 or 16 bits lies in the low
/// bits of a word.
template <class T, u32 N>
struct alignas(sizeof(T) * N < 4    ? 4
               : sizeof(T) * N < 16 ? sizeof(T) * N
                                    : 16) Vec {
  static constexpr u32 kWords = sizeof(T) * N < 4 ? 1 : sizeof(T) * N / 4;
  u32 w[kWords];

  WICK_DEVICE Compute<T> operator[](u32 i) const {
    if constexpr (sizeof(T) == 8) {
      return __builtin_bit_cast(T, u64{w[2 * i]} | u64{w[2 * i + 1]} << 32);
    } else if constexpr (sizeof(T) == 4) {
      return __builtin_bit_cast(T, w[i]);
    } else if constexpr (kSame<T, bf16>) {
      return bits_f32(i % 2 == 0 ? w[i / 2] << 16 : w[i / 2] & 0xffff0000u);
    } else if constexpr (sizeof(T) == 2) {
      return widen(__builtin_bit_cast(T, static_cast<u16>(i % 2 == 0 ? w[i / 2] : w[i / 2] >> 16)));
    } else {
      return widen(__builtin_bit_cast(T, static_cast<u8>(w[i / 4] >> i % 4 * 8)));
    }
  }

  /// Rounds each of N computed values once.
  WICK_DEVICE static Vec of(const Compute<T> (&x)[N]) {
    if constexpr (N > 1 && (kSame<T, f16> || kSame<T, bf16>)) {
      Vec p = {};
      for (u32 i = 0; i < N; i += 2) p.w[i / 2] = narrow_two<T>(x[i], x[i + 1]);
      return p;
    } else {
      T y[N];
      for (u32 i = 0; i < N; ++i) y[i] = narrow<T>(x[i]);
      return of_stored(y);
    }
  }
  /// Packs N stored elements.
  WICK_DEVICE static Vec of_stored(const T (&x)[N]) {
    Vec p = {};
    for (u32 i = 0; i < N; ++i) {
      if constexpr (sizeof(T) == 8) {
        const u64 b = __builtin_bit_cast(u64, x[i]);
        p.w[2 * i] = static_cast<u32>(b);
        p.w[2 * i + 1] = static_cast<u32>(b >> 32);
      } else if constexpr (sizeof(T) == 4) {
        p.w[i] = __builtin_bit_cast(u32, x[i]);
      } else if constexpr (sizeof(T) == 2) {
        p.w[i / 2] |= u32{__builtin_bit_cast(u16, x[i])} << i % 2 * 16;
      } else {
        p.w[i / 4] |= u32{__builtin_bit_cast(u8, x[i])} << i % 4 * 8;
      }
    }
    return p;
  }
  /// N copies of one element.
  WICK_DEVICE static Vec repeat(T x) {
    T y[N];
    for (u32 i = 0; i < N; ++i) y[i] = x;
    return of_stored(y);
  }
};

template <u32 N, class T>
WICK_DEVICE Vec<T, N> load_vec(const T* x) {
  if constexpr (sizeof(T) * N < 4) {
    static_assert(N == 1);
    return Vec<T, 1>::of_stored({*x});
  } else {
    return *reinterpret_cast<const Vec<T, N>*>(x);
  }
}
template <class T, u32 N>
WICK_DEVICE void store_vec(T* y, const Vec<T, N>& pack) {
  if constexpr (sizeof(T) * N < 4) {
    static_assert(N == 1);
    if constexpr (sizeof(T) == 2) *y = __builtin_bit_cast(T, static_cast<u16>(pack.w[0]));
    if constexpr (sizeof(T) == 1) *y = __builtin_bit_cast(T, static_cast<u8>(pack.w[0]));
  } else {
    *reinterpret_cast<Vec<T, N>*>(y) = pack;
  }
}

}  // namespace wick::gpu
