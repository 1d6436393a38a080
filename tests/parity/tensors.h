#pragma once

// The tensor layer on a target, for composed rows and for chains.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tests/parity/harness.h"
#include "wick/tensor/tensor.h"

namespace wick::parity {

/// Selects the target as device() during its lifetime. For a CPU target, the process's CPU backend
/// uses the kernels of its instruction set.
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

/// Returns a tensor on a device with the layout and bytes of a test tensor.
Tensor tensor_of(const TestTensor& t, Device device);
/// Returns the bits of the elements in row-major order, for any device.
std::vector<uint64_t> bits_of(const Tensor& t);

/// Runs call(tensors) on every target and check(bits) on its result. Reports errors, and unexpected
/// shapes and dtypes. Returns false if anything failed.
using TensorCall = std::function<Tensor(std::span<const Tensor> inputs)>;
bool run_tensors(std::string_view what, std::span<const TestTensor* const> inputs, DType dtype,
                 const Shape& shape, const TensorCall& call,
                 const std::function<void(const std::vector<uint64_t>& bits)>& check);

/// Expects equal bits, where any NaN equals any other.
void expect_same(std::string_view what, DType dtype, const std::vector<uint64_t>& got,
                 const std::vector<uint64_t>& expected);

}  // namespace wick::parity
