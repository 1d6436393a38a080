#pragma once

// The order in which the results of a row's chunks are combined: neighbours by twos, their results
// by twos, and so on; a result without a neighbour is passed on as it is
// (docs/design/numerics/reduce.md).

#include "wick/math/fn.h"

namespace wick::math {

/// Calls combine(i, j), which adds result j to result i, so that result 0 becomes that of all n.
template <class F>
WICK_FN void combine_by_twos(i64 n, F&& combine) {
  for (i64 step = 1; step < n; step *= 2) {
    for (i64 i = 0; i + step < n; i += 2 * step) combine(i, i + step);
  }
}

/// The same order for results that come one at a time and are pushed onto a stack, so that few are
/// kept: fewer than 64.
class CombineStack {
 public:
  WICK_FN CombineStack() : count_(0) {}
  /// After a push: calls combine_top(), which replaces the two top results by their combination, as
  /// often as the order wants it.
  template <class F>
  WICK_FN void pushed(F&& combine_top) {
    for (i64 i = count_++; (i & 1) != 0; i >>= 1) combine_top();
  }

 private:
  i64 count_;
};

}  // namespace wick::math
