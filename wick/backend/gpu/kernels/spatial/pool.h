#pragma once

// Windows of pools, and the reductions of their elements.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/spatial/spatial_abi.h"

namespace wick::gpu {

template <class T>
inline constexpr bool kIsFloat = math::Real<Compute<T>>;

/// The type of an element in registers. It has at least 32 bits for integers, because compilers
/// pack shorter integers into words.
template <class T>
using Tap = decltype([] {
  if constexpr (!kIsFloat<T> && sizeof(T) < 4) {
    return i32();
  } else {
    return T();
  }
}());

/// Unsigned keys that compare as the numbers do: −0 is below +0, and all NaN have one key, which is
/// above all others.
template <class T>
struct PoolKey {
  using Key = u32;
  static constexpr u32 kInfinity = 0x7f800000u;
};
template <>
struct PoolKey<double> {
  using Key = u64;
  static constexpr u64 kInfinity = 0x7ff0000000000000u;
};
template <>
struct PoolKey<i64> {
  using Key = u64;
};

/// Key 0 is that of the lowest number.
template <class T>
WICK_DEVICE typename PoolKey<T>::Key key_of(T x) {
  using K = typename PoolKey<T>::Key;
  constexpr u32 kSign = 8 * sizeof(K) - 1;
  if constexpr (kIsFloat<T>) {
    constexpr K kInfinity = PoolKey<T>::kInfinity;
    const K bits = __builtin_bit_cast(K, widen(x));
    const K fold = (bits >> kSign) != 0 ? ~K(0) >> 1 : K(0);
    const K key = (bits ^ fold) + kInfinity + 1;
    constexpr K kNan = 2 * kInfinity + 2;  // behind the key of +inf
    return key < kNan ? key : kNan;
  } else if constexpr (static_cast<T>(-1) < static_cast<T>(1)) {
    return static_cast<K>(x) ^ K(1) << kSign;
  } else {
    return x;
  }
}
template <class T>
WICK_DEVICE T of_key(typename PoolKey<T>::Key key) {
  using K = typename PoolKey<T>::Key;
  constexpr u32 kSign = 8 * sizeof(K) - 1;
  if constexpr (kIsFloat<T>) {
    const K moved = key - PoolKey<T>::kInfinity - 1;
    const K fold = (moved >> kSign) != 0 ? ~K(0) >> 1 : K(0);
    return narrow<T>(__builtin_bit_cast(Compute<T>, moved ^ fold));
  } else if constexpr (static_cast<T>(-1) < static_cast<T>(1)) {
    return static_cast<T>(key ^ K(1) << kSign);
  } else {
    return static_cast<T>(key);
  }
}

/// A signed sum of 128 bits.
struct Sum128 {
  u64 low = 0;
  i64 high = 0;

  WICK_DEVICE void add(const Sum128& x) {
    low += x.low;
    high += x.high + (low < x.low ? 1 : 0);
  }
  /// The quotient by a positive number, truncated towards zero. It must fit 64 bits.
  WICK_DEVICE i64 divide(i64 by) const {
    const bool negative = high < 0;
    const u64 size = negative ? u64{0} - low : low;
    const u64 over = static_cast<u64>(high);
    const u64 top = negative ? ~over + (low == 0 ? 1 : 0) : over;
    const u64 divisor = static_cast<u64>(by);
    u64 quotient = 0;
    if (top == 0) {
      quotient = size / divisor;
    } else {
      u64 rest = 0;  // below the divisor, which is below 2^63
#pragma unroll 1
      for (u32 bit = 128; bit-- > 0;) {
        rest = rest << 1 | ((bit >= 64 ? top >> (bit - 64) : size >> bit) & 1);
        const bool fits = rest >= divisor;
        rest -= fits ? divisor : 0;
        quotient = quotient << 1 | (fits ? 1 : 0);
      }
    }
    return static_cast<i64>(negative ? u64{0} - quotient : quotient);
  }
};

// Results of windows. add(x, at) adds an element and its row-major index in the plane;
// combine(other) merges another thread's result; store(out, at, count, wide) stores the result. A
// mean is divided by `count`; an index has 8 bytes if `wide` isn't 0.

/// The largest element.
template <class T>
struct MaxOfWindow {
  static constexpr bool kAnyOrder = true;
  typename PoolKey<T>::Key max = 0;

  template <class I>
  WICK_DEVICE explicit MaxOfWindow(I) {}
  template <class I>
  WICK_DEVICE void add(T x, I) {
    const auto key = key_of(x);
    max = key > max ? key : max;
  }
  WICK_DEVICE void combine(const MaxOfWindow& other) { max = other.max > max ? other.max : max; }
  WICK_DEVICE void store(void* out, i64 at, i64, u32) const {
    static_cast<T*>(out)[at] = of_key<T>(max);
  }
};

/// The index of the first largest element.
template <class T, class I>
struct MaxIndexOfWindow {
  static constexpr bool kAnyOrder = true;
  // No padding lies between the members, which pool_long keeps in shared memory.
  using Key = decltype(I() + typename PoolKey<T>::Key());
  Key max = 0;
  I place;

  /// `first`: index of the window's first element.
  WICK_DEVICE explicit MaxIndexOfWindow(I first) : place(first) {}
  WICK_DEVICE void add(T x, I at) {
    const Key key = key_of(x);
    if (key <= max) return;
    max = key;
    place = at;
  }
  WICK_DEVICE void combine(const MaxIndexOfWindow& other) {
    if (other.max < max || (other.max == max && other.place >= place)) return;
    *this = other;
  }
  WICK_DEVICE void store(void* out, i64 at, i64, u32 wide) const {
    if (wide != 0) {
      static_cast<u64*>(out)[at] = place;
    } else {
      static_cast<u32*>(out)[at] = static_cast<u32>(place);
    }
  }
};

/// The mean. Floats are added in row-major order.
template <class T>
struct MeanOfWindow {
  static constexpr bool kAnyOrder = !kIsFloat<T>;
  using Sum = decltype([] {
    if constexpr (kIsFloat<T>) {
      return Compute<T>();
    } else {
      return Sum128();
    }
  }());
  Sum sum = {};

  template <class I>
  WICK_DEVICE explicit MeanOfWindow(I) {}
  template <class I>
  WICK_DEVICE void add(T x, I) {
    if constexpr (kIsFloat<T>) {
      sum = sum + widen(x);
    } else {
      const i64 wide = static_cast<i64>(x);
      sum.add({static_cast<u64>(wide), wide < 0 ? -1 : 0});
    }
  }
  WICK_DEVICE void combine(const MeanOfWindow& other) {
    if constexpr (!kIsFloat<T>) sum.add(other.sum);
  }
  WICK_DEVICE void store(void* out, i64 at, i64 count, u32) const {
    if constexpr (kIsFloat<T>) {
      static_cast<T*>(out)[at] = narrow<T>(sum / static_cast<Sum>(count));
    } else {
      static_cast<T*>(out)[at] = static_cast<T>(sum.divide(count));
    }
  }
};

template <class T>
using MaxIndexSmall = MaxIndexOfWindow<T, u32>;
template <class T>
using MaxIndexAny = MaxIndexOfWindow<T, u64>;

/// The elements of a window of at most kSize rows and columns, and whether each is in the window
/// and in the image.
template <u32 kSize, class T>
struct Taps {
  T element[kSize][kSize];
  bool lies[kSize][kSize];

  /// Adds the elements in row-major order. `first`: the index in the plane of the window's first
  /// element, modulo 2^32.
  template <class Result>
  WICK_DEVICE void add_to(Result& result, u32 first, u32 width) const {
#pragma unroll
    for (u32 i = 0; i < kSize; ++i) {
#pragma unroll
      for (u32 j = 0; j < kSize; ++j) {
        if (lies[i][j]) result.add(element[i][j], first + i * width + j);
      }
    }
  }
};

/// The elements [low, high) of a window along an axis that lie in the image.
template <class I>
struct WindowAxis {
  I low, high;

  WICK_DEVICE WindowAxis(const PoolWindows& windows, u32 axis, I at) {
    const I start =
        at * static_cast<I>(windows.stride[axis]) - static_cast<I>(windows.padding[axis]);
    const I end = start + static_cast<I>(windows.kernel[axis]);
    const I size = static_cast<I>(windows.in_size[axis]);
    low = start < 0 ? 0 : start;
    high = end < size ? end : size;
  }
  WICK_DEVICE I count() const { return high > low ? high - low : 0; }
};

/// The number by which the sum of a window is divided.
template <class I>
WICK_DEVICE i64 divisor(const PoolWindows& windows, const WindowAxis<I>& tall,
                        const WindowAxis<I>& wide) {
  return windows.count_padding != 0 ? windows.kernel[0] * windows.kernel[1]
                                    : i64{tall.count()} * wide.count();
}

}  // namespace wick::gpu
