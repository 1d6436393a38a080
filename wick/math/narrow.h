#pragma once

// The elementwise functions for results that are stored in 16 or 8 bits. For every number of such a
// type, they give the bits of the functions of scalar.h after rounding, with half the instructions:
// shorter polynomials, one power of two where the range allows it, and no division. The
// coefficients were searched for, starting from minimax polynomials
// (tools/math_coefficients.sollya), so that all 65,536 bit patterns agree, and tests/math checks
// all of them. For other numbers, nothing is guaranteed.
//
// As in scalar.h, functions are branch-free, fma is explicit, and all processors compute the same
// bits.

#include "wick/math/arithmetic.h"
#include "wick/math/fn.h"
#include "wick/math/scalar.h"

namespace wick::math {

namespace detail {

inline constexpr float kLog2E = 0x1.715476p0f;
inline constexpr float kLow = 0x1.8p23f;           // adding kLow leaves an integer in the low bits,
inline constexpr float kExponent = kLow + 127.0f;  // adding kExponent the bits of an exponent

/// c1·f + c2·f² + …, divided by f.
template <class... C>
WICK_FN float over_f(float f, float last, C... before) {
  float p = last;
  ((p = fma(p, f, before)), ...);
  return p;
}

/// Returns −e/(2 + e) with e = exp(−2y) − 1 = s·f·q + (s − 1), which is exact where it is small.
/// Here exp(−2y) = 2^f·s and q(f) = (2^f − 1)/f.
template <class Q>
WICK_FN float tanh_by(float x, const Q& q) {
  constexpr float kTwice = -2.0f * kLog2E;
  const float y = at_most(abs(x), 10.0f);
  const float t = fma(y, kTwice, kExponent);
  const float f = fma(y, kTwice, kExponent - t);
  const float s = bits_f32(f32_bits(t) << 23);
  const float e = fma(s, f * q(f), s - 1.0f);
  return with_sign(abs(e * recip_moderate(2.0f + e)), x);
}

}  // namespace detail

/// Functions for f16, and for f8e4m3, whose values are a subset of f16's.
namespace of_f16 {

using namespace math;  // NOLINT: functions that aren't redefined below are those of math

namespace detail {
using namespace math::detail;  // NOLINT(google-build-using-namespace)

/// 1/(1 + exp(−x)), |x| ≤ 30: 1 + exp(−x) is (s + 1) + s·f·q.
template <class Q>
WICK_FN float sigmoid_by(float x, const Q& q) {
  const float t = fma(x, -kLog2E, kExponent);
  const float f = fma(x, -kLog2E, kExponent - t);
  const float s = bits_f32(f32_bits(t) << 23);
  return recip_moderate(fma(s, q(f) * f, s + 1.0f));
}

WICK_FN float quotient(float f) {
  return over_f(f, 0x1.5d7a26p-10f, 0x1.3b5336p-7f, 0x1.c6a5d4p-5f, 0x1.ebfd8p-3f, 0x1.62e42ap-1f);
}

}  // namespace detail

WICK_FN float exp(float x) {
  using namespace detail;  // NOLINT(google-build-using-namespace)
  x = at_most(at_least(x, -20.0f), 12.0f);
  const float t = fma(x, kLog2E, kExponent);
  const float f = fma(x, kLog2E, kExponent - t);
  return fma(quotient(f), f, 1.0f) * bits_f32(f32_bits(t) << 23);
}

WICK_FN float sigmoid(float x) {
  return detail::sigmoid_by(at_most(at_least(x, -30.0f), 30.0f), detail::quotient);
}

WICK_FN float silu(float x) {
  x = at_least(x, -30.0f);
  return x * detail::sigmoid_by(at_most(x, 30.0f), [](float f) {
           return detail::over_f(f, 0x1.5d6b9p-10f, 0x1.3b2e8p-7f, 0x1.c6bb4cp-5f, 0x1.ebfcf2p-3f,
                                 0x1.62e3fp-1f);
         });
}

WICK_FN float tanh(float x) {
  return detail::tanh_by(x, [](float f) {
    return detail::over_f(f, 0x1.5fdf7cp-10f, 0x1.3c94c4p-7f, 0x1.c6ad5ap-5f, 0x1.ebfa7ep-3f,
                          0x1.62e426p-1f);
  });
}

/// No f16 value is a denormal float.
WICK_FN float log(float x) { return detail::log_f32<false>(x); }

/// f16 values are in the domain of sin_of_near and cos_of_near.
WICK_FN float sin(float x) { return math::sin_of_near(x); }
WICK_FN float cos(float x) { return math::cos_of_near(x); }

}  // namespace of_f16

/// Functions for bf16, which has the range of f32.
namespace of_bf16 {

using namespace math;  // NOLINT: functions that aren't redefined below are those of math

namespace detail {
using namespace math::detail;  // NOLINT(google-build-using-namespace)

/// 2^(x·half_log2e) for |x| ≤ 120: the square root of exp(x) if half_log2e is log2(e)/2. It is a
/// normal number wherever exp(x) is neither 0 nor infinite.
WICK_FN float root_of_exp(float x, float half_log2e) {
  const float t = fma(x, half_log2e, kLow);
  const float f = fma(x, half_log2e, kLow - t);
  const float q = over_f(f, 0x1.3b6e34p-7f, 0x1.c990fep-5f, 0x1.ec05b2p-3f, 0x1.62e17ap-1f);
  return bits_f32(f32_bits(fma(q, f, 1.0f)) + (f32_bits(t) << 23));
}

/// sigmoid(x) = whole·part² for |x| ≤ 120, else and for NaN unspecified. For x < 0, part² is
/// exp(−|x|), else 1.
struct Sigmoid {
  float whole, part;

  WICK_FN explicit Sigmoid(float x) {
    const float s = root_of_exp(abs(x), -0.5f * kLog2E);
    whole = recip_moderate(fma(s, s, 1.0f));
    part = x < 0.0f ? s : 1.0f;
  }
};

}  // namespace detail

// x − x is 0, or NaN for NaN and infinities, for which root_of_exp may return a number, because it
// adds the exponent as an integer.

WICK_FN float exp(float x) {
  x = at_most(at_least(x, -105.0f), 89.5f);
  const float s = detail::root_of_exp(x, 0.5f * detail::kLog2E);
  return fma(s, s, x - x);
}

WICK_FN float sigmoid(float x) {
  x = at_most(at_least(x, -120.0f), 120.0f);
  const detail::Sigmoid s(x);
  return fma(s.whole * s.part, s.part, x - x);
}

WICK_FN float silu(float x) {
  x = at_least(x, -120.0f);
  const detail::Sigmoid s(at_most(x, 120.0f));
  return ((x * s.whole) * s.part) * s.part;
}

WICK_FN float tanh(float x) {
  return detail::tanh_by(x, [](float f) {
    return detail::over_f(f, 0x1.3b29dcp-7f, 0x1.c96b52p-5f, 0x1.ebff0ap-3f, 0x1.62e2d6p-1f);
  });
}

WICK_FN float log(float x) {
  constexpr u32 kLeast = 0x3f2aaaabu;  // 2/3: x = 2^k·m with m in [2/3, 4/3)
  const bool denormal = x < 0x1p-126f;
  const u32 b = f32_bits(denormal ? x * 0x1p23f : x) - kLeast;
  const float k = static_cast<float>(static_cast<i32>(b) >> 23) - (denormal ? 23.0f : 0.0f);
  const float f = bits_f32((b & 0x007fffffu) + kLeast) - 1.0f;
  const float p = detail::over_f(f, -0x1.8955ep-3f, 0x1.cbb8ccp-3f, -0x1.fd646ap-3f, 0x1.546e7p-2f,
                                 -0x1.0001a8p-1f);
  return fma(k, 0x1.62e43p-1f, fma(p, f * f, f)) + detail::log_special(x);
}

using math::cos, math::sin;

}  // namespace of_bf16

}  // namespace wick::math
