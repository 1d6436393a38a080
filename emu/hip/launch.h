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

/// Queues a launch, with events before and after it if there are any.
SignalPtr submit_launch(const LaunchRequest& request, hipStream_t handle,
                        hipEvent_t start = nullptr, hipEvent_t stop = nullptr);

/// Launches kernels on several devices, one each: either all of them or none.
void launch_all(const hipLaunchParams* list, int count, unsigned flags, bool cooperative);

}  // namespace emu::hip
