#include "wick/backend/gpu/trace/counts.h"

#include <array>
#include <atomic>

namespace wick::gpu {
namespace {

std::atomic<bool> counting = false;

struct Counters {
  std::atomic<uint64_t> kernels, library_calls, device_copies, bytes_to_device, bytes_to_host,
      waits, allocated_bytes, host_allocations;
};

constexpr size_t kKinds = 3, kDevices = 16;

Counters& of(Device device) {
  static std::array<std::array<Counters, kDevices>, kKinds> all;
  return all[static_cast<size_t>(device.kind)][static_cast<size_t>(device.index) % kDevices];
}

thread_local Device current;

/// A vendor's functions with counters.
template <DeviceKind kKind>
struct Counted {
  static inline Api real;

  static int launch(void* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                    unsigned threads_x, unsigned threads_y, unsigned threads_z,
                    unsigned shared_bytes, void* stream, void** arguments, void** extra) {
    count_launch();
    return real.launch(function, blocks_x, blocks_y, blocks_z, threads_x, threads_y, threads_z,
                       shared_bytes, stream, arguments, extra);
  }
  static int copy_to_device(void* to, const void* from, size_t bytes, void* stream) {
    of(current).bytes_to_device += bytes;
    return real.copy_to_device(to, from, bytes, stream);
  }
  static int copy_to_host(void* to, const void* from, size_t bytes, void* stream) {
    of(current).bytes_to_host += bytes;
    return real.copy_to_host(to, from, bytes, stream);
  }
  static int copy_on_device(void* to, const void* from, size_t bytes, void* stream) {
    ++of(current).device_copies;
    return real.copy_on_device(to, from, bytes, stream);
  }
  static int set_bytes(void* to, unsigned char value, size_t bytes, void* stream) {
    ++of(current).device_copies;
    return real.set_bytes(to, value, bytes, stream);
  }
  static int mem_alloc(void** data, size_t bytes) {
    const int code = real.mem_alloc(data, bytes);
    if (code == 0) of(current).allocated_bytes += bytes;
    return code;
  }
  static int host_alloc(void** data, size_t bytes, unsigned flags) {
    ++of(current).host_allocations;
    return real.host_alloc(data, bytes, flags);
  }
  static int device_synchronize() {
    ++of(current).waits;
    return real.device_synchronize();
  }
  static int stream_synchronize(void* stream) {
    ++of(current).waits;
    return real.stream_synchronize(stream);
  }
  static int event_synchronize(void* event) {
    ++of(current).waits;
    return real.event_synchronize(event);
  }
};

template <DeviceKind kKind>
Api wrap(const Api& functions) {
  using T = Counted<kKind>;
  T::real = functions;
  Api api = functions;
  api.launch = T::launch;
  api.copy_to_device = T::copy_to_device;
  api.copy_to_host = T::copy_to_host;
  api.copy_on_device = T::copy_on_device;
  api.set_bytes = T::set_bytes;
  api.mem_alloc = T::mem_alloc;
  api.host_alloc = T::host_alloc;
  api.device_synchronize = T::device_synchronize;
  api.stream_synchronize = T::stream_synchronize;
  api.event_synchronize = T::event_synchronize;
  return api;
}

}  // namespace

WorkCounts operator-(const WorkCounts& to, const WorkCounts& from) {
  return {.kernels = to.kernels - from.kernels,
          .library_calls = to.library_calls - from.library_calls,
          .device_copies = to.device_copies - from.device_copies,
          .bytes_to_device = to.bytes_to_device - from.bytes_to_device,
          .bytes_to_host = to.bytes_to_host - from.bytes_to_host,
          .waits = to.waits - from.waits,
          .allocated_bytes = to.allocated_bytes - from.allocated_bytes,
          .host_allocations = to.host_allocations - from.host_allocations};
}

void count_work() { counting = true; }
bool counts_work() { return counting.load(std::memory_order_relaxed); }

WorkCounts work_counts(Device device) {
  const Counters& c = of(device);
  return {.kernels = c.kernels,
          .library_calls = c.library_calls,
          .device_copies = c.device_copies,
          .bytes_to_device = c.bytes_to_device,
          .bytes_to_host = c.bytes_to_host,
          .waits = c.waits,
          .allocated_bytes = c.allocated_bytes,
          .host_allocations = c.host_allocations};
}

Api counted(DeviceKind kind, const Api& functions) {
  if (!counts_work()) return functions;
  return kind == DeviceKind::cuda ? wrap<DeviceKind::cuda>(functions)
                                  : wrap<DeviceKind::hip>(functions);
}

void count_device(Device device) {
  if (counts_work()) current = device;
}
void count_launch() {
  if (counts_work()) ++of(current).kernels;
}
void count_library_call() {
  if (counts_work()) ++of(current).library_calls;
}

}  // namespace wick::gpu
