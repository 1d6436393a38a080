#pragma once

// Foundations of wick/math: function attributes, fixed-width types, bit casts, and operations that
// processors compute exactly. Freestanding, because host compilers, nvcc, clang for AMD and the
// run-time compilers all compile this source.

#if defined(__HIP__) || (defined(__clang__) && defined(__CUDA__))
#define WICK_FN __attribute__((host, device, always_inline)) inline
#elif defined(__CUDACC__)
#define WICK_FN __host__ __device__ __forceinline__
#else
#define WICK_FN __attribute__((always_inline)) inline
#endif

/// 1 if nvcc or NVRTC compiles device code, where compiler builtins have other names.
#if defined(__CUDA_ARCH__) && !defined(__clang__)
#define WICK_FN_NVCC_DEVICE 1
#else
#define WICK_FN_NVCC_DEVICE 0
#endif

/// 1 if clang compiles device code for AMD.
#if defined(__AMDGCN__)
#define WICK_FN_AMD_DEVICE 1
#else
#define WICK_FN_AMD_DEVICE 0
#endif

/// Declares a constant table that functions index at run time, for example
/// `WICK_TABLE auto kPrimes = primes();`. On GPUs it lies in global memory. Static, because objects
/// of several instruction sets include it.
#if WICK_FN_NVCC_DEVICE
#define WICK_TABLE static __device__ constexpr
#elif WICK_FN_AMD_DEVICE
#define WICK_TABLE static __attribute__((constant)) constexpr
#else
#define WICK_TABLE static constexpr
#endif

namespace wick::math {

#if defined(__INT64_TYPE__)
using i8 = __INT8_TYPE__;
using i16 = __INT16_TYPE__;
using i32 = __INT32_TYPE__;
using i64 = __INT64_TYPE__;
using u8 = __UINT8_TYPE__;
using u16 = __UINT16_TYPE__;
using u32 = __UINT32_TYPE__;
using u64 = __UINT64_TYPE__;
#else
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long;
#endif
static_assert(sizeof(i8) == 1 && sizeof(i16) == 2 && sizeof(i32) == 4 && sizeof(i64) == 8);

/// The bit pattern of a float, and back.
WICK_FN u32 f32_bits(float x) { return __builtin_bit_cast(u32, x); }
WICK_FN float bits_f32(u32 b) { return __builtin_bit_cast(float, b); }
/// The bit pattern of a double, and back.
WICK_FN u64 f64_bits(double x) { return __builtin_bit_cast(u64, x); }
WICK_FN double bits_f64(u64 b) { return __builtin_bit_cast(double, b); }

#if WICK_FN_NVCC_DEVICE
WICK_FN float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
WICK_FN double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
/// Square root by the steps that nvcc uses in the middle of the range. Small operands are scaled
/// into that range by a power of four, and selects handle the special cases for which nvcc uses
/// branches.
struct RootF32 {
  float root;  // of x, or of x·2^96 if x is small
  bool small, ends;

  WICK_FN explicit RootF32(float x) : small(x < 0x1p-96f) {
    const float moved = x * (small ? 0x1p96f : 1.0f);
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(moved));
    const float g = moved * y;
    ends = (x == 0.0f) | (x == __builtin_bit_cast(float, 0x7f800000u));
    root = ends ? x : __fmaf_rn(__fmaf_rn(-g, g, moved), 0.5f * y, g);
  }
};
WICK_FN float sqrt(float x) {
  const RootF32 r(x);
  return r.root * (r.small ? 0x1p-48f : 1.0f);
}
WICK_FN double sqrt(double x) { return __dsqrt_rn(x); }
WICK_FN float rint(float x) { return ::rintf(x); }
WICK_FN double rint(double x) { return ::rint(x); }
WICK_FN float floor(float x) { return ::floorf(x); }
WICK_FN double floor(double x) { return ::floor(x); }
WICK_FN float ceil(float x) { return ::ceilf(x); }
WICK_FN double ceil(double x) { return ::ceil(x); }
WICK_FN float abs(float x) { return ::fabsf(x); }
WICK_FN double abs(double x) { return ::fabs(x); }
#else
/// a·b + c, rounded once. Every input; correctly rounded.
WICK_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WICK_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
/// Square root. NaN below zero, sqrt(−0) = −0; correctly rounded.
WICK_FN float sqrt(float x) { return __builtin_sqrtf(x); }
WICK_FN double sqrt(double x) { return __builtin_sqrt(x); }
/// The nearest integer, ties to even. Every input; exact.
WICK_FN float rint(float x) { return __builtin_rintf(x); }
WICK_FN double rint(double x) { return __builtin_rint(x); }
/// The largest integer not above x. Every input; exact.
WICK_FN float floor(float x) { return __builtin_floorf(x); }
WICK_FN double floor(double x) { return __builtin_floor(x); }
/// The smallest integer not below x. Every input; exact.
WICK_FN float ceil(float x) { return __builtin_ceilf(x); }
WICK_FN double ceil(double x) { return __builtin_ceil(x); }
/// x without its sign. Every input; exact.
WICK_FN float abs(float x) { return __builtin_fabsf(x); }
WICK_FN double abs(double x) { return __builtin_fabs(x); }
#endif

/// min(x, limit); NaN stays NaN. The limit must not be 0. Exact.
WICK_FN float at_most(float x, float limit) {
#if WICK_FN_NVCC_DEVICE
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(limit));
  return y;
#else
  return x > limit ? limit : x;
#endif
}
WICK_FN float at_least(float x, float limit) {
#if WICK_FN_NVCC_DEVICE
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(limit));
  return y;
#else
  return x < limit ? limit : x;
#endif
}

/// 1/d for 2^-100 <= |d| <= 2^100 or NaN, correctly rounded. On NVIDIA these are the steps that
/// nvcc uses for such numbers, without its check for other numbers, whose branch would prevent
/// overlap of independent work.
WICK_FN float recip_moderate(float d) {
#if WICK_FN_NVCC_DEVICE
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
  return __fmaf_rn(r, -__fmaf_rn(d, r, -1.0f), r);
#else
  return 1.0f / d;
#endif
}

/// Whether two types are equal.
template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

/// The types that functions compute in.
template <class T>
concept Real = kSame<T, float> || kSame<T, double>;
template <class T>
concept Whole = kSame<T, u8> || kSame<T, u32> || kSame<T, i16> || kSame<T, i32> || kSame<T, i64>;
template <class T>
concept Number = Real<T> || Whole<T>;

namespace detail {

inline constexpr float kInfF32 = __builtin_bit_cast(float, 0x7f800000u);
inline constexpr double kInfF64 = __builtin_bit_cast(double, u64{0x7ff0000000000000u});
inline constexpr float kNaNF32 = __builtin_bit_cast(float, 0x7fc00000u);
inline constexpr double kNaNF64 = __builtin_bit_cast(double, u64{0x7ff8000000000000u});

/// y with the sign of x. y must not be negative unless x is.
WICK_FN float with_sign(float y, float x) {
  return bits_f32(f32_bits(y) | (f32_bits(x) & 0x80000000u));
}
WICK_FN double with_sign(double y, double x) {
  return bits_f64(f64_bits(y) | (f64_bits(x) & 0x8000000000000000u));
}

}  // namespace detail

}  // namespace wick::math
