#pragma once

// The tensor layer on a target: for rows that it makes of others, and for chains.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tests/parity/harness.h"
#include "wick/tensor/tensor.h"

namespace wick::parity {

/// While it lives, the target is where `device()` says: of CPUs the process's own takes the kernels
/// of the target's instruction set.
class TensorsOn {
 public:
  explicit TensorsOn(const Target& target);
  ~TensorsOn();
  TensorsOn(const TensorsOn&) = delete;
  TensorsOn& operator=(const TensorsOn&) = delete;
  Device device() const { return target_.backend->device(); }

 private:
  const Target& target_;
};

/// A test tensor's bytes on a device, laid out as it is.
Tensor tensor_of(const TestTensor& t, Device device);
/// Elements in row-major order, wherever they are.
std::vector<uint64_t> bits_of(const Tensor& t);

/// Runs call(tensors) on every target, and check(bits) of what it gives; reports other shapes and
/// dtypes, and errors. False when anything failed.
using TensorCall = std::function<Tensor(std::span<const Tensor> inputs)>;
bool run_tensors(std::string_view what, std::span<const TestTensor* const> inputs, DType dtype,
                 const Shape& shape, const TensorCall& call,
                 const std::function<void(const std::vector<uint64_t>& bits)>& check);

/// Expects equal bits, of NaNs a NaN.
void expect_same(std::string_view what, DType dtype, const std::vector<uint64_t>& got,
                 const std::vector<uint64_t>& expected);

}  // namespace wick::parity
