#pragma once

// Arguments of the elementwise kernels, and numbers of the rows of ops.def, for kernels that
// contain all of them. Pointers point to elements of the dtype in a kernel's name. Results of tests
// and comparisons are bytes.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"

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

/// Where integer division by zero is reported.
struct Divisions {
  FaultLine* line;
  u64 note;
};

/// A parameter of a row that takes numbers, as the bits of the dtype's compute type.
struct Number {
  u64 bits;

  template <class C>
  WICK_FN static Number of(C x) {
    if constexpr (sizeof(C) == 8) {
      return {__builtin_bit_cast(u64, x)};
    } else if constexpr (sizeof(C) == 4) {
      return {__builtin_bit_cast(u32, x)};
    } else {
      return {static_cast<u64>(x)};
    }
  }
  template <class C>
  WICK_FN C as() const {
    if constexpr (sizeof(C) == 8) {
      return __builtin_bit_cast(C, bits);
    } else if constexpr (sizeof(C) == 4) {
      return __builtin_bit_cast(C, static_cast<u32>(bits));
    } else {
      return static_cast<C>(bits);
    }
  }
};

// Arguments of vectorized kernels. The strided index counts vectors of map_vec() elements, and
// `rest` elements follow the last vector. Bit k of `repeated`: input k has stride 0 along the
// innermost dim.

/// OP_DTYPE for an op with one operand.
struct UnaryArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  u32 rest;
};
/// OP_DTYPE for an op with one operand and the parameters p and q.
struct UnaryWithArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  u32 rest;
  Number p, q;
};
/// OP_DTYPE for an op with two operands.
struct BinaryArgs {
  void* out;
  const void *a, *b;
  StridedIndex<3> strided;
  u32 rest, repeated;
  Divisions divisions;
};
/// binary_rows_DTYPE, on AMD: add, sub or mul of a matrix and one row of as many columns. Rows are
/// dense, and vectors are aligned.
struct BinaryRowsArgs {
  void* out;
  const void *matrix, *row;
  Divider vectors;            ///< of a row
  u32 rows, each;             ///< all rows, and those of a thread
  i64 out_step, matrix_step;  ///< elements from one row to the next
  BinaryRow op;
  u32 row_first;  ///< 1: the row is operand a, the matrix operand b
};

/// test_DTYPE.
struct TestArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  u32 rest;
  TestRow row;
};
/// compare_DTYPE.
struct CompareArgs {
  void* out;
  const void *a, *b;
  StridedIndex<3> strided;
  u32 rest, repeated;
  Truth truth;
};
/// where_BYTES_CONDITIONBYTES.
struct WhereArgs {
  void* out;
  const void *condition, *a, *b;
  StridedIndex<4> strided;
  u32 rest, repeated;
};

/// Bytes of a table of the results for all 16-bit patterns, and threads of a thread block that
/// looks them up.
inline constexpr math::u32 kLookedUpBytes = 2 << 16, kLookUpThreads = 1024;
/// numbers_16: all 16-bit patterns, two in each word; a thread writes one word.
struct NumbersArgs {
  math::u32* out;
};
/// look_up_16: dense elements on 16 bytes; the `rest` follow the last vector of eight.
struct LookUpArgs {
  void* out;
  const void *in, *results;
  math::u32 vectors, rest;
};

// Arguments of scalar kernels, which take any layout. The strided index counts elements.

/// unary_scalar_DTYPE.
struct UnaryScalarArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  UnaryRow row;
};
/// unary_with_scalar_DTYPE.
struct UnaryWithScalarArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  UnaryWithRow row;
  Number p, q;
};
/// binary_scalar_DTYPE.
struct BinaryScalarArgs {
  void* out;
  const void *a, *b;
  StridedIndex<3> strided;
  BinaryRow row;
  Divisions divisions;
};
/// test_scalar_DTYPE.
struct TestScalarArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  TestRow row;
};
/// compare_scalar_DTYPE.
struct CompareScalarArgs {
  void* out;
  const void *a, *b;
  StridedIndex<3> strided;
  Truth truth;
};
/// where_scalar_BYTES_CONDITIONBYTES.
struct WhereScalarArgs {
  void* out;
  const void *condition, *a, *b;
  StridedIndex<4> strided;
};

}  // namespace wick::gpu
