#pragma once

// Integer intrinsics, and conversions whose rounding the name states.

WICK_LANES unsigned __popc(unsigned x) { return static_cast<unsigned>(__builtin_popcount(x)); }
WICK_LANES unsigned __popcll(unsigned long long x) {
  return static_cast<unsigned>(__builtin_popcountll(x));
}
WICK_LANES int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
WICK_LANES int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
WICK_LANES int __ffs(int x) { return __builtin_ffs(x); }
WICK_LANES int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
WICK_LANES int __ffsll(long long x) { return __builtin_ffsll(x); }
WICK_LANES int __ffsll(unsigned long long x) { return __builtin_ffsll(static_cast<long long>(x)); }
WICK_LANES unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
WICK_LANES unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
WICK_LANES int __mul24(int x, int y) {
  return static_cast<int>(static_cast<unsigned>(x << 8 >> 8) * static_cast<unsigned>(y << 8 >> 8));
}
WICK_LANES unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
WICK_LANES int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<long long>(x) * y >> 32);
}
WICK_LANES unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
WICK_LANES long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
WICK_LANES unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
/// Each of the four selectors names one of the eight bytes of y and x, those of x first.
WICK_LANES unsigned __byte_perm(unsigned x, unsigned y, unsigned selectors) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(bytes >> 8 * (selectors >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return result;
}
WICK_LANES int __hadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y) >> 1);
}
WICK_LANES int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1);
}
WICK_LANES unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1);
}
WICK_LANES unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y + 1) >> 1);
}
WICK_LANES unsigned __sad(int x, int y, unsigned z) {
  return (x > y ? static_cast<unsigned>(x) - static_cast<unsigned>(y)
                : static_cast<unsigned>(y) - static_cast<unsigned>(x)) +
         z;
}
WICK_LANES unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return (x > y ? x - y : y - x) + z;
}
WICK_LANES unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(
      ((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
WICK_LANES unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
WICK_LANES unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
WICK_LANES unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
WICK_LANES unsigned __bitextract_u32(unsigned x, unsigned from, unsigned bits) {
  from &= 31, bits &= 31;
  return bits == 0 ? 0 : (x << (32 - bits - (from + bits > 32 ? 32 - bits : from))) >> (32 - bits);
}
WICK_LANES uint64_t __bitextract_u64(uint64_t x, unsigned from, unsigned bits) {
  from &= 63, bits &= 63;
  return bits == 0 ? 0 : x >> from & ((uint64_t{1} << bits) - 1);
}
WICK_LANES unsigned __bitinsert_u32(unsigned x, unsigned y, unsigned from, unsigned bits) {
  from &= 31, bits &= 31;
  const unsigned mask = ((1u << bits) - 1) << from;
  return (x & ~mask) | (y << from & mask);
}
WICK_LANES uint64_t __bitinsert_u64(uint64_t x, uint64_t y, unsigned from, unsigned bits) {
  from &= 63, bits &= 63;
  const uint64_t mask = ((uint64_t{1} << bits) - 1) << from;
  return (x & ~mask) | (y << from & mask);
}
WICK_LANES unsigned __mbcnt_lo(unsigned x, unsigned y) { return __builtin_amdgcn_mbcnt_lo(x, y); }
WICK_LANES unsigned __mbcnt_hi(unsigned x, unsigned y) { return __builtin_amdgcn_mbcnt_hi(x, y); }

namespace __wick {
template <class To, class From>
WICK_LANES To as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}
/// Converts to an integer as the hardware does: out of range, the nearest one; NaN gives 0.
template <class To, class From>
WICK_LANES To saturated(From value) {
  constexpr bool kSigned = static_cast<To>(-1) < static_cast<To>(0);
  constexpr To kMost = kSigned ? static_cast<To>(~(static_cast<To>(1) << (8 * sizeof(To) - 1)))
                               : static_cast<To>(-1);
  constexpr To kLeast = kSigned ? static_cast<To>(-kMost - 1) : 0;
  if (value != value) return 0;
  if (value >= static_cast<From>(kMost)) return kMost;
  return value <= static_cast<From>(kLeast) ? kLeast : static_cast<To>(value);
}
}  // namespace __wick

WICK_LANES int __float_as_int(float x) { return __wick::as<int>(x); }
WICK_LANES unsigned __float_as_uint(float x) { return __wick::as<unsigned>(x); }
WICK_LANES float __int_as_float(int x) { return __wick::as<float>(x); }
WICK_LANES float __uint_as_float(unsigned x) { return __wick::as<float>(x); }
WICK_LANES long long __double_as_longlong(double x) { return __wick::as<long long>(x); }
WICK_LANES double __longlong_as_double(long long x) { return __wick::as<double>(x); }
WICK_LANES int __double2hiint(double x) {
  return static_cast<int>(static_cast<unsigned long long>(__double_as_longlong(x)) >> 32);
}
WICK_LANES int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
WICK_LANES double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      static_cast<long long>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 |
                             static_cast<unsigned>(low)));
}

#define WICK_TO_INTEGER(From, from, To, to)                           \
  WICK_LANES To __##from##2##to##_rn(From x) {                        \
    return __wick::saturated<To>(__builtin_elementwise_roundeven(x)); \
  }                                                                   \
  WICK_LANES To __##from##2##to##_rz(From x) {                        \
    return __wick::saturated<To>(__builtin_elementwise_trunc(x));     \
  }                                                                   \
  WICK_LANES To __##from##2##to##_ru(From x) {                        \
    return __wick::saturated<To>(__builtin_elementwise_ceil(x));      \
  }                                                                   \
  WICK_LANES To __##from##2##to##_rd(From x) {                        \
    return __wick::saturated<To>(__builtin_elementwise_floor(x));     \
  }
#define WICK_TO_INTEGERS(From, from)          \
  WICK_TO_INTEGER(From, from, int, int)       \
  WICK_TO_INTEGER(From, from, unsigned, uint) \
  WICK_TO_INTEGER(From, from, long long, ll)  \
  WICK_TO_INTEGER(From, from, unsigned long long, ull)
WICK_TO_INTEGERS(float, float)
WICK_TO_INTEGERS(double, double)
#undef WICK_TO_INTEGER
#undef WICK_TO_INTEGERS

WICK_LANES float __int2float_rn(int x) { return static_cast<float>(x); }
WICK_LANES float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
WICK_LANES float __ll2float_rn(long long x) { return static_cast<float>(x); }
WICK_LANES float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
WICK_LANES double __int2double_rn(int x) { return x; }
WICK_LANES double __uint2double_rn(unsigned x) { return x; }
WICK_LANES double __ll2double_rn(long long x) { return static_cast<double>(x); }
WICK_LANES double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
WICK_LANES float __double2float_rn(double x) { return static_cast<float>(x); }
