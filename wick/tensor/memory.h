#pragma once

#include <cstddef>

#include "wick/base/device.h"
#include "wick/base/export.h"

namespace wick {

/// A device's memory as tensors use it. Freed memory isn't given back to the system at once: it is
/// kept, cached, for the next tensors of about its size.
struct MemoryStats {
  size_t in_use_bytes = 0;  ///< of tensors, packed weights and recordings
  size_t cached_bytes = 0;  ///< free, kept for reuse
  size_t peak_bytes = 0;    ///< largest in_use_bytes since the start or reset_peak_memory
  size_t limit_bytes = 0;   ///< most that in use and cached may come to
  size_t total_bytes = 0;   ///< of the device; on the CPU what the process may use
  size_t free_bytes = 0;    ///< that the system would still hand out, to this or other processes
};

// Errors of all of these: no such device here.

/// What is in use now. On the CPU, pages of mapped model files aren't counted.
WICK_API MemoryStats memory_stats(Device device = {});

/// Lets this process hold at most so many bytes of the device's memory, in use and cached; 0: all
/// that there is. Cached memory goes back at once where it is too much; what is in use stays, and
/// the next tensor is an error: alloc: out of memory. On the CPU, packed weights count, but aren't
/// refused.
WICK_API void set_memory_limit(Device device, size_t bytes);

/// Gives cached memory back to the system.
WICK_API void trim_memory(Device device = {});

/// Lets peak_bytes count from what is in use now.
WICK_API void reset_peak_memory(Device device = {});

/// Waits for the work given to a device so far. Errors: what went wrong in it.
WICK_API void synchronize(Device device);

/// Waits until a device does nothing, whoever gave it work, other libraries included; not for one
/// that is gone. What went wrong in its work is left for `synchronize` to say.
WICK_API void quiesce(Device device) noexcept;

/// The stream that work on a device goes to, as the vendor's driver knows it, for code of others
/// that orders its own before or behind it; null on the CPU. Errors: the calling thread makes a
/// recording.
WICK_API void* native_stream(Device device);

}  // namespace wick
