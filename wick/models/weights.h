#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wick/base/device.h"
#include "wick/io/gguf.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// The tensors of a model file under a name prefix: `weights / "blk.0."`. Every access states the
/// expected shape and throws if the file has another; the message names both.
class Weights {
 public:
  Weights(const io::Gguf& file, Device device) : file_(file), device_(device) {}
  Weights operator/(std::string_view prefix) const;

  bool contains(std::string_view name) const;
  /// A mapped matrix [n, k] of a weight dtype. Errors: it is missing or has another shape; `linear`
  /// doesn't support its dtype.
  Tensor matrix(std::string_view name, int64_t n, int64_t k) const;
  /// A vector [n], converted to f32. Errors: it is missing or has another shape.
  Tensor vector(std::string_view name, int64_t n) const;
  /// A vector [n], converted to f32; undefined if the file doesn't have it.
  Tensor optional_vector(std::string_view name, int64_t n) const;
  /// The number of elements of all tensors in the file.
  int64_t parameters() const;

 private:
  Tensor get(std::string_view name, const Shape& shape) const;

  const io::Gguf& file_;
  Device device_;
  std::string prefix_;
};

/// Permutes the rows of x [n, ..] on the CPU: row i of the result is row order[i] of x. Returns x
/// if the order is empty or x is undefined. Any dtype.
Tensor reordered(const Tensor& x, std::span<const int64_t> order);

}  // namespace wick::models
