#pragma once

#include <cstddef>

#include "wick/base/device.h"
#include "wick/base/export.h"

namespace wick {

/// The use of a device's memory. Freed memory isn't returned to the system at once: it is cached
/// for later tensors of about its size.
struct MemoryStats {
  size_t in_use_bytes = 0;  ///< of tensors, packed weights and recordings
  size_t cached_bytes = 0;  ///< freed and kept for reuse
  size_t peak_bytes = 0;    ///< largest in_use_bytes since the start or reset_peak_memory
  size_t limit_bytes = 0;   ///< maximum of in_use_bytes + cached_bytes
  size_t total_bytes = 0;   ///< of the device; on the CPU: that the process may use
  size_t free_bytes = 0;    ///< that this or another process can still allocate
};

// Errors of all of these: no such device here.

/// Current statistics. On the CPU, pages of mapped model files aren't counted.
WICK_API MemoryStats memory_stats(Device device = {});

/// Limits this process to `bytes` of the device's memory, in use and cached; 0: no limit but the
/// device's. Cached memory above the limit is freed at once; if still more is in use, the next
/// allocation throws (alloc: out of memory). On the CPU, packed weights count, but never throw.
WICK_API void set_memory_limit(Device device, size_t bytes);

/// Gives cached memory back to the system.
WICK_API void trim_memory(Device device = {});

/// Sets peak_bytes to in_use_bytes.
WICK_API void reset_peak_memory(Device device = {});

/// Waits for all work queued on a device. Errors: those of that work.
WICK_API void synchronize(Device device);

/// Waits until a device is idle, including work of other libraries; returns at once for a lost
/// device. Errors of the work are left for `synchronize`.
WICK_API void quiesce(Device device) noexcept;

/// The stream that a device's work is queued on, as the vendor driver's handle, for other libraries
/// that order their work against it; null on the CPU. Errors: the calling thread makes a recording.
WICK_API void* native_stream(Device device);

}  // namespace wick
