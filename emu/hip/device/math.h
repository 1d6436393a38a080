#pragma once

// Mathematics: f and plain names for float and double, fast forms, and arithmetic with stated
// rounding (to nearest, as the last letters _rn say).

#define WICK_INTEGER(T) \
  class = typename __hip_internal::enable_if<__hip_internal::is_integral<T>::value>::type

#define WICK_MATH_1(name, library)                                        \
  WICK_LANES float name##f(float x) { return __ocml_##library##_f32(x); } \
  WICK_LANES float name(float x) { return __ocml_##library##_f32(x); }    \
  WICK_LANES double name(double x) { return __ocml_##library##_f64(x); }  \
  template <class T, WICK_INTEGER(T)>                                     \
  WICK_LANES double name(T x) {                                           \
    return __ocml_##library##_f64(static_cast<double>(x));                \
  }
#define WICK_MATH_2(name, library)                                                    \
  WICK_LANES float name##f(float x, float y) { return __ocml_##library##_f32(x, y); } \
  WICK_LANES float name(float x, float y) { return __ocml_##library##_f32(x, y); }    \
  WICK_LANES double name(double x, double y) { return __ocml_##library##_f64(x, y); } \
  WICK_LANES double name(float x, double y) { return __ocml_##library##_f64(x, y); }  \
  WICK_LANES double name(double x, float y) { return __ocml_##library##_f64(x, y); }  \
  template <class T, class U, WICK_INTEGER(T)>                                        \
  WICK_LANES double name(T x, U y) {                                                  \
    return __ocml_##library##_f64(static_cast<double>(x), static_cast<double>(y));    \
  }
WICK_MATH_1(acos, acos)
WICK_MATH_1(acosh, acosh)
WICK_MATH_1(asin, asin)
WICK_MATH_1(asinh, asinh)
WICK_MATH_1(atan, atan)
WICK_MATH_1(atanh, atanh)
WICK_MATH_1(cbrt, cbrt)
WICK_MATH_1(ceil, ceil)
WICK_MATH_1(cos, cos)
WICK_MATH_1(cosh, cosh)
WICK_MATH_1(cospi, cospi)
WICK_MATH_1(erf, erf)
WICK_MATH_1(erfc, erfc)
WICK_MATH_1(exp, exp)
WICK_MATH_1(exp10, exp10)
WICK_MATH_1(exp2, exp2)
WICK_MATH_1(expm1, expm1)
WICK_MATH_1(fabs, fabs)
WICK_MATH_1(floor, floor)
WICK_MATH_1(log, log)
WICK_MATH_1(log10, log10)
WICK_MATH_1(log1p, log1p)
WICK_MATH_1(log2, log2)
WICK_MATH_1(logb, logb)
WICK_MATH_1(nearbyint, nearbyint)
WICK_MATH_1(normcdf, ncdf)
WICK_MATH_1(rcbrt, rcbrt)
WICK_MATH_1(rint, rint)
WICK_MATH_1(round, round)
WICK_MATH_1(rsqrt, rsqrt)
WICK_MATH_1(sin, sin)
WICK_MATH_1(sinh, sinh)
WICK_MATH_1(sinpi, sinpi)
WICK_MATH_1(sqrt, sqrt)
WICK_MATH_1(tan, tan)
WICK_MATH_1(tanh, tanh)
WICK_MATH_1(trunc, trunc)
WICK_MATH_2(atan2, atan2)
WICK_MATH_2(copysign, copysign)
WICK_MATH_2(fdim, fdim)
WICK_MATH_2(fmax, fmax)
WICK_MATH_2(fmin, fmin)
WICK_MATH_2(fmod, fmod)
WICK_MATH_2(hypot, hypot)
WICK_MATH_2(nextafter, nextafter)
WICK_MATH_2(pow, pow)
WICK_MATH_2(remainder, remainder)
WICK_MATH_2(rhypot, rhypot)
#undef WICK_MATH_1
#undef WICK_MATH_2

// Functions whose float and double forms have other arguments or results.
#define WICK_MATH_OTHERS(Float, f, type)                                                           \
  WICK_LANES Float fma##f(Float x, Float y, Float z) { return __ocml_fma_##type(x, y, z); }        \
  WICK_LANES Float ldexp##f(Float x, int y) { return __ocml_ldexp_##type(x, y); }                  \
  WICK_LANES Float scalbn##f(Float x, int y) { return __ocml_scalbn_##type(x, y); }                \
  WICK_LANES Float scalbln##f(Float x, long y) {                                                   \
    return __ocml_scalbn_##type(x, y > 10000 ? 10000 : y < -10000 ? -10000 : static_cast<int>(y)); \
  }                                                                                                \
  WICK_LANES Float powi##f(Float x, int y) { return __ocml_pown_##type(x, y); }                    \
  WICK_LANES int ilogb##f(Float x) { return __ocml_ilogb_##type(x); }                              \
  WICK_LANES Float norm3d##f(Float x, Float y, Float z) { return __ocml_len3_##type(x, y, z); }    \
  WICK_LANES Float norm4d##f(Float x, Float y, Float z, Float w) {                                 \
    return __ocml_len4_##type(x, y, z, w);                                                         \
  }                                                                                                \
  WICK_LANES Float rnorm3d##f(Float x, Float y, Float z) { return __ocml_rlen3_##type(x, y, z); }  \
  WICK_LANES Float rnorm4d##f(Float x, Float y, Float z, Float w) {                                \
    return __ocml_rlen4_##type(x, y, z, w);                                                        \
  }                                                                                                \
  WICK_LANES long lrint##f(Float x) { return static_cast<long>(__ocml_rint_##type(x)); }           \
  WICK_LANES long lround##f(Float x) { return static_cast<long>(__ocml_round_##type(x)); }         \
  WICK_LANES long long llrint##f(Float x) {                                                        \
    return static_cast<long long>(__ocml_rint_##type(x));                                          \
  }                                                                                                \
  WICK_LANES long long llround##f(Float x) {                                                       \
    return static_cast<long long>(__ocml_round_##type(x));                                         \
  }                                                                                                \
  WICK_LANES void sincos##f(Float x, Float* sine, Float* cosine) {                                 \
    *sine = __ocml_sin_##type(x);                                                                  \
    *cosine = __ocml_cos_##type(x);                                                                \
  }                                                                                                \
  WICK_LANES void sincospi##f(Float x, Float* sine, Float* cosine) {                               \
    *sine = __ocml_sinpi_##type(x);                                                                \
    *cosine = __ocml_cospi_##type(x);                                                              \
  }                                                                                                \
  WICK_LANES Float frexp##f(Float x, int* exponent) {                                              \
    int power;                                                                                     \
    const Float m = __ocml_frexp_##type(x, (__attribute__((address_space(5))) int*)&power);        \
    *exponent = power;                                                                             \
    return m;                                                                                      \
  }                                                                                                \
  WICK_LANES Float modf##f(Float x, Float* whole) {                                                \
    Float part;                                                                                    \
    const Float rest = __ocml_modf_##type(x, (__attribute__((address_space(5))) Float*)&part);     \
    *whole = part;                                                                                 \
    return rest;                                                                                   \
  }                                                                                                \
  WICK_LANES Float remquo##f(Float x, Float y, int* quotient) {                                    \
    int low;                                                                                       \
    const Float rest = __ocml_remquo_##type(x, y, (__attribute__((address_space(5))) int*)&low);   \
    *quotient = low;                                                                               \
    return rest;                                                                                   \
  }                                                                                                \
  WICK_LANES bool isfinite(Float x) { return __builtin_isfinite(x); }                              \
  WICK_LANES bool isinf(Float x) { return __builtin_isinf(x); }                                    \
  WICK_LANES bool isnan(Float x) { return __builtin_isnan(x); }                                    \
  WICK_LANES bool signbit(Float x) { return __builtin_signbit(x); }                                \
  WICK_LANES Float max(Float x, Float y) { return __ocml_fmax_##type(x, y); }                      \
  WICK_LANES Float min(Float x, Float y) { return __ocml_fmin_##type(x, y); }                      \
  WICK_LANES Float abs(Float x) { return __ocml_fabs_##type(x); }
WICK_MATH_OTHERS(float, f, f32)
WICK_MATH_OTHERS(double, , f64)
#undef WICK_MATH_OTHERS
WICK_LANES float fma(float x, float y, float z) { return __ocml_fma_f32(x, y, z); }
WICK_LANES float ldexp(float x, int y) { return __ocml_ldexp_f32(x, y); }
WICK_LANES float pow(float x, int y) { return __ocml_pown_f32(x, y); }
WICK_LANES double pow(double x, int y) { return __ocml_pown_f64(x, y); }
WICK_LANES double max(float x, double y) { return __ocml_fmax_f64(x, y); }
WICK_LANES double max(double x, float y) { return __ocml_fmax_f64(x, y); }
WICK_LANES double min(float x, double y) { return __ocml_fmin_f64(x, y); }
WICK_LANES double min(double x, float y) { return __ocml_fmin_f64(x, y); }
WICK_LANES float fdividef(float x, float y) { return x / y; }
WICK_LANES float nanf(const char*) { return __builtin_nanf(""); }
WICK_LANES double nan(const char*) { return __builtin_nan(""); }

#define WICK_INTEGER_MINMAX(T)                         \
  WICK_LANES T max(T x, T y) { return x > y ? x : y; } \
  WICK_LANES T min(T x, T y) { return x < y ? x : y; }
WICK_INTEGER_MINMAX(int)
WICK_INTEGER_MINMAX(unsigned)
WICK_INTEGER_MINMAX(long)
WICK_INTEGER_MINMAX(unsigned long)
WICK_INTEGER_MINMAX(long long)
WICK_INTEGER_MINMAX(unsigned long long)
#undef WICK_INTEGER_MINMAX
/// Of different integer types, in their common one.
template <class T, class U, WICK_INTEGER(T)>
WICK_LANES auto max(T x, U y) -> decltype(x + y) {
  return x > y ? x : y;
}
template <class T, class U, WICK_INTEGER(T)>
WICK_LANES auto min(T x, U y) -> decltype(x + y) {
  return x < y ? x : y;
}
WICK_LANES int abs(int x) { return x < 0 ? -x : x; }
WICK_LANES long abs(long x) { return x < 0 ? -x : x; }
WICK_LANES long long abs(long long x) { return x < 0 ? -x : x; }
WICK_LANES long labs(long x) { return abs(x); }
WICK_LANES long long llabs(long long x) { return abs(x); }

// Fast forms.
WICK_LANES float __cosf(float x) { return __ocml_native_cos_f32(x); }
WICK_LANES float __sinf(float x) { return __ocml_native_sin_f32(x); }
WICK_LANES float __tanf(float x) { return __ocml_native_sin_f32(x) / __ocml_native_cos_f32(x); }
WICK_LANES void __sincosf(float x, float* sine, float* cosine) {
  *sine = __ocml_native_sin_f32(x);
  *cosine = __ocml_native_cos_f32(x);
}
WICK_LANES float __expf(float x) { return __ocml_native_exp_f32(x); }
WICK_LANES float __exp10f(float x) { return __ocml_native_exp10_f32(x); }
WICK_LANES float __logf(float x) { return __ocml_native_log_f32(x); }
WICK_LANES float __log2f(float x) { return __ocml_native_log2_f32(x); }
WICK_LANES float __log10f(float x) { return __ocml_native_log10_f32(x); }
WICK_LANES float __powf(float x, float y) { return __ocml_pow_f32(x, y); }
WICK_LANES float __fdividef(float x, float y) { return x / y; }
WICK_LANES float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x == x ? x : 0; }

// The compiler may not fuse these with other operations.
#define WICK_ROUNDED_2(Float, name, expression) \
  WICK_LANES Float name(Float x, Float y) { _Pragma("clang fp contract(off)") return expression; }
#define WICK_ROUNDED(Float, prefix, f)                                                    \
  WICK_ROUNDED_2(Float, __##prefix##add_rn, x + y)                                        \
  WICK_ROUNDED_2(Float, __##prefix##sub_rn, x - y)                                        \
  WICK_ROUNDED_2(Float, __##prefix##mul_rn, x* y)                                         \
  WICK_ROUNDED_2(Float, __##prefix##div_rn, x / y)                                        \
  WICK_LANES Float __##prefix##rcp_rn(Float x) { return 1 / x; }                          \
  WICK_LANES Float __##prefix##sqrt_rn(Float x) { return __builtin_elementwise_sqrt(x); } \
  WICK_LANES Float __fma##f##_rn(Float x, Float y, Float z) { return fma(x, y, z); }
WICK_ROUNDED(float, f, f)
WICK_ROUNDED(double, d, )
#undef WICK_ROUNDED_2
#undef WICK_ROUNDED
WICK_LANES float __frsqrt_rn(float x) { return __ocml_rsqrt_f32(x); }

namespace std {
using ::abs;
using ::ceil;
using ::copysign;
using ::cos;
using ::exp;
using ::exp2;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log2;
using ::max;
using ::min;
using ::pow;
using ::round;
using ::sin;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;
}  // namespace std
