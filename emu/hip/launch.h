#pragma once

// Checks a caller's launch parameters and converts them to an operation.

#include "emu/hip/api.h"

namespace emu::hip {

struct LaunchRequest {
  const void* function = nullptr;
  std::array<uint64_t, 3> groups{}, block{};
  // Of the grid if workgroups may be smaller at its edges, zeros otherwise.
  std::array<uint64_t, 3> items{};
  size_t lds = 0;
  void** params = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
};

/// Throws the error with which the real runtime rejects the launch.
KernelOp kernel_op(const LaunchRequest& request, Device& device);

LaunchRequest request_of(const hipKernelNodeParams& params);

}  // namespace emu::hip
