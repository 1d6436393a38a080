#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/base/device.h"
#include "wick/base/dtype.h"
#include "wick/base/export.h"

namespace wick {

/// Memory use of a device. Freed memory isn't returned to the system at once; it is cached for
/// later tensors of similar size.
struct MemoryStats {
  size_t in_use_bytes = 0;  ///< bytes of tensors, packed weights and recorded graphs
  size_t cached_bytes = 0;  ///< bytes freed by tensors and kept for reuse
  size_t peak_bytes = 0;    ///< largest in_use_bytes so far, or since reset_peak_memory()
  size_t limit_bytes = 0;   ///< maximum of in_use_bytes + cached_bytes
  size_t total_bytes = 0;   ///< memory of the device; on the CPU, memory that the process may use
  size_t free_bytes = 0;    ///< bytes that this or another process can still allocate
};

// All functions here throw if the device doesn't exist.

/// Returns the current statistics. On the CPU, pages of mapped model files aren't counted.
WICK_API MemoryStats memory_stats(Device device = {});

/// Limits the memory, in use and cached, that this process may take of the device; 0 removes the
/// limit. Cached memory above the limit is freed at once. If the memory in use exceeds the limit,
/// the next allocation throws ("alloc: out of memory"). On the CPU, packed weights count towards
/// the limit, but never throw.
WICK_API void set_memory_limit(Device device, size_t bytes);

/// Returns cached memory to the system.
WICK_API void trim_memory(Device device = {});

/// About how many bytes of a device's memory a Weight takes that is packed from one matrix [n, k].
WICK_API size_t packed_bytes(DType dtype, int64_t n, int64_t k, Device device);

/// Sets peak_bytes to in_use_bytes.
WICK_API void reset_peak_memory(Device device = {});

/// Waits for all work queued on a device. Errors: those of that work.
WICK_API void synchronize(Device device);

/// Waits until a device is idle, including work of other libraries. While any thread captures a
/// graph, waits only for wick's own work. Returns at once if the device is lost. The next
/// synchronize() reports errors of the work.
WICK_API void quiesce(Device device) noexcept;

/// Returns the stream that wick's work is queued on, as the driver's handle, so that other
/// libraries can order their work against it; null on the CPU. Errors: the calling thread captures
/// a graph.
WICK_API void* native_stream(Device device);

}  // namespace wick
