#pragma once

// Two sums that are computed together, each in the order of the row sum.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

/// Two numbers that are added separately.
template <class A>
struct Pair {
  A a, b;

  Pair() = default;
  WICK_FN explicit Pair(int zero) : a(A(zero)), b(A(zero)) {}
  WICK_FN Pair(A first, A second) : a(first), b(second) {}
  WICK_FN Pair operator+(const Pair& other) const { return Pair(a + other.a, b + other.b); }
};

template <u32 kMask, class A>
WICK_DEVICE Pair<A> shuffle_xor(const Pair<A>& x) {
  return Pair<A>(shuffle_xor<kMask>(x.a), shuffle_xor<kMask>(x.b));
}

}  // namespace wick::gpu
