#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wick/base/device.h"
#include "wick/io/gguf.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// The tensors of a model file under a name prefix: `weights / "blk.0."`. Every access says which
/// shape it needs; a file that has another is an error that names both.
class Weights {
 public:
  Weights(const io::Gguf& file, Device device) : file_(file), device_(device) {}
  Weights operator/(std::string_view prefix) const;

  bool contains(std::string_view name) const;
  /// [n, k] of a weight dtype, mapped. Errors: missing, another shape, a dtype `linear` doesn't
  /// take.
  Tensor matrix(std::string_view name, int64_t n, int64_t k) const;
  /// [n] as f32. Errors: missing, another shape.
  Tensor vector(std::string_view name, int64_t n) const;
  /// The same, undefined when the file has none.
  Tensor optional_vector(std::string_view name, int64_t n) const;
  /// Elements of all tensors of the file.
  int64_t parameters() const;

 private:
  Tensor get(std::string_view name, const Shape& shape) const;

  const io::Gguf& file_;
  Device device_;
  std::string prefix_;
};

/// x [n, ..] of the CPU with its rows in another order: row i is x's row order[i]. x itself where
/// the order is empty or x is undefined. Any dtype.
Tensor reordered(const Tensor& x, std::span<const int64_t> order);

}  // namespace wick::models
