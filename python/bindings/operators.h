#pragma once

#include "python/bindings/arguments.h"
#include "wick/base/dtype.h"

namespace wick::python {

/// Errors (OverflowError): an integer that the dtype doesn't hold.
void check_fits(int64_t value, DType dtype);
/// A number for a tensor of the dtype, without loss of kind. Errors: a float for integers, an
/// integer but 0 and 1 for bool (TypeErrors, which name casts to dtypes that `op` takes), an
/// integer out of bounds (OverflowError).
Scalar fitting(const ScalarArg& value, DType dtype, const char* op, DTypeSet takes = dtypes::kAny);
/// A number as a tensor that broadcasts against x, of its dtype. Errors: those of fitting.
Tensor beside(const Tensor& x, const ScalarArg& value, const char* op,
              DTypeSet takes = dtypes::kAny);

/// matmul as PyTorch has it: a vector is a row at the left, a column at the right, and that dim goes
/// again.
Tensor product(const Tensor& a, const Tensor& b);

}  // namespace wick::python
