#pragma once

// One GPU behind ROCr's simulator hook: its memory, its code and its queues.

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "emu/model/code.h"
#include "emu/model/hook.h"
#include "emu/model/memory.h"
#include "emu/model/priority.h"
#include "emu/runtime/scheduler.h"

namespace emu::model {

class Model {
 public:
  /// `timeout`: seconds after which a barrier packet becomes an error; 0: it may wait for ever.
  Model(const Architecture& architecture, DeviceMemory& memory, Scheduler& scheduler,
        ThreadStarter& threads, double timeout);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void set_aperture(uint64_t base) { aperture_ = base; }
  void allocated(uint64_t address, uint64_t bytes) {
    memory.add(address, bytes, aperture_ + address);
  }
  void freed(uint64_t address, uint64_t bytes);
  /// Starts to process a queue. Returns null, after a message, if it is invalid or can't be
  /// created.
  Queue* start(const QueueInfo& info);
  void stop(Queue* queue);

  void set_event_callback(SetEvent callback, void* data);
  /// Tells the runtime that an event happened.
  void raise(unsigned event);

  const Architecture& architecture;
  DeviceMemory& memory;
  Scheduler& scheduler;
  ThreadStarter& threads;
  const double timeout;
  CodeTable code;

 private:
  uint64_t aperture_ = 0;
  std::mutex mutex_;  // guards what follows
  std::list<std::unique_ptr<Queue>> queues_;
  int started_ = 0;  // numbers the queues
  SetEvent set_event_ = nullptr;
  void* set_event_data_ = nullptr;
};

}  // namespace emu::model
