#pragma once

// index_select for functions that are made of it.

#include "wick/base/dtype.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// index_select whose errors name `called_as`, which has static duration: also the error for an id
/// out of range, which a GPU reports at a later synchronisation.
Tensor index_select_as(const char* called_as, const Tensor& x, const Tensor& ids, int dim = 0,
                       DType dtype = DType::f32);

}  // namespace wick
