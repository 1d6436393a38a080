#include "wick/tensor/memory.h"

#include <exception>

#include "wick/backend/backend.h"
#include "wick/backend/devices.h"

namespace wick {

MemoryStats memory_stats(Device device) {
  const Backend& b = backend(device);
  const MemoryInfo info = b.memory_info();
  return {info.in_use_bytes, info.cached_bytes, info.peak_bytes,
          info.limit_bytes,  info.total_bytes,  b.free_memory()};
}

void set_memory_limit(Device device, size_t bytes) { backend(device).set_memory_limit(bytes); }

void trim_memory(Device device) { backend(device).trim(); }

size_t packed_bytes(DType dtype, int64_t n, int64_t k, Device device) {
  return prepared_bytes(dtype, n, k, device);
}

void reset_peak_memory(Device device) { backend(device).reset_peak_memory(); }

void synchronize(Device device) { backend(device).synchronize(); }

void quiesce(Device device) noexcept {
  try {
    backend(device).quiesce();
  } catch (const std::exception&) {  // the device is lost, so no work is left
  }
}

void* native_stream(Device device) { return backend(device).native_stream(); }

}  // namespace wick
