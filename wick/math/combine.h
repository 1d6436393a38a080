#pragma once

// The order in which the results of a row's chunks are combined: neighbours by twos, their results
// by twos, and so on; a result without a neighbour is passed on as it is
// (docs/design/numerics/reduce.md).

#include "wick/math/fn.h"

namespace wick::math {

/// Calls combine(i, j), which adds result j to result i, until result 0 is the total of all n.
template <class F>
WICK_FN void combine_by_twos(i64 n, F&& combine) {
  for (i64 step = 1; step < n; step *= 2) {
    for (i64 i = 0; i + step < n; i += 2 * step) combine(i, i + step);
  }
}

/// The order of combine_by_twos for results that are pushed onto a stack one at a time. The stack
/// never holds more than 64 results.
class CombineStack {
 public:
  WICK_FN CombineStack() : count_(0) {}
  /// Called after each push. Calls combine_top(), which replaces the two top results by their
  /// combination, as often as the order requires.
  template <class F>
  WICK_FN void pushed(F&& combine_top) {
    for (i64 i = count_++; (i & 1) != 0; i >>= 1) combine_top();
  }

 private:
  i64 count_;
};

}  // namespace wick::math
