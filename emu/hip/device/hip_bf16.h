#pragma once

// <hip/hip_bf16.h>: bfloat16. Each operation computes in float and rounds its result to nearest.

#include "hip_runtime.h"

#define WICK_BF16 static __host__ __device__ inline

struct __hip_bfloat16_raw {
  unsigned short x;
};

namespace __wick {
WICK_BOTH unsigned short bf16_bits(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  if (value != value) return static_cast<unsigned short>(bits >> 16 | 0x40);
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
WICK_BOTH float bf16_value(unsigned short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
}
}  // namespace __wick

struct __hip_bfloat16 {
  unsigned short data;
  __hip_bfloat16() = default;
  WICK_BOTH __hip_bfloat16(__hip_bfloat16_raw raw) : data(raw.x) {}
  template <class T, class = typename __hip_internal::enable_if<
                         __hip_internal::is_arithmetic<T>::value>::type>
  WICK_BOTH __hip_bfloat16(T value) : data(__wick::bf16_bits(static_cast<float>(value))) {}
  WICK_BOTH operator float() const { return __wick::bf16_value(data); }
  WICK_BOTH operator __hip_bfloat16_raw() const { return {data}; }
  WICK_BOTH explicit operator bool() const { return (data & 0x7fff) != 0; }
};
typedef __hip_bfloat16 hip_bfloat16;

struct alignas(4) __hip_bfloat162 {
  __hip_bfloat16 x, y;
  __hip_bfloat162() = default;
  WICK_BOTH __hip_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) : x(x), y(y) {}
  WICK_BOTH explicit __hip_bfloat162(__hip_bfloat16 both) : x(both), y(both) {}
};

#define WICK_BF16_OPERATOR(sign)                                                       \
  WICK_BF16 __hip_bfloat16 operator sign(__hip_bfloat16 a, __hip_bfloat16 b) {         \
    return static_cast<float>(a) sign static_cast<float>(b);                           \
  }                                                                                    \
  WICK_BF16 __hip_bfloat16& operator sign##=(__hip_bfloat16& a, __hip_bfloat16 b) {    \
    return a = a sign b;                                                               \
  }                                                                                    \
  WICK_BF16 __hip_bfloat162 operator sign(__hip_bfloat162 a, __hip_bfloat162 b) {      \
    return __hip_bfloat162(a.x sign b.x, a.y sign b.y);                                \
  }                                                                                    \
  WICK_BF16 __hip_bfloat162& operator sign##=(__hip_bfloat162& a, __hip_bfloat162 b) { \
    return a = a sign b;                                                               \
  }
WICK_BF16_OPERATOR(+)
WICK_BF16_OPERATOR(-)
WICK_BF16_OPERATOR(*)
WICK_BF16_OPERATOR(/)
#undef WICK_BF16_OPERATOR
WICK_BF16 __hip_bfloat16 operator-(__hip_bfloat16 a) {
  return __hip_bfloat16_raw{static_cast<unsigned short>(a.data ^ 0x8000)};
}
WICK_BF16 __hip_bfloat162 operator-(__hip_bfloat162 a) { return __hip_bfloat162(-a.x, -a.y); }

#define WICK_BF16_COMPARE(sign, name)                                               \
  WICK_BF16 bool operator sign(__hip_bfloat16 a, __hip_bfloat16 b) {                \
    return static_cast<float>(a) sign static_cast<float>(b);                        \
  }                                                                                 \
  WICK_BF16 bool __h##name(__hip_bfloat16 a, __hip_bfloat16 b) { return a sign b; } \
  WICK_BF16 __hip_bfloat162 __h##name##2(__hip_bfloat162 a, __hip_bfloat162 b) {    \
    return __hip_bfloat162(__hip_bfloat16(a.x sign b.x ? 1 : 0),                    \
                           __hip_bfloat16(a.y sign b.y ? 1 : 0));                   \
  }                                                                                 \
  WICK_BF16 bool __hb##name##2(__hip_bfloat162 a, __hip_bfloat162 b) {              \
    return a.x sign b.x && a.y sign b.y;                                            \
  }
WICK_BF16_COMPARE(==, eq)
WICK_BF16_COMPARE(!=, ne)
WICK_BF16_COMPARE(<, lt)
WICK_BF16_COMPARE(<=, le)
WICK_BF16_COMPARE(>, gt)
WICK_BF16_COMPARE(>=, ge)
#undef WICK_BF16_COMPARE

#define WICK_BF16_ARITHMETIC(name, sign)                                                      \
  WICK_BF16 __hip_bfloat16 __h##name(__hip_bfloat16 a, __hip_bfloat16 b) { return a sign b; } \
  WICK_BF16 __hip_bfloat162 __h##name##2(__hip_bfloat162 a, __hip_bfloat162 b) { return a sign b; }
WICK_BF16_ARITHMETIC(add, +)
WICK_BF16_ARITHMETIC(sub, -)
WICK_BF16_ARITHMETIC(mul, *)
#undef WICK_BF16_ARITHMETIC
WICK_BF16 __hip_bfloat16 __hdiv(__hip_bfloat16 a, __hip_bfloat16 b) { return a / b; }
WICK_BF16 __hip_bfloat162 __h2div(__hip_bfloat162 a, __hip_bfloat162 b) { return a / b; }
WICK_BF16 __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  return __builtin_fmaf(a, b, c);
}
WICK_BF16 __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return __hip_bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
WICK_BF16 __hip_bfloat16 __hneg(__hip_bfloat16 a) { return -a; }
WICK_BF16 __hip_bfloat162 __hneg2(__hip_bfloat162 a) { return -a; }
WICK_BF16 __hip_bfloat16 __habs(__hip_bfloat16 a) {
  return __hip_bfloat16_raw{static_cast<unsigned short>(a.data & 0x7fff)};
}
WICK_BF16 __hip_bfloat162 __habs2(__hip_bfloat162 a) {
  return __hip_bfloat162(__habs(a.x), __habs(a.y));
}
WICK_BF16 bool __hisnan(__hip_bfloat16 a) { return (a.data & 0x7fff) > 0x7f80; }
WICK_BF16 bool __hisinf(__hip_bfloat16 a) { return (a.data & 0x7fff) == 0x7f80; }
WICK_BF16 __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __builtin_fmaxf(a, b);
}
WICK_BF16 __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __builtin_fminf(a, b);
}
WICK_BF16 __hip_bfloat162 __hmax2(__hip_bfloat162 a, __hip_bfloat162 b) {
  return __hip_bfloat162(__hmax(a.x, b.x), __hmax(a.y, b.y));
}
WICK_BF16 __hip_bfloat162 __hmin2(__hip_bfloat162 a, __hip_bfloat162 b) {
  return __hip_bfloat162(__hmin(a.x, b.x), __hmin(a.y, b.y));
}

// Conversions.
WICK_BF16 __hip_bfloat16 __float2bfloat16(float x) { return x; }
WICK_BF16 __hip_bfloat16 __float2bfloat16_rn(float x) { return x; }
WICK_BF16 __hip_bfloat16 __double2bfloat16(double x) { return x; }
WICK_BF16 float __bfloat162float(__hip_bfloat16 x) { return x; }
WICK_BF16 unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.data; }
WICK_BF16 short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.data); }
WICK_BF16 __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __hip_bfloat16_raw{x}; }
WICK_BF16 __hip_bfloat16 __short_as_bfloat16(short x) {
  return __ushort_as_bfloat16(static_cast<unsigned short>(x));
}
WICK_BF16 __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) {
  return __hip_bfloat162(x, y);
}
WICK_BF16 __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return __hip_bfloat162(x, x); }
WICK_BF16 __hip_bfloat162 __float2bfloat162_rn(float x) { return __hip_bfloat162(x, x); }
WICK_BF16 __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return __hip_bfloat162(x, y); }
WICK_BF16 __hip_bfloat162 __float22bfloat162_rn(float2 x) { return __hip_bfloat162(x.x, x.y); }
WICK_BF16 float2 __bfloat1622float2(__hip_bfloat162 x) {
  return float2(__bfloat162float(x.x), __bfloat162float(x.y));
}
WICK_BF16 __hip_bfloat16 __low2bfloat16(__hip_bfloat162 x) { return x.x; }
WICK_BF16 __hip_bfloat16 __high2bfloat16(__hip_bfloat162 x) { return x.y; }
WICK_BF16 float __low2float(__hip_bfloat162 x) { return x.x; }
WICK_BF16 float __high2float(__hip_bfloat162 x) { return x.y; }

// Mathematics.
#define WICK_BF16_MATH(name)                                             \
  static __device__ inline __hip_bfloat16 h##name(__hip_bfloat16 x) {    \
    return __ocml_##name##_f32(__bfloat162float(x));                     \
  }                                                                      \
  static __device__ inline __hip_bfloat162 h2##name(__hip_bfloat162 x) { \
    return __hip_bfloat162(h##name(x.x), h##name(x.y));                  \
  }
WICK_BF16_MATH(ceil)
WICK_BF16_MATH(cos)
WICK_BF16_MATH(exp)
WICK_BF16_MATH(exp10)
WICK_BF16_MATH(exp2)
WICK_BF16_MATH(floor)
WICK_BF16_MATH(log)
WICK_BF16_MATH(log10)
WICK_BF16_MATH(log2)
WICK_BF16_MATH(rint)
WICK_BF16_MATH(rsqrt)
WICK_BF16_MATH(sin)
WICK_BF16_MATH(sqrt)
WICK_BF16_MATH(trunc)
#undef WICK_BF16_MATH
static __device__ inline __hip_bfloat16 hrcp(__hip_bfloat16 x) { return 1 / __bfloat162float(x); }
