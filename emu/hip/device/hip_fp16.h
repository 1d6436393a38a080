#pragma once

// <hip/hip_fp16.h>: half and half2. Arithmetic is that of _Float16; conversions round to nearest
// unless the name says otherwise.

#include "hip_runtime.h"

struct __half_raw {
  union {
    _Float16 data;
    unsigned short x;
  };
};

struct __half {
  union {
    _Float16 data;
    unsigned short __x;
  };
  __half() = default;
  WICK_BOTH __half(_Float16 value) : data(value) {}
  WICK_BOTH __half(__half_raw value) : data(value.data) {}
  template <class T, class = typename __hip_internal::enable_if<
                         __hip_internal::is_arithmetic<T>::value && !__is_same(T, _Float16)>::type>
  WICK_BOTH __half(T value) : data(static_cast<_Float16>(value)) {}
  WICK_BOTH operator _Float16() const { return data; }
  WICK_BOTH operator float() const { return static_cast<float>(data); }
  WICK_BOTH explicit operator bool() const { return data != 0; }
  template <class T, class = typename __hip_internal::enable_if<
                         __hip_internal::is_integral<T>::value && !__is_same(T, bool)>::type>
  WICK_BOTH explicit operator T() const {
    return static_cast<T>(data);
  }
  WICK_BOTH operator __half_raw() const { return __half_raw{{data}}; }
};
typedef __half half;

struct alignas(4) __half2 {
  union {
    __2f16 data;
    struct {
      __half x, y;
    };
  };
  __half2() = default;
  WICK_BOTH __half2(__2f16 value) : data(value) {}
  WICK_BOTH __half2(__half x, __half y) : data{x.data, y.data} {}
  WICK_BOTH operator __2f16() const { return data; }
};
typedef __half2 half2;
typedef __half __fp16_half;

#define WICK_HALF static __host__ __device__ inline

#define WICK_HALF_OPERATOR(sign)                                                               \
  WICK_HALF __half operator sign(__half a, __half b) {                                         \
    return static_cast<_Float16>(a.data sign b.data);                                          \
  }                                                                                            \
  WICK_HALF __half& operator sign##=(__half& a, __half b) { return a = a sign b; }             \
  WICK_HALF __half2 operator sign(__half2 a, __half2 b) { return __2f16(a.data sign b.data); } \
  WICK_HALF __half2& operator sign##=(__half2& a, __half2 b) { return a = a sign b; }
WICK_HALF_OPERATOR(+)
WICK_HALF_OPERATOR(-)
WICK_HALF_OPERATOR(*)
WICK_HALF_OPERATOR(/)
#undef WICK_HALF_OPERATOR
WICK_HALF __half operator-(__half a) { return static_cast<_Float16>(-a.data); }
WICK_HALF __half2 operator-(__half2 a) { return __2f16(-a.data); }
WICK_HALF __half operator+(__half a) { return a; }
WICK_HALF __half2 operator+(__half2 a) { return a; }
WICK_HALF __half& operator++(__half& a) { return a = a + __half(1); }
WICK_HALF __half& operator--(__half& a) { return a = a - __half(1); }

/// Comparisons: of two halfs, of both elements, as numbers 0 and 1 by element.
#define WICK_HALF_COMPARE(sign, name)                                             \
  WICK_HALF bool operator sign(__half a, __half b) { return a.data sign b.data; } \
  WICK_HALF bool __h##name(__half a, __half b) { return a.data sign b.data; }     \
  WICK_HALF __half2 __h##name##2(__half2 a, __half2 b) {                          \
    return __half2(__half(a.x.data sign b.x.data ? 1 : 0),                        \
                   __half(a.y.data sign b.y.data ? 1 : 0));                       \
  }                                                                               \
  WICK_HALF bool __hb##name##2(__half2 a, __half2 b) {                            \
    return a.x.data sign b.x.data && a.y.data sign b.y.data;                      \
  }
WICK_HALF_COMPARE(==, eq)
WICK_HALF_COMPARE(!=, ne)
WICK_HALF_COMPARE(<, lt)
WICK_HALF_COMPARE(<=, le)
WICK_HALF_COMPARE(>, gt)
WICK_HALF_COMPARE(>=, ge)
#undef WICK_HALF_COMPARE
WICK_HALF bool operator==(__half2 a, __half2 b) { return __hbeq2(a, b); }
WICK_HALF bool operator!=(__half2 a, __half2 b) { return !__hbeq2(a, b); }

#define WICK_HALF_ARITHMETIC(name, sign)                                    \
  WICK_HALF __half __h##name(__half a, __half b) { return a sign b; }       \
  WICK_HALF __half2 __h##name##2(__half2 a, __half2 b) { return a sign b; } \
  WICK_HALF __half __h##name##_rn(__half a, __half b) { return a sign b; }  \
  WICK_HALF __half __h##name##_sat(__half a, __half b) {                    \
    const _Float16 x = a.data sign b.data;                                  \
    return static_cast<_Float16>(!(x > 0) ? 0 : x > 1 ? 1 : x);             \
  }
WICK_HALF_ARITHMETIC(add, +)
WICK_HALF_ARITHMETIC(sub, -)
WICK_HALF_ARITHMETIC(mul, *)
#undef WICK_HALF_ARITHMETIC
WICK_HALF __half __hdiv(__half a, __half b) { return a / b; }
WICK_HALF __half2 __h2div(__half2 a, __half2 b) { return a / b; }
WICK_HALF __half __hfma(__half a, __half b, __half c) {
  return __builtin_elementwise_fma(a.data, b.data, c.data);
}
WICK_HALF __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __builtin_elementwise_fma(a.data, b.data, c.data);
}
WICK_HALF __half __hneg(__half a) { return -a; }
WICK_HALF __half2 __hneg2(__half2 a) { return -a; }
WICK_HALF __half __habs(__half a) { return __builtin_elementwise_abs(a.data); }
WICK_HALF __half2 __habs2(__half2 a) { return __builtin_elementwise_abs(a.data); }
WICK_HALF bool __hisnan(__half a) { return a.data != a.data; }
WICK_HALF int __hisinf(__half a) { return __builtin_isinf(static_cast<float>(a.data)); }
WICK_HALF __half2 __hisnan2(__half2 a) {
  return __half2(__half(__hisnan(a.x) ? 1 : 0), __half(__hisnan(a.y) ? 1 : 0));
}
WICK_HALF __half __hmax(__half a, __half b) { return __builtin_elementwise_max(a.data, b.data); }
WICK_HALF __half __hmin(__half a, __half b) { return __builtin_elementwise_min(a.data, b.data); }
WICK_HALF __half2 __hmax2(__half2 a, __half2 b) {
  return __builtin_elementwise_max(a.data, b.data);
}
WICK_HALF __half2 __hmin2(__half2 a, __half2 b) {
  return __builtin_elementwise_min(a.data, b.data);
}

// Conversions.
WICK_HALF __half __float2half(float x) { return static_cast<_Float16>(x); }
WICK_HALF __half __float2half_rn(float x) { return static_cast<_Float16>(x); }
WICK_HALF __half __double2half(double x) { return static_cast<_Float16>(x); }
WICK_HALF float __half2float(__half x) { return static_cast<float>(x.data); }
namespace __wick {
/// Returns the half that is next to `value` in a direction, if rounding to nearest went the other
/// way. `up`: towards infinity, otherwise towards minus infinity.
WICK_HALF __half directed(float value, bool up) {
  __half half = static_cast<_Float16>(value);
  const float back = static_cast<float>(half.data);
  if (up ? !(back < value) : !(back > value)) return half;
  const bool away = (half.__x >> 15 == 0) == up;  // the magnitude grows
  half.__x = static_cast<unsigned short>(half.__x + (away ? 1 : -1));
  if ((half.__x & 0x7fff) == 0x7fff || half.data != half.data) half.__x = up ? 0xfbff : 0x7bff;
  return half;
}
}  // namespace __wick
WICK_HALF __half __float2half_ru(float x) {
  if (x > 0 && static_cast<_Float16>(x) == 0) return __half(__half_raw{.x = 1});
  return __wick::directed(x, true);
}
WICK_HALF __half __float2half_rd(float x) {
  if (x < 0 && static_cast<_Float16>(x) == 0) return __half(__half_raw{.x = 0x8001});
  return __wick::directed(x, false);
}
WICK_HALF __half __float2half_rz(float x) {
  if (static_cast<_Float16>(x) == 0) return static_cast<_Float16>(x);
  return __wick::directed(x, x < 0);
}
WICK_HALF unsigned short __half_as_ushort(__half x) { return x.__x; }
WICK_HALF short __half_as_short(__half x) { return static_cast<short>(x.__x); }
WICK_HALF __half __ushort_as_half(unsigned short x) { return __half(__half_raw{.x = x}); }
WICK_HALF __half __short_as_half(short x) {
  return __ushort_as_half(static_cast<unsigned short>(x));
}

#define WICK_HALF_INTEGER(T, name)                                                            \
  WICK_HALF __half __##name##2half_rn(T x) { return static_cast<_Float16>(x); }               \
  WICK_HALF __half __##name##2half_rz(T x) { return __float2half_rz(static_cast<float>(x)); } \
  static __device__ inline T __half2##name##_rn(__half x) {                                   \
    return __wick::saturated<T>(__builtin_elementwise_roundeven(static_cast<float>(x.data))); \
  }                                                                                           \
  static __device__ inline T __half2##name##_rz(__half x) {                                   \
    return __wick::saturated<T>(__builtin_elementwise_trunc(static_cast<float>(x.data)));     \
  }                                                                                           \
  static __device__ inline T __half2##name##_ru(__half x) {                                   \
    return __wick::saturated<T>(__builtin_elementwise_ceil(static_cast<float>(x.data)));      \
  }                                                                                           \
  static __device__ inline T __half2##name##_rd(__half x) {                                   \
    return __wick::saturated<T>(__builtin_elementwise_floor(static_cast<float>(x.data)));     \
  }
WICK_HALF_INTEGER(int, int)
WICK_HALF_INTEGER(unsigned, uint)
WICK_HALF_INTEGER(short, short)
WICK_HALF_INTEGER(unsigned short, ushort)
WICK_HALF_INTEGER(long long, ll)
WICK_HALF_INTEGER(unsigned long long, ull)
#undef WICK_HALF_INTEGER

WICK_HALF __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
WICK_HALF __half2 make_half2(__half x, __half y) { return __half2(x, y); }
WICK_HALF __half2 __half2half2(__half x) { return __half2(x, x); }
WICK_HALF __half2 __float2half2_rn(float x) { return __half2half2(__float2half(x)); }
WICK_HALF __half2 __floats2half2_rn(float x, float y) {
  return __half2(__float2half(x), __float2half(y));
}
WICK_HALF __half2 __float22half2_rn(float2 x) { return __floats2half2_rn(x.x, x.y); }
WICK_HALF float2 __half22float2(__half2 x) { return float2(__half2float(x.x), __half2float(x.y)); }
WICK_HALF __half __low2half(__half2 x) { return x.x; }
WICK_HALF __half __high2half(__half2 x) { return x.y; }
WICK_HALF float __low2float(__half2 x) { return __half2float(x.x); }
WICK_HALF float __high2float(__half2 x) { return __half2float(x.y); }
WICK_HALF __half2 __low2half2(__half2 x) { return __half2(x.x, x.x); }
WICK_HALF __half2 __high2half2(__half2 x) { return __half2(x.y, x.y); }
WICK_HALF __half2 __lowhigh2highlow(__half2 x) { return __half2(x.y, x.x); }
WICK_HALF __half2 __lows2half2(__half2 x, __half2 y) { return __half2(x.x, y.x); }
WICK_HALF __half2 __highs2half2(__half2 x, __half2 y) { return __half2(x.y, y.y); }

// Mathematics.
#define WICK_HALF_MATH(name)                                                                \
  static __device__ inline __half h##name(__half x) { return __ocml_##name##_f16(x.data); } \
  static __device__ inline __half2 h2##name(__half2 x) { return __ocml_##name##_2f16(x.data); }
WICK_HALF_MATH(ceil)
WICK_HALF_MATH(cos)
WICK_HALF_MATH(exp)
WICK_HALF_MATH(exp10)
WICK_HALF_MATH(exp2)
WICK_HALF_MATH(floor)
WICK_HALF_MATH(log)
WICK_HALF_MATH(log10)
WICK_HALF_MATH(log2)
WICK_HALF_MATH(rint)
WICK_HALF_MATH(rsqrt)
WICK_HALF_MATH(sin)
WICK_HALF_MATH(sqrt)
WICK_HALF_MATH(trunc)
#undef WICK_HALF_MATH
static __device__ inline __half hrcp(__half x) {
  return static_cast<_Float16>(1 / static_cast<float>(x.data));
}
static __device__ inline __half2 h2rcp(__half2 x) { return __half2(hrcp(x.x), hrcp(x.y)); }

/// Adds both elements by one exchange of 32 bits.
static __device__ inline __half2 atomicAdd(__half2* at, __half2 value) {
  auto* bits = reinterpret_cast<unsigned*>(at);
  unsigned before = __hip_atomic_load(bits, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  for (;;) {
    const __half2 sum = __wick::as<__half2>(before) + value;
    if (__hip_atomic_compare_exchange_strong(bits, &before, __wick::as<unsigned>(sum),
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                             __HIP_MEMORY_SCOPE_AGENT)) {
      return __wick::as<__half2>(before);
    }
  }
}
static __device__ inline __half2 unsafeAtomicAdd(__half2* at, __half2 value) {
  return atomicAdd(at, value);
}
