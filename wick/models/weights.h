#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/device.h"
#include "wick/io/model_file.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// The tensors of a model file under a name prefix: `weights / "blk.0."`. Every access states the
/// expected shape and throws if the file has another; the message names both.
class Weights {
 public:
  Weights(const io::ModelFile& file, Device device)
      : file_(file), device_(device), used_(std::make_shared<Used>()) {}
  Weights operator/(std::string_view prefix) const;

  const std::string& prefix() const { return prefix_; }
  bool contains(std::string_view name) const;
  /// The rank of a tensor, and the size of its first dim. Errors: it is missing.
  int rank(std::string_view name) const;
  int64_t rows(std::string_view name) const;
  /// Throws that a tensor has the wrong shape.
  [[noreturn]] void wrong_shape(std::string_view name, std::string_view need) const;
  /// Throws that none of some tensors is in the file.
  [[noreturn]] void missing(std::string_view names) const;
  /// A mapped matrix [n, k] of a weight dtype. Errors: it is missing or has another shape; `linear`
  /// doesn't support its dtype.
  Tensor matrix(std::string_view name, int64_t n, int64_t k) const;
  /// A vector [n], converted to f32. Errors: it is missing or has another shape.
  Tensor vector(std::string_view name, int64_t n) const;
  /// A vector [n], converted to f32; undefined if the file doesn't have it.
  Tensor optional_vector(std::string_view name, int64_t n) const;
  /// The factor [1] of the matrix `name`.weight, which files call `name`.scale, converted to f32;
  /// undefined if the file doesn't have it. The factor of its input, `name`.input_scale, serves
  /// kernels that quantise activations, and is ignored.
  Tensor optional_scale(std::string_view name) const;
  /// The factors [count] of the matrices that the tensor `name`.weight holds.
  Tensor optional_scales(std::string_view name, int64_t count) const;
  /// A vector [n] or matrix [n, k] of small floats, converted to f32. Errors: those of vector().
  Tensor floats(std::string_view name, const Shape& shape) const;
  /// The `count` matrices [n, k] that a tensor [count, n, k] holds. Errors: those of matrix().
  std::vector<Tensor> matrices(std::string_view name, int64_t count, int64_t n, int64_t k) const;
  /// Errors: the file has a tensor under the prefix that no getter of this object or its copies was
  /// asked for, so this version would ignore it.
  void require_all_used() const;
  /// Tensors whose names contain `text` may be ignored.
  void ignore(std::string_view text) const;
  /// The number of elements of all tensors in the file.
  int64_t parameters() const;

 private:
  struct Used {
    std::set<std::string, std::less<>> names;
    std::vector<std::string> ignored;
  };
  /// The description of a tensor, which is used. Errors: it is missing or has another shape.
  const io::GgufTensor& require(std::string_view name, const Shape& shape) const;
  Tensor get(std::string_view name, const Shape& shape) const;
  /// Errors: the dtype of a matrix isn't supported.
  Tensor supported(std::string_view name, Tensor matrix) const;

  const io::ModelFile& file_;
  Device device_;
  std::string prefix_;
  std::shared_ptr<Used> used_;  // shared by copies
};

/// Selects rows of x [n, ..] on the CPU: row i of the result is row order[i] of x. Returns x if the
/// order is empty or x is undefined. Any dtype.
Tensor reordered(const Tensor& x, std::span<const int64_t> order);

}  // namespace wick::models
