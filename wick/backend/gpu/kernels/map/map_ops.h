#pragma once

// Numbers the rows of ops.def, for kernels that contain all of them.

#include "wick/math/fn.h"

// Rows without vectorized kernels. They are rare, and have so much arithmetic that scalar access
// costs little. Each such kernel would take some ten kilobytes for every dtype and architecture.
#define WICK_RARE_sin 0, WICK_RARE_ROW
#define WICK_RARE_cos 0, WICK_RARE_ROW
#define WICK_RARE_log1p 0, WICK_RARE_ROW
#define WICK_RARE_expm1 0, WICK_RARE_ROW
#define WICK_RARE_erf 0, WICK_RARE_ROW
#define WICK_RARE_normcdf 0, WICK_RARE_ROW
#define WICK_RARE_powf 0, WICK_RARE_ROW
#define WICK_RARE_pow 0, WICK_RARE_ROW
#define WICK_RARE_atan2 0, WICK_RARE_ROW
#define WICK_RARE_rem 0, WICK_RARE_ROW
/// WICK_RARE_ROW for the rows above, `otherwise` for all other rows.
#define WICK_IF_RARE(name, otherwise) WICK_SECOND_OF(WICK_RARE_##name, otherwise, 0)
#define WICK_SECOND_OF(...) WICK_SECOND(__VA_ARGS__)
#define WICK_SECOND(a, b, ...) b

namespace wick::gpu {

enum class UnaryRow : math::u32 {
#define WICK_UNARY(name, ...) name,
#include "wick/op/ops.def"
};
enum class UnaryWithRow : math::u32 {
#define WICK_UNARY_WITH(name, ...) name,
#include "wick/op/ops.def"
};
enum class TestRow : math::u32 {
#define WICK_TEST(name, ...) name,
#include "wick/op/ops.def"
};
enum class BinaryRow : math::u32 {
#define WICK_BINARY(name, ...) name,
#include "wick/op/ops.def"
};
/// A comparison as a truth table. The index of a bit is the relation of the two numbers (0 below, 1
/// equal, 2 above, 3 unordered), plus 4 if the first isn't zero, plus 8 if the second isn't zero.
struct Truth {
  math::u32 bits = 0;

  template <class C>
  WICK_FN static constexpr math::u32 index(C a, C b) {
    return (a < b    ? 0u
            : a == b ? 1u
            : a > b  ? 2u
                     : 3u) +
           (a != C(0) ? 4u : 0u) + (b != C(0) ? 8u : 0u);
  }
  template <class C>
  WICK_FN math::u8 of(C a, C b) const {
    return static_cast<math::u8>(bits >> index(a, b) & 1u);
  }
};

}  // namespace wick::gpu
