#include "emu/model/model.h"

#include <algorithm>
#include <exception>

#include "emu/model/queue.h"
#include "emu/runtime/options.h"

namespace emu::model {

Model::Model(const Architecture& architecture, DeviceMemory& memory, Scheduler& scheduler,
             ThreadStarter& threads, double timeout)
    : architecture(architecture),
      memory(memory),
      scheduler(scheduler),
      threads(threads),
      timeout(timeout),
      code(memory, architecture) {}

Model::~Model() = default;

void Model::freed(uint64_t address, uint64_t bytes) {
  code.forget(address, bytes);
  memory.remove(address);
}

Queue* Model::start(const QueueInfo& info) {
  const uint32_t packets = info.ring_bytes / kPacketBytes;
  const bool whole =
      packets > 0 && info.ring_bytes % kPacketBytes == 0 && (packets & (packets - 1)) == 0;
  if (info.type != kAqlQueue) {
    complain("a queue of type " + std::to_string(info.type) +
             ": only compute queues are implemented; HSA_ENABLE_SDMA=0 avoids copy queues");
    return nullptr;
  }
  if (!whole || info.ring % kPacketBytes != 0 || info.ring == 0 || info.read_pointer == 0 ||
      info.write_pointer == 0 || info.read_pointer % 8 != 0 || info.write_pointer % 8 != 0) {
    complain("invalid queue: " + std::to_string(info.ring_bytes) + " bytes at " + hex(info.ring) +
             ", pointers at " + hex(info.read_pointer) + " and " + hex(info.write_pointer));
    return nullptr;
  }
  std::lock_guard lock(mutex_);
  try {
    queues_.push_back(std::make_unique<Queue>(*this, info, started_));
  } catch (const std::exception& error) {  // no memory or no thread
    complain(std::string("a queue can't be created: ") + error.what());
    return nullptr;
  }
  ++started_;
  return queues_.back().get();
}

void Model::stop(Queue* queue) {
  std::unique_ptr<Queue> ended;  // its thread may call raise(), so it is joined without the lock
  std::lock_guard lock(mutex_);
  const auto at = std::find_if(queues_.begin(), queues_.end(),
                               [&](const auto& known) { return known.get() == queue; });
  if (at == queues_.end()) return complain("a queue that doesn't exist was destroyed");
  ended = std::move(*at);
  queues_.erase(at);
}

void Model::set_event_callback(SetEvent callback, void* data) {
  std::lock_guard lock(mutex_);
  set_event_ = callback;
  set_event_data_ = data;
}

void Model::raise(unsigned event) {
  SetEvent callback = nullptr;
  void* data = nullptr;
  {
    std::lock_guard lock(mutex_);
    callback = set_event_;
    data = set_event_data_;
  }
  if (callback != nullptr) callback(data, event);
}

}  // namespace emu::model
