#pragma once

// What HIP's headers take from ROCm's device libraries, for compilers that come without them.
//
// A kernel that says threadIdx.x, __syncthreads() or powf() calls __ockl_get_local_id(),
// __atomic_work_item_fence() or __ocml_pow_f32(): functions of bitcode files that ROCm ships and
// Debian's clang doesn't. Here they are made of the compiler's builtins. Give this file to the
// compiler in front of the program (-x hip -nogpulib -include emu/hip/device_library.h): it
// includes <hip/hip_runtime.h> itself. It is written for the headers of HIP 5.2 and clang 19, is
// under this repository's license (Apache-2.0) and needs nothing else of the repository.
//
// Mathematics: double functions are series on a reduced argument, right to some units in the last
// place (erfc: to some tens); float functions are the same ones rounded, or what clang makes of its
// builtins. Their last bits can differ from ROCm's. With -ffast-math double functions lose digits
// at large arguments, and infinities and NaN are not to be relied on.
//
// Left out, so that a program that uses them doesn't link and the linker names them: printf in
// kernels (__ockl_printf_*; it needs a thread of the runtime's that listens), malloc and free in
// kernels (__ockl_dm_*), gamma and Bessel functions, the inverses of erf, erfc and normcdf, erfcx,
// images and textures, sync() of cooperative groups that are larger than a block, integer dot
// products, and conversions to half that don't round to the nearest. assert() stops the kernel
// without its message.

#if defined(__HIP__)

#if __HIP_DEVICE_COMPILE__
// The headers make these two of an intrinsic that LLVM no longer has.
#define atomicInc wick_device_old_atomic_inc
#define atomicDec wick_device_old_atomic_dec
#endif
#include <hip/hip_runtime.h>

#if __HIP_DEVICE_COMPILE__
#undef atomicInc
#undef atomicDec

// No warnings here about a program's options, such as an older C++ or -ffast-math.
#pragma clang system_header

#define WICK_DEVICE __device__ inline
#define WICK_LIBRARY extern "C" __device__ inline
// Even without optimization: these are in every kernel.
#define WICK_INDEX extern "C" __device__ inline __attribute__((always_inline))

WICK_DEVICE unsigned atomicInc(unsigned* address, unsigned value) {
  return __builtin_amdgcn_atomic_inc32(address, value, __ATOMIC_RELAXED, "agent");
}
WICK_DEVICE unsigned atomicDec(unsigned* address, unsigned value) {
  return __builtin_amdgcn_atomic_dec32(address, value, __ATOMIC_RELAXED, "agent");
}

// Indices. Blocks are taken to be whole, as HIP's launches make them.

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
// Of the dispatch packet, which is there in code objects of every version; the count of blocks
// among the hidden arguments came with version 5.
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

/// What all threads of the block give, put together.
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
  __syncthreads();  // the next call starts by writing
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

// assert() says with these what has failed, and traps; they have nobody to say it to.
WICK_LIBRARY uint64_t __ockl_fprintf_stderr_begin() { return 0; }
WICK_LIBRARY uint64_t __ockl_fprintf_append_args(uint64_t, uint32_t, uint64_t, uint64_t, uint64_t,
                                                 uint64_t, uint64_t, uint64_t, uint64_t, uint32_t) {
  return 0;
}
WICK_LIBRARY uint64_t __ockl_fprintf_append_string_n(uint64_t, const char*, uint64_t, uint32_t) {
  return 0;
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

// Mathematics, in doubles.

namespace wick_device {
/// A number as the sum of two, the second of which is about 2^-53 of the first.
struct Pair {
  double high, low;
};

constexpr double kPi = 0x1.921fb54442d18p+1, kPiLow = 0x1.1a62633145c07p-53;
constexpr double kLog2E = 0x1.71547652b82fep+0, kLog2ELow = 0x1.777d0ffda0d24p-56;
constexpr double kLog10E = 0x1.bcb7b1526e50ep-2, kLog10ELow = 0x1.95355baaafad3p-57;
constexpr double kLn10 = 0x1.26bb1bbb55516p+1, kLn10Low = -0x1.f48ad494ea3e9p-53;
// Of few enough bits that a multiple by an exponent is exact, and the rest.
constexpr double kLn2 = 0x1.62e42feep-1, kLn2Rest = 0x1.a39ef35793c76p-33;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1, kSqrtHalfLow = -0x1.bdd3413b26456p-55;
constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp+0;

WICK_DEVICE double infinity() { return __builtin_inf(); }
WICK_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
WICK_DEVICE double absolute(double x) { return __builtin_fabs(x); }

template <int kTerms>
WICK_DEVICE double polynomial(const double (&terms)[kTerms], double x) {
  double sum = terms[kTerms - 1];
#pragma unroll
  for (int i = kTerms - 2; i >= 0; --i) sum = fma(sum, x, terms[i]);
  return sum;
}

/// x y, with x of two parts.
WICK_DEVICE Pair product(Pair x, double y) {
  const double high = x.high * y;
  return {high, fma(x.high, y, -high) + x.low * y};
}

/// e^r - 1 for |r| < 0.35.
WICK_DEVICE double exp_minus_1_of_small(double r) {
  constexpr double kTerms[] = {1. / 2,          1. / 6,        1. / 24,        1. / 120,
                               1. / 720,        1. / 5040,     1. / 40320,     1. / 362880,
                               1. / 3628800,    1. / 39916800, 1. / 479001600, 1. / 6227020800,
                               1. / 87178291200};
  return fma(r * r, polynomial(kTerms, r), r);
}

WICK_DEVICE double exp(Pair x) {
  if (x.high > 800) return infinity();
  if (x.high < -800) return 0;
  const double power = __builtin_rint(x.high * kLog2E);
  const double r = fma(-power, kLn2Rest, fma(-power, kLn2, x.high)) + x.low;
  return __builtin_ldexp(1 + exp_minus_1_of_small(r), static_cast<int>(power));
}

WICK_DEVICE double exp_minus_1(double x) {
  if (x == 0) return x;
  return absolute(x) < 0.35 ? exp_minus_1_of_small(x) : exp({x, 0}) - 1;
}

/// artanh(s) - s for s^2 = z < 0.0295, divided by s.
WICK_DEVICE double artanh_rest(double z) {
  constexpr double kTerms[] = {1. / 3,  1. / 5,  1. / 7,  1. / 9,  1. / 11,
                               1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21};
  return z * polynomial(kTerms, z);
}

/// The logarithm of a positive, finite number to some 60 bits.
WICK_DEVICE Pair log_of_positive(double x) {
  int exponent;
  double m = __builtin_frexp(x, &exponent);
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 artanh s with s = (m - 1) / (m + 1).
  const double above = m - 1, below = m + 1, below_low = m - (below - 1);
  const double s = above / below;
  const double s_low = (fma(-s, below, above) - s * below_low) / below;
  const double big = exponent * kLn2, small = 2 * s;
  const double sum = big + small, part = sum - big;
  const double lost = (big - (sum - part)) + (small - part);
  const double low = lost + (2 * s_low + small * artanh_rest(s * s) + exponent * kLn2Rest);
  const double high = sum + low;
  return {high, low - (high - sum)};
}

/// The logarithm times `factor`.
WICK_DEVICE double log(double x, Pair factor) {
  if (!(x > 0)) return x == 0 ? -infinity() : __builtin_nan("");
  if (x == infinity()) return x;
  const Pair natural = log_of_positive(x), scaled = product(factor, natural.high);
  return scaled.high + (scaled.low + factor.high * natural.low);
}
WICK_DEVICE double log(double x) { return log(x, {1, 0}); }

WICK_DEVICE double log_of_1_plus(double x) {
  if (absolute(x) < 0.2) {
    const double s = x / (2 + x);
    return 2 * fma(s, artanh_rest(s * s), s);
  }
  const double sum = 1 + x;
  return sum > 0 && sum < infinity() ? log(sum) + (x - (sum - 1)) / sum : log(sum);
}

WICK_DEVICE double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
  const double base = absolute(x);
  const bool whole = __builtin_trunc(y) == y;
  const bool odd = whole && absolute(y) < 0x1p53 && __builtin_trunc(y / 2) != y / 2;
  double result;
  if (__builtin_isinf(y)) {
    result = base == 1 ? 1 : (base > 1) == (y > 0) ? infinity() : 0;
  } else if (base == 0 || base == infinity()) {
    result = (base == 0) == (y > 0) ? 0 : infinity();
  } else if (x < 0 && !whole) {
    return __builtin_nan("");
  } else {
    const Pair logarithm = log_of_positive(base);
    // A larger product would make infinities of the low part.
    const double bounded = __builtin_fmin(__builtin_fmax(y, -0x1p80), 0x1p80);
    result = exp(product(logarithm, bounded));
  }
  return odd ? __builtin_copysign(result, x) : result;
}

/// An angle less a multiple of pi / 2.
struct Angle {
  double high, low;  // at most pi / 4
  int quarters;      // the multiple; its two lowest bits count
};

/// Of large angles: the product with those 192 bits of 2 / pi that tell the quarter and what is
/// beyond.
WICK_DEVICE Angle reduce_large(double x) {
  // The leading zero is for angles so small that bits before the point are looked at.
  constexpr uint64_t kTwoOverPi[] = {0,
                                     0xa2f9836e4e441529,
                                     0xfc2757d1f534ddc0,
                                     0xdb6295993c439041,
                                     0xfe5163abdebbc561,
                                     0xb7246e3a424dd2e0,
                                     0x06492eea09d1921c,
                                     0xfe1deb1cb129a73e,
                                     0xe88235f52ebb4484,
                                     0xe99c7026b45f7e41,
                                     0x3991d639835339f4,
                                     0x9c845f8bbdf9283b,
                                     0x1ff897ffde05980f,
                                     0xef2f118b5a0a6d1f,
                                     0x6d367ecf27cb09b7,
                                     0x4f463f669e5fea2d,
                                     0x7527bac7ebe5f17b,
                                     0x3d0739f78a5292ea,
                                     0x6bfb5fb11f8d5d08,
                                     0x56033046fc7b6bab,
                                     0xf0cfbc209af4361d};
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52 & 2047) - 1075;
  const uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
  const int first = exponent - 2 + 64, word = first / 64, shift = first % 64;
  uint64_t window[3];
  for (int i = 0; i < 3; ++i) {
    window[i] = kTwoOverPi[word + i] << shift;
    if (shift != 0) window[i] |= kTwoOverPi[word + i + 1] >> (64 - shift);
  }
  using Wide = unsigned __int128;
  const Wide low = static_cast<Wide>(m) * window[2];
  const Wide middle = static_cast<Wide>(m) * window[1] + (low >> 64);
  const uint64_t high = m * window[0] + static_cast<uint64_t>(middle >> 64);
  Wide fraction = (static_cast<Wide>(high) << 64 | static_cast<uint64_t>(middle)) << 2 |
                  static_cast<uint64_t>(low) >> 62;
  int quarters = static_cast<int>(high >> 62);
  double sign = 1;
  if (fraction >> 127) {
    ++quarters;
    fraction = -fraction;
    sign = -1;
  }
  int zeros = static_cast<int>(__ockl_clz_u64(static_cast<uint64_t>(fraction >> 64)));
  if (zeros == 64) zeros += static_cast<int>(__ockl_clz_u64(static_cast<uint64_t>(fraction)));
  const uint64_t top = static_cast<uint64_t>((fraction << (zeros & 127)) >> 64);
  const double a = sign * static_cast<double>(top >> 11),
               b = sign * static_cast<double>(top & 2047);
  const Pair r = product({kPi / 2, kPiLow / 2}, a);
  const double all = r.high + (r.low + b * (kPi / 4096));
  const double rest = (r.high - all) + (r.low + b * (kPi / 4096));
  const int scale = 11 - 64 - zeros;
  const bool negative = x < 0;
  return {__builtin_ldexp(negative ? -all : all, scale),
          __builtin_ldexp(negative ? -rest : rest, scale), negative ? -quarters : quarters};
}

WICK_DEVICE Angle reduce(double x) {
  if (absolute(x) >= 0x1p19) {
    if (!(absolute(x) < infinity())) return {__builtin_nan(""), 0, 0};
    return reduce_large(x);
  }
  // pi / 2 in parts of 33 bits, so that multiples of them are exact, and the rest.
  constexpr double kFirst = 0x1.921fb544p+0, kSecond = 0x1.0b4611a6p-34,
                   kThird = 0x1.3198a2e037073p-69;
  const double quarters = __builtin_rint(x * (2 / kPi));
  const double t = fma(-quarters, kFirst, x), w = quarters * kSecond;
  const double r = t - w;
  const double lost = ((t - r) - w) - quarters * kThird;
  const double high = r + lost;
  return {high, lost - (high - r), static_cast<int>(quarters)};
}

WICK_DEVICE double sin_of_small(double x, double low) {
  constexpr double kTerms[] = {-1. / 6,
                               1. / 120,
                               -1. / 5040,
                               1. / 362880,
                               -1. / 39916800,
                               1. / 6227020800,
                               -1. / 1307674368e3,
                               1. / 355687428096e3,
                               -1. / 121645100408832e3};
  const double z = x * x;
  return x + fma(x * z, polynomial(kTerms, z), low);
}
WICK_DEVICE double cos_of_small(double x, double low) {
  constexpr double kTerms[] = {
      1. / 24,        -1. / 720,         1. / 40320,         -1. / 3628800,
      1. / 479001600, -1. / 87178291200, 1. / 20922789888e3, -1. / 6402373705728e3};
  const double z = x * x, half = z / 2, near = 1 - half;
  return near + (((1 - near) - half) + fma(z * z, polynomial(kTerms, z), -x * low));
}

WICK_DEVICE double sin(Angle angle) {
  const bool swap = angle.quarters & 1;
  const double value =
      swap ? cos_of_small(angle.high, angle.low) : sin_of_small(angle.high, angle.low);
  return angle.quarters & 2 ? -value : value;
}
WICK_DEVICE double cos(Angle angle) { return sin({angle.high, angle.low, angle.quarters + 1}); }
WICK_DEVICE double sin(double x) { return absolute(x) < 0x1p-30 ? x : sin(reduce(x)); }
WICK_DEVICE double cos(double x) { return cos(reduce(x)); }
WICK_DEVICE double tan(double x) {
  if (absolute(x) < 0x1p-30) return x;
  const Angle angle = reduce(x);
  return sin(angle) / cos(angle);
}

/// Of an angle in units of pi.
WICK_DEVICE Angle reduce_of_pi(double x) {
  if (!(absolute(x) < infinity())) return {__builtin_nan(""), 0, 0};
  const double turn = fma(-2, __builtin_rint(x / 2), x);  // -1 to 1
  const double quarters = __builtin_rint(2 * turn);
  const Pair r = product({kPi, kPiLow}, fma(-0.5, quarters, turn));
  return {r.high, r.low, static_cast<int>(quarters)};
}
WICK_DEVICE double sin_of_pi(double x) {
  const double value = sin(reduce_of_pi(x));
  return value == 0 ? __builtin_copysign(0., x) : value;
}
WICK_DEVICE double cos_of_pi(double x) { return cos(reduce_of_pi(x)) + 0.; }

/// Of x from 0 to 1. Two angles halved make the series short.
WICK_DEVICE double atan_of_small(double x) {
  constexpr double kTerms[] = {-1. / 3,  1. / 5,  -1. / 7,  1. / 9,  -1. / 11, 1. / 13,
                               -1. / 15, 1. / 17, -1. / 19, 1. / 21, -1. / 23};
  double s = x / (1 + __builtin_sqrt(fma(x, x, 1)));
  s = s / (1 + __builtin_sqrt(fma(s, s, 1)));
  const double z = s * s;
  return 4 * fma(s * z, polynomial(kTerms, z), s);
}

WICK_DEVICE double atan2(double y, double x) {
  if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
  const double dx = absolute(x), dy = absolute(y);
  double angle;
  if (dx == dy) {
    angle = dx == 0 ? 0 : kPi / 4;
  } else if (dy < dx) {
    const double ratio = dy / dx;
    angle = ratio < 0x1p-30 ? ratio : atan_of_small(ratio);
  } else {
    angle = kPi / 2 - (atan_of_small(dx / dy) - kPiLow / 2);
  }
  if (__builtin_signbit(x)) angle = kPi - (angle - kPiLow);
  return __builtin_copysign(angle, y);
}

WICK_DEVICE double cosh(double x) {
  const double half = exp({absolute(x) - 1, 0}) * (0x1.5bf0a8b145769p+1 / 2);
  return absolute(x) > 20 ? half : 0.5 * (exp({x, 0}) + exp({-x, 0}));
}
WICK_DEVICE double sinh(double x) {
  const double size = absolute(x);
  if (size > 20) return __builtin_copysign(exp({size - 1, 0}) * (0x1.5bf0a8b145769p+1 / 2), x);
  const double e = exp_minus_1(size);
  return __builtin_copysign(0.5 * (e + e / (e + 1)), x);
}
WICK_DEVICE double tanh(double x) {
  const double e = exp_minus_1(2 * absolute(x));
  return __builtin_copysign(absolute(x) > 20 ? 1 : e / (e + 2), x);
}
WICK_DEVICE double arsinh(double x) {
  const double size = absolute(x), square = size * size;
  const double value = size > 0x1p28
                           ? log(size) + (kLn2 + kLn2Rest)
                           : log_of_1_plus(size + square / (1 + __builtin_sqrt(square + 1)));
  return __builtin_copysign(value, x);
}
WICK_DEVICE double arcosh(double x) {
  if (!(x >= 1)) return __builtin_nan("");
  if (x > 0x1p28) return log(x) + (kLn2 + kLn2Rest);
  const double above = x - 1;
  return log_of_1_plus(above + __builtin_sqrt(fma(above, above, 2 * above)));
}
WICK_DEVICE double artanh(double x) {
  const double size = absolute(x);
  return __builtin_copysign(0.5 * log_of_1_plus(2 * size / (1 - size)), x);
}

/// e^-(x^2)
WICK_DEVICE double bell(Pair x) {
  const double square = x.high * x.high;
  return exp({-square, -fma(2 * x.high, x.low, fma(x.high, x.high, -square))});
}
/// For x >= 1, by a continued fraction that is the longer the smaller x is.
WICK_DEVICE double erfc_of_large(Pair argument) {
  const double x = argument.high;
  if (x > 28) return 0;
  double below = x;
  for (int i = 40 + static_cast<int>(200 / (x * x)); i > 0; --i) below = x + 0.5 * i / below;
  return bell(argument) * (kTwoOverSqrtPi / 2) / below;
}
WICK_DEVICE double erf(double x) {
  const double size = absolute(x);
  if (__builtin_isnan(x)) return x;
  if (size > 6) return __builtin_copysign(1., x);
  if (size > 2) return __builtin_copysign(1 - erfc_of_large({size, 0}), x);
  // All terms are positive, so that nothing cancels.
  const double square = 2 * x * x;
  double term = 1, sum = 1;
  for (int i = 3; i < 200 && term > sum * 0x1p-56; i += 2) {
    term *= square / i;
    sum += term;
  }
  return x * kTwoOverSqrtPi * bell({x, 0}) * sum;
}
WICK_DEVICE double erfc(Pair x) { return x.high >= 1 ? erfc_of_large(x) : 1 - erf(x.high); }

/// The remainder of positive numbers, and the lowest bits of the quotient.
WICK_DEVICE double remainder_of_positive(double x, double y, uint* quotient) {
  int x_exponent, y_exponent;
  __builtin_frexp(y, &y_exponent);
  *quotient = 0;
  // Fewer steps than a double has exponents; bounded because -ffast-math lets infinities in.
  for (int steps = 0; steps < 2200 && x >= y; ++steps) {
    __builtin_frexp(x, &x_exponent);
    int power = x_exponent - y_exponent;
    double multiple = __builtin_ldexp(y, power);
    if (multiple > x) multiple = __builtin_ldexp(y, --power);
    x -= multiple;  // exact: they are within a factor of two
    if (power < 32) *quotient += 1u << power;
  }
  return x;
}
WICK_DEVICE double fmod(double x, double y) {
  if (!(absolute(x) < infinity()) || __builtin_isnan(y) || y == 0) return __builtin_nan("");
  uint quotient;
  return __builtin_copysign(remainder_of_positive(absolute(x), absolute(y), &quotient), x);
}
WICK_DEVICE double remquo(double x, double y, int* quotient) {
  *quotient = 0;
  if (!(absolute(x) < infinity()) || __builtin_isnan(y) || y == 0) return __builtin_nan("");
  const double size = absolute(y);
  uint count;
  double r = remainder_of_positive(absolute(x), size, &count);
  // The nearest multiple, the even one of two that are equally near.
  if (r > size - r || (r == size - r && (count & 1))) {
    r -= size;
    ++count;
  }
  const int low = static_cast<int>(count & 0x7fffffff);
  *quotient = __builtin_signbit(x) != __builtin_signbit(y) ? -low : low;
  return r == 0 ? __builtin_copysign(0., x) : __builtin_signbit(x) ? -r : r;
}

WICK_DEVICE double length(double x, double y, double z, double w) {
  x = absolute(x), y = absolute(y), z = absolute(z), w = absolute(w);
  const double largest = __builtin_fmax(__builtin_fmax(x, y), __builtin_fmax(z, w));
  if (largest == infinity()) return largest;
  if (largest == 0) return x + y + z + w;  // that is, NaN if one of them is
  int exponent;
  __builtin_frexp(largest, &exponent);
  x = __builtin_ldexp(x, -exponent), y = __builtin_ldexp(y, -exponent);
  z = __builtin_ldexp(z, -exponent), w = __builtin_ldexp(w, -exponent);
  return __builtin_ldexp(__builtin_sqrt(fma(x, x, fma(y, y, fma(z, z, w * w)))), exponent);
}

WICK_DEVICE double cbrt(double x) {
  const double size = absolute(x);
  if (!(size > 0 && size < infinity())) return x;
  int exponent;
  const double m = __builtin_frexp(size, &exponent);
  const int third = exponent / 3;  // what is left of the exponent is in -2..2
  const double scaled = __builtin_ldexp(m, exponent - 3 * third);
  double root = exp({log(scaled) / 3, 0});
  root -= fma(root * root, root, -scaled) / (3 * root * root);
  return __builtin_copysign(__builtin_ldexp(root, third), x);
}

WICK_DEVICE int ilogb(double x) {
  if (x == 0 || __builtin_isnan(x)) return -2147483647 - 1;
  if (__builtin_isinf(x)) return 2147483647;
  int exponent;
  __builtin_frexp(x, &exponent);
  return exponent - 1;
}
WICK_DEVICE double logb(double x) {
  if (x == 0) return -infinity();
  return absolute(x) < infinity() ? ilogb(x) : x * x;
}

WICK_DEVICE double scalb(double x, double exponent) {
  if (__builtin_isnan(exponent)) return exponent;
  const double bounded = __builtin_fmin(__builtin_fmax(exponent, -5000.), 5000.);
  return __builtin_ldexp(x, static_cast<int>(bounded));
}

template <class Float, class Bits>
WICK_DEVICE Float nextafter(Float x, Float y) {
  if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
  if (x == y) return y;
  Bits bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if (x == 0) {
    bits = 1;
  } else {
    bits += (x < y) == (x > 0) ? 1 : -1;
  }
  Float next;
  __builtin_memcpy(&next, &bits, sizeof next);
  return x == 0 ? __builtin_copysign(next, y) : next;
}

template <class Float>
WICK_DEVICE Float modf(Float x, Float* whole) {
  *whole = __builtin_elementwise_trunc(x);
  return __builtin_elementwise_copysign(__builtin_isinf(x) ? Float(0) : x - *whole, x);
}
}  // namespace wick_device

/// name for both types, of an expression that is computed in doubles.
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
/// name for both types, of an expression that is right in either.
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
  // The power of two of the whole part is exact, so that only the rest is multiplied.
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

// What has several arguments, or returns through pointers to private memory.
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

// Those that may be rough: the instructions.
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

// Halves, and pairs of them.
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
