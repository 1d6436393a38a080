#pragma once

// Reductions with a fixed order: finish(combine of map(x) over the elements), starting from
// identity and combined in the order of docs/design/numerics/reduce.md. Both backends instantiate
// their kernels with these structs.

#include "wick/math/fn.h"

namespace wick::math {

/// Sum, also used for means. A is the compute type, which is unsigned for integers.
struct Sum {
  /// Whether a missing element may be read as 0, because combine(a, map(0)) is a.
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

/// Product of the elements.
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

/// The rows of ops.def that are such reductions, with their reducers.
// clang-format off
#define WICK_REDUCERS(reducer) \
  reducer(sum, Sum)            \
  reducer(prod, Product)
// clang-format on

}  // namespace wick::math
