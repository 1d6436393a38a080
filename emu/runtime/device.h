#pragma once

// A device: its architecture, memory size, streams and settings.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emu/arch/architecture.h"
#include "emu/object/target.h"
#include "emu/runtime/device_services.h"
#include "emu/runtime/stream.h"

namespace emu {

class Device {
 public:
  Device(int ordinal, const Architecture& architecture, size_t bytes);

  const int ordinal;
  const Architecture& architecture;
  const Target target;
  const size_t bytes;

  /// Held while a command that the null stream must order is queued.
  std::mutex order;
  // Whether each device's memory may be accessed, by ordinal; guarded by `settings`.
  std::vector<bool> peers;
  std::mutex settings;
  unsigned flags = 0;
  size_t limits[3] = {1024, 1 << 20, 8 << 20};  // indexed by hipLimit_t
  DeviceHeap heap;

  StreamPtr create_stream(unsigned flags, int priority);
  StreamPtr null_stream();
  StreamPtr null_stream_if_used();
  /// Returns all existing streams, including the null stream.
  std::vector<StreamPtr> streams();
  /// Removes a stream from the list; its queued work still runs.
  void drop_stream(const Stream* stream);
  /// Waits for the work of all streams. Their errors stay for the calls that ask for them.
  void wait();
  /// Waits for all streams. Returns the first error that any of them met since the last call.
  hipError_t synchronize();

 private:
  std::mutex mutex_;
  StreamPtr null_;
  std::vector<StreamPtr> streams_;
};

}  // namespace emu
