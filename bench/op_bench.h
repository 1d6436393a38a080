#pragma once

// Shared code of the rows of op_bench. The rows of a family of ops are in
// bench/op_bench_FAMILY.cpp; PyTorch's rows with the same keys are in bench/peers/torch_ops.py.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "wick/tensor/ops.h"

namespace wick::bench {

/// The lower limit of a row's time, measured in the same run with the same number of threads.
enum class Limit : uint8_t {
  none,  ///< no measured limit
  copy,  ///< bytes read and written, at the speed of copying 64 MiB; small rows may exceed it
  read,  ///< bytes read, at the speed of reading 64 MiB
  fma,   ///< multiply-adds (one counts as one) of f32
  dot,   ///< multiply-adds of bf16 dot products into f32
};

/// A row. `name`, dtype and `shape` make its key, such as `gather_dim1.f32[4096x4096]`.
struct OpRow {
  using Call = std::function<void()>;

  std::string name;
  DType dtype;
  std::string shape;
  Limit limit;
  double work;  ///< in units of the limit
  /// Makes the operands and the output. The returned function runs the op once and writes to the
  /// same memory.
  std::function<Call()> make;

  std::string key() const;
};

/// Returns normally distributed floats around 0, or small integers, determined by the seed.
Tensor random_tensor(const Shape& shape, DType dtype, uint64_t seed = 1);
/// Returns integers in [0, below).
Tensor random_ids(const Shape& shape, int64_t below, DType dtype, uint64_t seed = 1);

// Each file of rows has one function.
void add_map(std::vector<OpRow>& rows);
void add_index(std::vector<OpRow>& rows);
void add_conv(std::vector<OpRow>& rows);
void add_linear(std::vector<OpRow>& rows);
void add_fused(std::vector<OpRow>& rows);
void add_reduce(std::vector<OpRow>& rows);

}  // namespace wick::bench
