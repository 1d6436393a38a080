#pragma once

#include "python/bindings/arguments.h"
#include "wick/base/dtype.h"

namespace wick::python {

/// Errors (OverflowError): the integer doesn't fit in the dtype.
void check_fits(int64_t value, DType dtype);
/// Converts a number for a tensor of the dtype. Errors: a float for an integer dtype, or an integer
/// other than 0 and 1 for bool (TypeError that names casts to dtypes that `op` supports); an
/// integer out of range (OverflowError).
Scalar fitting(const ScalarArg& value, DType dtype, const char* op, DTypeSet takes = dtypes::kAny);
/// A scalar tensor of a number in x's dtype, which broadcasts against x. Errors: those of fitting.
Tensor beside(const Tensor& x, const ScalarArg& value, const char* op,
              DTypeSet takes = dtypes::kAny);

/// PyTorch's matmul: a vector counts as a row on the left and as a column on the right, and the
/// result lacks that dim.
Tensor product(const Tensor& a, const Tensor& b);

}  // namespace wick::python
