#pragma once

// Launches as callers ask for them, checked and made operations.

#include "emu/hip/api.h"

namespace emu::hip {

struct LaunchRequest {
  const void* function = nullptr;
  std::array<uint64_t, 3> groups{}, block{};
  std::array<uint64_t, 3> items{};  // of the grid where groups may be cut short; else zeros
  size_t lds = 0;
  void** params = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
};

/// Throws what the real runtime refuses it with.
KernelOp kernel_op(const LaunchRequest& request, Device& device);

LaunchRequest request_of(const hipKernelNodeParams& params);

}  // namespace emu::hip
