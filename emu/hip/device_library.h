#pragma once

// Replaces ROCm's device libraries, which HIP's headers call, for compilers that are installed
// without them.
//
// A kernel that uses threadIdx.x, __syncthreads() or powf() calls __ockl_get_local_id(),
// __atomic_work_item_fence() or __ocml_pow_f32(). ROCm ships these functions in bitcode files;
// Debian's clang doesn't. This file implements them with the compiler's builtins. Include it before
// the program (-x hip -nogpulib -include emu/hip/device_library.h); it includes <hip/hip_runtime.h>
// itself. Programs of hiprtc get it from device/hip_runtime.h. It is written for the headers of HIP
// 5.2 and clang 19, is under this repository's license (Apache-2.0) and needs only device_math.h
// and device_hostcall.h.
//
// Mathematics: double functions evaluate series on a reduced argument. They are accurate to some
// units in the last place (erfc: to some tens). Float functions round the double results or use
// clang's builtins. The last bits can differ from ROCm's. With -ffast-math, double functions lose
// digits at large arguments, and results for infinities and NaN are unreliable.
//
// printf, assert() and malloc() call the host: see device_hostcall.h.
//
// Not implemented: gamma and Bessel functions, the inverses of erf, erfc and normcdf, erfcx, images
// and textures, sync() of cooperative groups that are larger than a block, integer dot products,
// and conversions to half that don't round to nearest. A program that uses one of these fails to
// link, and the linker names the function.

#if defined(__HIP__)

#if __HIP_DEVICE_COMPILE__
// HIP's headers implement these two functions with an intrinsic that LLVM has removed.
#define atomicInc wick_device_old_atomic_inc
#define atomicDec wick_device_old_atomic_dec
#endif
#include <hip/hip_runtime.h>

#if __HIP_DEVICE_COMPILE__
#undef atomicInc
#undef atomicDec

// Suppresses warnings in this file about the program's options, such as an older C++ or
// -ffast-math.
#pragma clang system_header

#include "device_hostcall.h"

#define WICK_DEVICE __device__ inline
#define WICK_LIBRARY extern "C" __device__ inline
// These functions are in every kernel, so they are inlined even without optimization.
#define WICK_INDEX extern "C" __device__ inline __attribute__((always_inline))

WICK_DEVICE unsigned atomicInc(unsigned* address, unsigned value) {
  return __builtin_amdgcn_atomic_inc32(address, value, __ATOMIC_RELAXED, "agent");
}
WICK_DEVICE unsigned atomicDec(unsigned* address, unsigned value) {
  return __builtin_amdgcn_atomic_dec32(address, value, __ATOMIC_RELAXED, "agent");
}

// Indices. All blocks have the full size, as in HIP's launches.

WICK_INDEX size_t __ockl_get_local_id(uint axis) {
  return axis == 0   ? __builtin_amdgcn_workitem_id_x()
         : axis == 1 ? __builtin_amdgcn_workitem_id_y()
                     : __builtin_amdgcn_workitem_id_z();
}
WICK_INDEX size_t __ockl_get_group_id(uint axis) {
  return axis == 0   ? __builtin_amdgcn_workgroup_id_x()
         : axis == 1 ? __builtin_amdgcn_workgroup_id_y()
                     : __builtin_amdgcn_workgroup_id_z();
}
WICK_INDEX size_t __ockl_get_local_size(uint axis) {
  return axis == 0   ? __builtin_amdgcn_workgroup_size_x()
         : axis == 1 ? __builtin_amdgcn_workgroup_size_y()
                     : __builtin_amdgcn_workgroup_size_z();
}
// The global size comes from the dispatch packet, which code objects of every version have; hidden
// arguments contain the number of blocks only from version 5 on.
WICK_INDEX size_t __ockl_get_global_size(uint axis) {
  return axis == 0   ? __builtin_amdgcn_grid_size_x()
         : axis == 1 ? __builtin_amdgcn_grid_size_y()
                     : __builtin_amdgcn_grid_size_z();
}
WICK_INDEX size_t __ockl_get_num_groups(uint axis) {
  return static_cast<uint>(__ockl_get_global_size(axis)) /
         static_cast<uint>(__ockl_get_local_size(axis));
}
extern "C" __device__ size_t __ockl_get_global_id(uint axis);
WICK_INDEX size_t __ockl_get_global_id(uint axis) {
  return __ockl_get_group_id(axis) * __ockl_get_local_size(axis) + __ockl_get_local_id(axis);
}

// Fences, waves and blocks.

#define WICK_FENCE(scope)                              \
  switch (order) {                                     \
    case __memory_order_relaxed:                       \
      break;                                           \
    case __memory_order_acquire:                       \
      __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, scope); \
      break;                                           \
    case __memory_order_release:                       \
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, scope); \
      break;                                           \
    case __memory_order_acq_rel:                       \
      __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, scope); \
      break;                                           \
    case __memory_order_seq_cst:                       \
      __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, scope); \
      break;                                           \
  }

WICK_INDEX void __atomic_work_item_fence(__cl_mem_fence_flags, __memory_order order,
                                         __memory_scope scope) {
  switch (scope) {
    case __memory_scope_work_item:
      break;
    case __memory_scope_sub_group:
      WICK_FENCE("wavefront") break;
    case __memory_scope_work_group:
      WICK_FENCE("workgroup") break;
    case __memory_scope_device:
      WICK_FENCE("agent") break;
    case __memory_scope_all_svm_devices:
      WICK_FENCE("") break;
  }
}
#undef WICK_FENCE

WICK_INDEX uint32_t __ockl_lane_u32() { return __lane_id(); }
WICK_INDEX uint __ockl_activelane_u32() {
  const uint64_t active = __ballot64(1);
  return __builtin_amdgcn_mbcnt_hi(active >> 32, __builtin_amdgcn_mbcnt_lo(active, 0));
}
WICK_INDEX bool __ockl_wfany_i32(int predicate) { return __ballot64(predicate) != 0; }
WICK_INDEX bool __ockl_wfall_i32(int predicate) { return __ballot64(!predicate) == 0; }

namespace wick_device {
enum class Reduction { kAdd, kAnd, kOr };

/// Reduces a value over all threads of the block.
template <Reduction kReduction>
WICK_DEVICE int block_reduction(int value) {
  __shared__ int result;
  if (__ockl_get_local_id(0) + __ockl_get_local_id(1) + __ockl_get_local_id(2) == 0) {
    result = kReduction == Reduction::kAnd ? -1 : 0;
  }
  __syncthreads();
  if constexpr (kReduction == Reduction::kAdd) atomicAdd(&result, value);
  if constexpr (kReduction == Reduction::kAnd) atomicAnd(&result, value);
  if constexpr (kReduction == Reduction::kOr) atomicOr(&result, value);
  __syncthreads();
  const int all = result;
  __syncthreads();  // the next call starts by writing `result`
  return all;
}
}  // namespace wick_device

WICK_LIBRARY int __ockl_wgred_add_i32(int value) {
  return wick_device::block_reduction<wick_device::Reduction::kAdd>(value);
}
WICK_LIBRARY int __ockl_wgred_and_i32(int value) {
  return wick_device::block_reduction<wick_device::Reduction::kAnd>(value);
}
WICK_LIBRARY int __ockl_wgred_or_i32(int value) {
  return wick_device::block_reduction<wick_device::Reduction::kOr>(value);
}
WICK_LIBRARY void __ockl_atomic_add_noret_f32(float* address, float value) {
  atomicAdd(address, value);
}

// Integers.

WICK_INDEX uchar __ockl_clz_u8(uchar x) { return x == 0 ? 8 : __builtin_clz(x) - 24; }
WICK_INDEX ushort __ockl_clz_u16(ushort x) { return x == 0 ? 16 : __builtin_clz(x) - 16; }
WICK_INDEX uint __ockl_clz_u32(uint x) { return x == 0 ? 32 : __builtin_clz(x); }
WICK_INDEX uint64_t __ockl_clz_u64(uint64_t x) { return x == 0 ? 64 : __builtin_clzll(x); }
WICK_INDEX uint __ockl_mul24_u32(uint x, uint y) { return (x & 0xffffff) * (y & 0xffffff); }
WICK_INDEX int __ockl_mul24_i32(int x, int y) {
  return static_cast<int>((static_cast<uint>(x << 8 >> 8)) * static_cast<uint>(y << 8 >> 8));
}
WICK_INDEX uint __ockl_mul_hi_u32(uint x, uint y) { return static_cast<uint64_t>(x) * y >> 32; }
WICK_INDEX int __ockl_mul_hi_i32(int x, int y) { return static_cast<int64_t>(x) * y >> 32; }
WICK_INDEX uint __ockl_sadd_u32(uint x, uint y, uint z) { return (x > y ? x - y : y - x) + z; }

#include "device_math.h"

/// Defines a function for double and float; the float version rounds the double result.
#define WICK_OF_1(name, expression)                                        \
  WICK_LIBRARY double __ocml_##name##_f64(double x) { return expression; } \
  WICK_LIBRARY float __ocml_##name##_f32(float x) {                        \
    return static_cast<float>(__ocml_##name##_f64(x));                     \
  }
#define WICK_OF_2(name, expression)                                                  \
  WICK_LIBRARY double __ocml_##name##_f64(double x, double y) { return expression; } \
  WICK_LIBRARY float __ocml_##name##_f32(float x, float y) {                         \
    return static_cast<float>(__ocml_##name##_f64(x, y));                            \
  }
/// Defines a function for double and float from an expression that is correct in either type.
#define WICK_EACH_1(name, expression)                                      \
  WICK_LIBRARY double __ocml_##name##_f64(double x) { return expression; } \
  WICK_LIBRARY float __ocml_##name##_f32(float x) { return expression; }
#define WICK_EACH_2(name, expression)                                                \
  WICK_LIBRARY double __ocml_##name##_f64(double x, double y) { return expression; } \
  WICK_LIBRARY float __ocml_##name##_f32(float x, float y) { return expression; }

WICK_EACH_1(ceil, __builtin_elementwise_ceil(x))
WICK_EACH_1(fabs, __builtin_elementwise_abs(x))
WICK_EACH_1(floor, __builtin_elementwise_floor(x))
WICK_EACH_1(nearbyint, __builtin_elementwise_nearbyint(x))
WICK_EACH_1(rint, __builtin_elementwise_rint(x))
WICK_EACH_1(round, __builtin_elementwise_round(x))
WICK_EACH_1(sqrt, __builtin_elementwise_sqrt(x))
WICK_EACH_1(trunc, __builtin_elementwise_trunc(x))
WICK_EACH_2(copysign, __builtin_elementwise_copysign(x, y))
WICK_EACH_2(fdim, !(x <= y) ? x - y : 0)
WICK_EACH_2(fmax, __builtin_elementwise_max(x, y))
WICK_EACH_2(fmin, __builtin_elementwise_min(x, y))
WICK_LIBRARY double __ocml_fma_f64(double x, double y, double z) { return __builtin_fma(x, y, z); }
WICK_LIBRARY float __ocml_fma_f32(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
WICK_LIBRARY double __ocml_ldexp_f64(double x, int y) { return __builtin_ldexp(x, y); }
WICK_LIBRARY float __ocml_ldexp_f32(float x, int y) { return __builtin_ldexpf(x, y); }
WICK_LIBRARY double __ocml_scalbn_f64(double x, int y) { return __builtin_ldexp(x, y); }
WICK_LIBRARY float __ocml_scalbn_f32(float x, int y) { return __builtin_ldexpf(x, y); }
WICK_LIBRARY double __ocml_nextafter_f64(double x, double y) {
  return wick_device::nextafter<double, uint64_t>(x, y);
}
WICK_LIBRARY float __ocml_nextafter_f32(float x, float y) {
  return wick_device::nextafter<float, uint32_t>(x, y);
}

WICK_LIBRARY float __ocml_exp_f32(float x) { return __builtin_expf(x); }
WICK_LIBRARY float __ocml_exp2_f32(float x) { return __builtin_exp2f(x); }
WICK_LIBRARY float __ocml_log_f32(float x) { return __builtin_logf(x); }
WICK_LIBRARY float __ocml_log2_f32(float x) { return __builtin_log2f(x); }
WICK_LIBRARY float __ocml_log10_f32(float x) { return __builtin_log10f(x); }
WICK_LIBRARY double __ocml_exp_f64(double x) { return wick_device::exp({x, 0}); }
WICK_LIBRARY double __ocml_exp2_f64(double x) {
  // The integer part's power of two is exact, so only the fraction needs exp().
  const double whole = __builtin_rint(x);
  const double part =
      wick_device::exp({(x - whole) * (wick_device::kLn2 + wick_device::kLn2Rest), 0});
  return x > 2000 ? wick_device::infinity() : x < -2000 ? 0 : __builtin_ldexp(part, int(whole));
}
WICK_LIBRARY double __ocml_log_f64(double x) { return wick_device::log(x); }
WICK_LIBRARY double __ocml_log2_f64(double x) {
  return wick_device::log(x, {wick_device::kLog2E, wick_device::kLog2ELow});
}
WICK_LIBRARY double __ocml_log10_f64(double x) {
  return wick_device::log(x, {wick_device::kLog10E, wick_device::kLog10ELow});
}
WICK_OF_1(exp10, wick_device::exp(__builtin_isinf(x) ? wick_device::Pair{x, 0}
                                                     : wick_device::product({wick_device::kLn10,
                                                                             wick_device::kLn10Low},
                                                                            x)))
WICK_OF_1(expm1, wick_device::exp_minus_1(x))
WICK_OF_1(log1p, wick_device::log_of_1_plus(x))
WICK_OF_2(pow, wick_device::pow(x, y))
WICK_LIBRARY double __ocml_pown_f64(double x, int y) { return wick_device::pow(x, y); }
WICK_LIBRARY float __ocml_pown_f32(float x, int y) {
  return static_cast<float>(wick_device::pow(x, y));
}
WICK_OF_1(cbrt, wick_device::cbrt(x))
WICK_OF_1(rcbrt, 1 / wick_device::cbrt(x))
WICK_OF_1(rsqrt, 1 / __builtin_sqrt(x))

WICK_OF_1(sin, wick_device::sin(x))
WICK_OF_1(cos, wick_device::cos(x))
WICK_OF_1(tan, wick_device::tan(x))
WICK_OF_1(sinpi, wick_device::sin_of_pi(x))
WICK_OF_1(cospi, wick_device::cos_of_pi(x))
WICK_OF_1(asin, wick_device::atan2(x, __builtin_sqrt((1 - x) * (1 + x))))
WICK_OF_1(acos, wick_device::atan2(__builtin_sqrt((1 - x) * (1 + x)), x))
WICK_OF_1(atan, wick_device::atan2(x, 1))
WICK_OF_2(atan2, wick_device::atan2(x, y))
WICK_OF_1(sinh, wick_device::sinh(x))
WICK_OF_1(cosh, wick_device::cosh(x))
WICK_OF_1(tanh, wick_device::tanh(x))
WICK_OF_1(asinh, wick_device::arsinh(x))
WICK_OF_1(acosh, wick_device::arcosh(x))
WICK_OF_1(atanh, wick_device::artanh(x))
WICK_OF_1(erf, wick_device::erf(x))
WICK_OF_1(erfc, wick_device::erfc({x, 0}))
WICK_OF_1(ncdf, wick_device::erfc(
                    wick_device::product({wick_device::kSqrtHalf, wick_device::kSqrtHalfLow}, -x)) /
                    2)

WICK_OF_2(fmod, wick_device::fmod(x, y))
WICK_OF_2(hypot, wick_device::length(x, y, 0, 0))
WICK_OF_2(rhypot, 1 / wick_device::length(x, y, 0, 0))
WICK_OF_2(scalb, wick_device::scalb(x, y))
WICK_OF_1(logb, wick_device::logb(x))
WICK_LIBRARY int __ocml_ilogb_f64(double x) { return wick_device::ilogb(x); }
WICK_LIBRARY int __ocml_ilogb_f32(float x) { return wick_device::ilogb(x); }

// Functions with several arguments, or that return results through pointers to private memory.
#define WICK_OTHERS(Float, type)                                                                   \
  WICK_LIBRARY Float __ocml_len3_##type(Float x, Float y, Float z) {                               \
    return static_cast<Float>(wick_device::length(x, y, z, 0));                                    \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_len4_##type(Float x, Float y, Float z, Float w) {                      \
    return static_cast<Float>(wick_device::length(x, y, z, w));                                    \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_rlen3_##type(Float x, Float y, Float z) {                              \
    return static_cast<Float>(1 / wick_device::length(x, y, z, 0));                                \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_rlen4_##type(Float x, Float y, Float z, Float w) {                     \
    return static_cast<Float>(1 / wick_device::length(x, y, z, w));                                \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_remainder_##type(Float x, Float y) {                                   \
    int quotient;                                                                                  \
    return static_cast<Float>(wick_device::remquo(x, y, &quotient));                               \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_remquo_##type(Float x, Float y,                                        \
                                          __attribute__((address_space(5))) int* quotient) {       \
    int low;                                                                                       \
    const Float r = static_cast<Float>(wick_device::remquo(x, y, &low));                           \
    *quotient = low;                                                                               \
    return r;                                                                                      \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_sincos_##type(Float x,                                                 \
                                          __attribute__((address_space(5))) Float* cosine) {       \
    *cosine = static_cast<Float>(wick_device::cos(x));                                             \
    return static_cast<Float>(wick_device::sin(x));                                                \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_sincospi_##type(Float x,                                               \
                                            __attribute__((address_space(5))) Float* cosine) {     \
    *cosine = static_cast<Float>(wick_device::cos_of_pi(x));                                       \
    return static_cast<Float>(wick_device::sin_of_pi(x));                                          \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_modf_##type(Float x, __attribute__((address_space(5))) Float* whole) { \
    Float part;                                                                                    \
    const Float rest = wick_device::modf(x, &part);                                                \
    *whole = part;                                                                                 \
    return rest;                                                                                   \
  }                                                                                                \
  WICK_LIBRARY Float __ocml_frexp_##type(Float x,                                                  \
                                         __attribute__((address_space(5))) int* exponent) {        \
    int power;                                                                                     \
    const double m = __builtin_frexp(x, &power);                                                   \
    *exponent = power;                                                                             \
    return static_cast<Float>(m);                                                                  \
  }                                                                                                \
  WICK_LIBRARY int __ocml_isfinite_##type(Float x) { return __builtin_isfinite(x); }               \
  WICK_LIBRARY int __ocml_isinf_##type(Float x) { return __builtin_isinf(x); }                     \
  WICK_LIBRARY int __ocml_isnan_##type(Float x) { return __builtin_isnan(x); }                     \
  WICK_LIBRARY int __ocml_signbit_##type(Float x) { return __builtin_signbit(x); }
WICK_OTHERS(float, f32)
WICK_OTHERS(double, f64)

// The native_ functions are approximate and map to single instructions.
WICK_LIBRARY float __ocml_native_sin_f32(float x) { return __builtin_sinf(x); }
WICK_LIBRARY float __ocml_native_cos_f32(float x) { return __builtin_cosf(x); }
WICK_LIBRARY float __ocml_native_sqrt_f32(float x) { return __builtin_amdgcn_sqrtf(x); }
WICK_LIBRARY float __ocml_native_exp_f32(float x) {
  return __builtin_amdgcn_exp2f(x * static_cast<float>(wick_device::kLog2E));
}
WICK_LIBRARY float __ocml_native_exp2_f32(float x) { return __builtin_amdgcn_exp2f(x); }
WICK_LIBRARY float __ocml_native_exp10_f32(float x) {
  return __builtin_amdgcn_exp2f(x * static_cast<float>(wick_device::kLn10 * wick_device::kLog2E));
}
WICK_LIBRARY float __ocml_native_log2_f32(float x) { return __builtin_amdgcn_logf(x); }
WICK_LIBRARY float __ocml_native_log_f32(float x) {
  return __builtin_amdgcn_logf(x) * static_cast<float>(wick_device::kLn2);
}
WICK_LIBRARY float __ocml_native_log10_f32(float x) {
  return __builtin_amdgcn_logf(x) * static_cast<float>(wick_device::kLn2 * wick_device::kLog10E);
}

// Functions of half and half2.
#define WICK_HALF(name, expression)                                    \
  WICK_LIBRARY _Float16 __ocml_##name##_f16(_Float16 x) {              \
    return static_cast<_Float16>(expression);                          \
  }                                                                    \
  WICK_LIBRARY __2f16 __ocml_##name##_2f16(__2f16 x) {                 \
    return __2f16{__ocml_##name##_f16(x.x), __ocml_##name##_f16(x.y)}; \
  }
WICK_HALF(ceil, __builtin_elementwise_ceil(x))
WICK_HALF(cos, __ocml_cos_f32(x))
WICK_HALF(exp, __builtin_expf(x))
WICK_HALF(exp10, __ocml_exp10_f32(x))
WICK_HALF(exp2, __builtin_exp2f(x))
WICK_HALF(fabs, __builtin_elementwise_abs(x))
WICK_HALF(floor, __builtin_elementwise_floor(x))
WICK_HALF(log, __builtin_logf(x))
WICK_HALF(log10, __builtin_log10f(x))
WICK_HALF(log2, __builtin_log2f(x))
WICK_HALF(rint, __builtin_elementwise_rint(x))
WICK_HALF(rsqrt, __ocml_rsqrt_f32(x))
WICK_HALF(sin, __ocml_sin_f32(x))
WICK_HALF(sqrt, __builtin_elementwise_sqrt(x))
WICK_HALF(trunc, __builtin_elementwise_trunc(x))
WICK_LIBRARY _Float16 __ocml_fmax_f16(_Float16 x, _Float16 y) {
  return __builtin_elementwise_max(x, y);
}
WICK_LIBRARY _Float16 __ocml_fmin_f16(_Float16 x, _Float16 y) {
  return __builtin_elementwise_min(x, y);
}
WICK_LIBRARY _Float16 __ocml_fma_f16(_Float16 x, _Float16 y, _Float16 z) {
  return __builtin_elementwise_fma(x, y, z);
}
WICK_LIBRARY __2f16 __ocml_fma_2f16(__2f16 x, __2f16 y, __2f16 z) {
  return __builtin_elementwise_fma(x, y, z);
}
WICK_LIBRARY int __ocml_isinf_f16(_Float16 x) { return __builtin_isinf(x); }
WICK_LIBRARY int __ocml_isnan_f16(_Float16 x) { return __builtin_isnan(x); }
WICK_LIBRARY __2i16 __ocml_isinf_2f16(__2f16 x) {
  return __builtin_elementwise_abs(x) == static_cast<_Float16>(__builtin_inff());
}
WICK_LIBRARY __2i16 __ocml_isnan_2f16(__2f16 x) { return x != x; }
WICK_LIBRARY _Float16 __ocml_pown_f16(_Float16 x, int y) {
  return static_cast<_Float16>(__ocml_pown_f32(x, y));
}
WICK_LIBRARY float __ockl_fdot2(__2f16 x, __2f16 y, float z, bool) {
  return static_cast<float>(x.x) * y.x + static_cast<float>(x.y) * y.y + z;
}

#undef WICK_DEVICE
#undef WICK_LIBRARY
#undef WICK_INDEX
#undef WICK_OF_1
#undef WICK_OF_2
#undef WICK_EACH_1
#undef WICK_EACH_2
#undef WICK_OTHERS
#undef WICK_HALF

#endif  // __HIP_DEVICE_COMPILE__
#endif  // __HIP__
