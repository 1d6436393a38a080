#pragma once

// Elements of each dtype on their way into arithmetic and back, alone and in packs.

#include "wick/backend/gpu/kernels/device.h"
#include "wick/math/half.h"
#include "wick/math/scalar.h"

namespace wick::gpu {

using Storage_f32 = float;
using Storage_f64 = double;
using Storage_f16 = math::f16;
using Storage_bf16 = math::bf16;
using Storage_f8e4m3 = math::f8e4m3;

/// The value in the type that computes: f64 for f64, f32 for the other floats.
WICK_DEVICE float widen(float x) { return x; }
WICK_DEVICE double widen(double x) { return x; }
WICK_DEVICE float widen(f16 x) { return to_f32(x); }
WICK_DEVICE float widen(bf16 x) { return to_f32(x); }
WICK_DEVICE float widen(f8e4m3 x) { return to_f32(x); }

/// The type that computes with elements of T.
template <class T>
using Compute = decltype(widen(T()));

/// The value as it is stored, rounded once.
template <class T>
WICK_DEVICE T narrow(Compute<T> x) {
  if constexpr (kSame<T, float> || kSame<T, double>) {
    return x;
  } else {
    return from_f32<T>(x);
  }
}

/// N neighbouring elements, loaded and stored at once: as words, because compilers take structures
/// of short members apart. At least four bytes.
template <class T, u32 N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  static constexpr u32 kWords = sizeof(T) * N / 4;
  u32 w[kWords];

  WICK_DEVICE Compute<T> operator[](u32 i) const {
    if constexpr (kSame<T, float>) {
      return bits_f32(w[i]);
    } else if constexpr (kSame<T, double>) {
      return bits_f64(u64{w[2 * i]} | u64{w[2 * i + 1]} << 32);
    } else if constexpr (kSame<T, bf16>) {
      return bits_f32(i % 2 == 0 ? w[i / 2] << 16 : w[i / 2] & 0xffff0000u);
    } else if constexpr (kSame<T, f16>) {
      return to_f32(f16{static_cast<u16>(i % 2 == 0 ? w[i / 2] : w[i / 2] >> 16)});
    } else {
      return to_f32(f8e4m3{static_cast<u8>(w[i / 4] >> i % 4 * 8)});
    }
  }

  /// Of values, each rounded once.
  WICK_DEVICE static Pack of(const Compute<T> (&x)[N]) {
    Pack p = {};
    if constexpr (sizeof(T) >= 4) {
      for (u32 i = 0; i < N; ++i) p.put(i, x[i]);
    } else if constexpr (kSame<T, f8e4m3>) {
      for (u32 i = 0; i < N; ++i) p.w[i / 4] |= u32{from_f32<T>(x[i]).bits} << i % 4 * 8;
    } else {
      for (u32 i = 0; i < N; i += 2) p.w[i / 2] = narrow_two<T>(x[i], x[i + 1]);
    }
    return p;
  }

 private:
  WICK_DEVICE void put(u32 i, float x) { w[i] = f32_bits(x); }
  WICK_DEVICE void put(u32 i, double x) {
    w[2 * i] = static_cast<u32>(f64_bits(x));
    w[2 * i + 1] = static_cast<u32>(f64_bits(x) >> 32);
  }
};

}  // namespace wick::gpu
