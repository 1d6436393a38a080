#pragma once

#include "wick/op/op.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Checks that every op makes before it asks a backend. `as` names the function in the error where
// it isn't the row's name.

/// Errors: undefined, or a dtype that the op's row doesn't name.
void check_operand(Op op, const Tensor& x, const char* as = nullptr);
/// Errors: two operands of different dtypes or devices.
void check_same(Op op, const Tensor& a, const Tensor& b, const char* as = nullptr);
/// The number that fills elements of a dtype: for bool 0 or 1 (NaN gives 1), else the value itself.
inline Scalar element_value(DType dtype, Scalar value) {
  if (dtype != DType::boolean) return value;
  return value.is_integer ? value.i != 0 : value.f != 0.0;
}
/// Writes the elements of `in`, converted to `dtype`, to `out`. Not recorded for gradients.
void convert_into(View out, DType dtype, const Tensor& in);
void check_device(const char* op, const Tensor& a, const Tensor& b);
/// Errors: a target of writing whose storage is a mapped file's, or another tensor's, too.
void check_sole_owner(const char* op, const Tensor& target);

}  // namespace wick
