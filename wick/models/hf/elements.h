#pragma once

#include "wick/models/hf/forms.h"
#include "wick/tensor/tensor.h"

namespace wick::models::hf {

/// A copy of a view whose storage begins with its first element.
Tensor dense_copy(const Tensor& x);

/// The elements of a view of a dense tensor, in the view's order; the shape is that of the view's
/// layout, or one dim if it has several.
Tensor elements_of(const Tensor& dense, const FormView& view);

}  // namespace wick::models::hf
