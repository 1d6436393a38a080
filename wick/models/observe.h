#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// Receives the inputs of a model's weights, which are named as in its file.
class WICK_API InputObserver {
 public:
  virtual ~InputObserver();
  /// x [t, k], on the model's device, is multiplied by each of these weights.
  virtual void on_input(std::span<const std::string> weights, const Tensor& x) = 0;
  /// Row i of x [t, k] is multiplied by the matrices ids[i] of these weights of `count` matrices
  /// each. ids u32 [t, n].
  virtual void on_input(std::span<const std::string> weights, int64_t count, const Tensor& x,
                        const Tensor& ids) = 0;
};

/// While this object lives, the observer receives the inputs of the weights in layers that this
/// thread runs op by op, as CausalLm::embed() does; forward() is compiled and isn't observed. The
/// embedding table and the output matrix are not in layers. Objects end in reverse order.
class WICK_API ObserveInputs {
 public:
  explicit ObserveInputs(InputObserver& observer);
  ~ObserveInputs();
  ObserveInputs(const ObserveInputs&) = delete;
  ObserveInputs& operator=(const ObserveInputs&) = delete;

 private:
  InputObserver* before_;
};

/// The observer of this thread, or null.
InputObserver* input_observer();

}  // namespace wick::models
