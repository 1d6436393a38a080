#pragma once

// A device: its limits, its streams, its settings.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emu/arch/architecture.h"
#include "emu/object/target.h"
#include "emu/runtime/stream.h"

namespace emu {

class Device {
 public:
  Device(int ordinal, const Architecture& architecture, size_t bytes);

  const int ordinal;
  const Architecture& architecture;
  const Target target;
  const size_t bytes;

  /// Held while a command that the null stream orders is queued.
  std::mutex order;
  std::vector<bool> peers;  // whose memory may be reached, by ordinal; under the mutex below
  std::mutex settings;
  unsigned flags = 0;
  size_t limits[3] = {1024, 1 << 20, 8 << 20};  // by hipLimit_t

  StreamPtr create_stream(unsigned flags, int priority);
  StreamPtr null_stream();
  StreamPtr null_stream_if_used();
  /// All that are there, the null stream among them.
  std::vector<StreamPtr> streams();
  /// Forgets a stream; what is queued still runs.
  void drop_stream(const Stream* stream);
  /// Waits for all streams. The first error that any of them met since it was last asked.
  hipError_t synchronize();

 private:
  std::mutex mutex_;
  StreamPtr null_;
  std::vector<StreamPtr> streams_;
};

}  // namespace emu
