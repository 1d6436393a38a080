#pragma once

#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Reverse-mode gradients. A tensor made by requires_grad() is a leaf; results of functions over
// leaves record the calls that made them, for backward() and gradients(). Gradient rules are
// functions over tensors, so with `create_graph` gradients have gradients, too.

/// Disables gradient recording on this thread while it lives.
class WICK_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// Whether calls of this thread are recorded for gradients.
WICK_API bool grad_enabled();
WICK_API void set_grad_enabled(bool on);

/// Adds the gradient of `y` with respect to every leaf that it depends on to that leaf's grad().
/// y: a float; of one element, or with `gradient` of its shape and dtype. Errors: y depends on no
/// leaf, a gradient that doesn't fit, an op in between that isn't differentiable.
WICK_API void backward(const Tensor& y, const Tensor& gradient = {}, bool create_graph = false);

/// The gradients of `y` with respect to `inputs`, which may be leaves or intermediate results;
/// those that y doesn't depend on are undefined. Leaves' grad() stays unchanged. Shapes, dtypes and
/// errors of backward.
[[nodiscard]] WICK_API std::vector<Tensor> gradients(const Tensor& y,
                                                     std::span<const Tensor> inputs,
                                                     const Tensor& gradient = {},
                                                     bool create_graph = false);

/// Replaces a leaf's grad(). gradient: of the leaf's shape, dtype and device. Errors: not a leaf, a
/// gradient that doesn't fit.
WICK_API void set_gradient(const Tensor& leaf, const Tensor& gradient);

}  // namespace wick
