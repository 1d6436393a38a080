#pragma once

#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Reverse-mode gradients. requires_grad() makes a tensor a leaf. Functions over leaves and over
// their results are recorded, and backward() and gradients() evaluate the record. Gradient rules
// are themselves functions over tensors, so with `create_graph` the gradients can be differentiated
// again.

/// Disables gradient recording on this thread during its lifetime.
class WICK_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// Whether calls on this thread are recorded for gradients.
WICK_API bool grad_enabled();
WICK_API void set_grad_enabled(bool on);

/// Computes the gradient of `y` with respect to every leaf that y depends on, and adds it to that
/// leaf's grad(). y is a float tensor. It has one element, unless `gradient` is given, which has
/// y's shape and dtype. Errors: y depends on no leaf; `gradient` doesn't fit y; an op between the
/// leaf and y isn't differentiable.
WICK_API void backward(const Tensor& y, const Tensor& gradient = {}, bool create_graph = false);

/// Returns the gradients of `y` with respect to `inputs`, which may be leaves or intermediate
/// results. The gradient of an input that y doesn't depend on is an undefined tensor. The leaves'
/// grad() doesn't change. Shapes, dtypes and errors are those of backward.
[[nodiscard]] WICK_API std::vector<Tensor> gradients(const Tensor& y,
                                                     std::span<const Tensor> inputs,
                                                     const Tensor& gradient = {},
                                                     bool create_graph = false);

/// Replaces a leaf's grad(). `gradient` has the leaf's shape, dtype and device. Errors: `leaf`
/// isn't a leaf; `gradient` doesn't fit it.
WICK_API void set_gradient(const Tensor& leaf, const Tensor& gradient);

}  // namespace wick
