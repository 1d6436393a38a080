#pragma once

// Ordered reductions: finish(combine of map(x) over the elements), combined in the order of
// docs/design/numerics/reduce.md from identity on. Both backends make their kernels of these.

#include "wick/math/fn.h"

namespace wick::math {

/// Σ x; also of means. A: the type that computes, unsigned for integers.
struct Sum {
  /// Whether an element that isn't there may be read as 0: combine(a, map(0)) is a.
  static constexpr bool kSkipsZeros = true;

  template <class A>
  static WICK_FN A identity() {
    return A(0);
  }
  template <class A>
  static WICK_FN A map(A x) {
    return x;
  }
  template <class A>
  static WICK_FN A combine(A a, A b) {
    return a + b;
  }
  template <class A>
  static WICK_FN A finish(A a) {
    return a;
  }
};

/// Π x.
struct Product {
  static constexpr bool kSkipsZeros = false;

  template <class A>
  static WICK_FN A identity() {
    return A(1);
  }
  template <class A>
  static WICK_FN A map(A x) {
    return x;
  }
  template <class A>
  static WICK_FN A combine(A a, A b) {
    return a * b;
  }
  template <class A>
  static WICK_FN A finish(A a) {
    return a;
  }
};

/// Each row of ops.def that is such a reduction, and its reducer.
// clang-format off
#define WICK_REDUCERS(reducer) \
  reducer(sum, Sum)            \
  reducer(prod, Product)
// clang-format on

}  // namespace wick::math
