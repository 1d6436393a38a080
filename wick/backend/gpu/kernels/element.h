#pragma once

// Elements of each dtype on their way into arithmetic and back.

#include "wick/math/half.h"
#include "wick/math/scalar.h"

namespace wick::gpu {

using Storage_f32 = float;
using Storage_f64 = double;
using Storage_f16 = math::f16;
using Storage_bf16 = math::bf16;
using Storage_f8e4m3 = math::f8e4m3;

/// The value in the type that computes: f64 for f64, f32 for the other floats.
WICK_FN float widen(float x) { return x; }
WICK_FN double widen(double x) { return x; }
WICK_FN float widen(math::f16 x) { return math::to_f32(x); }
WICK_FN float widen(math::bf16 x) { return math::to_f32(x); }
WICK_FN float widen(math::f8e4m3 x) { return math::to_f32(x); }

/// The value as it is stored, rounded once.
template <class T>
WICK_FN T narrow(float x) {
  if constexpr (math::kSame<T, float>) {
    return x;
  } else {
    return math::from_f32<T>(x);
  }
}
template <class T>
WICK_FN T narrow(double x) {
  static_assert(math::kSame<T, double>);
  return x;
}

}  // namespace wick::gpu
