#pragma once

// Counts of the work that a process gives to its GPUs, for tests. They show that an op ran on the
// device and that it copied nothing to the host.
//
// When a driver is opened after count_work(), the functions of its table are replaced by functions
// that count their calls. Without count_work() the table is unchanged.

#include <cstdint>

#include "wick/backend/gpu/driver/driver.h"

namespace wick::gpu {

struct WorkCounts {
  uint64_t kernels = 0;           ///< launches of kernels, also while a graph is captured
  uint64_t library_calls = 0;     ///< gemms by a vendor's library
  uint64_t device_copies = 0;     ///< copies and fills by the driver within the device's memory
  uint64_t bytes_to_device = 0;   ///< bytes copied from the host
  uint64_t bytes_to_host = 0;     ///< bytes copied to the host
  uint64_t waits = 0;             ///< waits of the host for an event, a stream or the device
  uint64_t allocated_bytes = 0;   ///< bytes of device memory that the driver has allocated
  uint64_t host_allocations = 0;  ///< allocations of pinned memory

  /// Work of the device itself.
  uint64_t on_device() const { return kernels + library_calls + device_copies; }
};

/// The counts from `from` to `to`.
WorkCounts operator-(const WorkCounts& to, const WorkCounts& from);

/// Begins to count. Devices whose driver is open already aren't counted.
void count_work();
bool counts_work();
/// The counts of a device since count_work(): zeros if its driver was opened before. The indices of
/// devices are below 16.
WorkCounts work_counts(Device device);

// The driver calls these.

/// Replaces the functions of a driver by counting ones after count_work().
Api counted(DeviceKind kind, const Api& functions);
/// Records that the calling thread uses a device from now on.
void count_device(Device device);
/// Count work that doesn't go through the table.
void count_launch();
void count_library_call();

}  // namespace wick::gpu
