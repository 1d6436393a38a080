#pragma once

// What the rows of op_bench share. A family of ops adds its rows in bench/op_bench_FAMILY.cpp; the
// peer's rows of the same keys are in bench/peers/torch_ops.py.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "wick/tensor/ops.h"

namespace wick::bench {

/// What bounds a row's time from below, measured in the same run at the same number of threads.
enum class Limit : uint8_t {
  none,  ///< nothing that is measured here
  copy,  ///< bytes read and written, at the speed of copying 64 MiB; small rows may exceed it
  read,  ///< bytes read, at the speed of reading 64 MiB
  fma,   ///< multiply-adds (one counts as one) of f32
  dot,   ///< multiply-adds of bf16 dot products into f32
};

/// A row: `name`, dtype and `shape` make its key, e.g. `gather_dim1.f32[4096x4096]`.
struct OpRow {
  using Call = std::function<void()>;

  std::string name;
  DType dtype;
  std::string shape;
  Limit limit;
  double work;  ///< in the limit's unit
  /// Makes the operands and the output; what it gives does the op once, into the same memory.
  std::function<Call()> make;

  std::string key() const;
};

/// Floats from a bell around 0, small integers; the same for a seed.
Tensor random_tensor(const Shape& shape, DType dtype, uint64_t seed = 1);
/// Integers in [0, below).
Tensor random_ids(const Shape& shape, int64_t below, DType dtype, uint64_t seed = 1);

// One function a file of rows.
void add_map(std::vector<OpRow>& rows);
void add_index(std::vector<OpRow>& rows);
void add_conv(std::vector<OpRow>& rows);
void add_linear(std::vector<OpRow>& rows);
void add_fused(std::vector<OpRow>& rows);
void add_reduce(std::vector<OpRow>& rows);

}  // namespace wick::bench
