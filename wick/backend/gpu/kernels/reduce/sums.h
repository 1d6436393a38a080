#pragma once

// The type in which elements of each dtype are reduced. Floats use their compute type; integers use
// the unsigned type of their width, modulo 2^32 or 2^64.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"
#include "wick/backend/gpu/kernels/reduce/rows.h"

namespace wick::gpu {

using Storage_u8 = math::u8;
using Storage_u16 = math::u16;
using Storage_u32 = math::u32;
using Storage_u64 = math::u64;

template <class T>
inline constexpr bool kUnsigned = kSame<T, u8> || kSame<T, u16> || kSame<T, u32> || kSame<T, u64>;

template <class T, bool = kUnsigned<T>>
struct SumOf {
  using Type = Compute<T>;
};
template <class T>
struct SumOf<T, true> {
  using Type = Promoted<T>;
};
/// The type in which elements of T are accumulated.
template <class T>
using Sum = typename SumOf<T>::Type;

template <class T>
WICK_DEVICE Sum<T> to_sum(T x) {
  if constexpr (kUnsigned<T>) {
    return x;
  } else {
    return widen(x);
  }
}

/// The float type of the same size, whose Vec carries the elements.
template <class T>
struct AsLarge {
  using Type = T;
};
template <>
struct AsLarge<u8> {
  using Type = f8e4m3;
};
template <>
struct AsLarge<u16> {
  using Type = f16;
};
template <>
struct AsLarge<u32> {
  using Type = float;
};
template <>
struct AsLarge<u64> {
  using Type = double;
};
template <class T, u32 N>
using Raw = Vec<typename AsLarge<T>::Type, N>;

/// Element i of a vector.
template <class T, u32 N>
WICK_DEVICE Sum<T> to_sum(const Raw<T, N>& p, u32 i) {
  if constexpr (kSame<T, u8>) {
    return p.w[i / 4] >> i % 4 * 8 & 0xffu;
  } else if constexpr (kSame<T, u16>) {
    return i % 2 == 0 ? p.w[i / 2] & 0xffffu : p.w[i / 2] >> 16;
  } else if constexpr (kSame<T, u32>) {
    return p.w[i];
  } else if constexpr (kSame<T, u64>) {
    return u64{p.w[2 * i]} | u64{p.w[2 * i + 1]} << 32;
  } else {
    return p[i];
  }
}

/// Element i of a vector mapped by the reducer; the identity if the element doesn't exist.
template <class R, class A>
WICK_DEVICE A mapped(A x, bool is_there) {
  if constexpr (R::kSkipsZeros) {
    return R::map(x);  // a missing element was read as 0
  } else {
    return is_there ? R::map(x) : R::template identity<A>();
  }
}

/// Sets accumulators to the reducer's identity.
template <class R, class A, u32 N>
WICK_DEVICE void clear(A (&acc)[N]) {
#pragma unroll
  for (A& a : acc) a = R::template identity<A>();
}

/// The finished result; divided by the divisor if that isn't 1 (mean).
template <class R, class T>
WICK_DEVICE Sum<T> finished(Sum<T> acc, double divisor) {
  const Sum<T> result = R::finish(acc);
  if constexpr (kUnsigned<T>) {
    return result;
  } else {
    return divisor != 1 ? result / static_cast<Sum<T>>(divisor) : result;
  }
}

/// Rounds a result once to the element type; integers keep their low bits.
template <class T>
WICK_DEVICE T from_sum(Sum<T> x) {
  if constexpr (kUnsigned<T>) {
    return static_cast<T>(x);
  } else {
    return narrow<T>(x);
  }
}

/// Stores the finished result as an element.
template <class R, class T>
WICK_DEVICE void store_sum(T* to, Sum<T> acc, double divisor) {
  *to = from_sum<T>(finished<R, T>(acc, divisor));
}

}  // namespace wick::gpu
