#pragma once

// The interface between ROCr's simulator hook and a model library, version 0.4. ROCr loads the
// library that HSA_MODEL_LIB names and calls get_hsakmt_model_functions(). The declarations are
// facts of the binary interface of libhsa-runtime64.so.1 of ROCm 6.4 to 7.2.

#include <cstdint>

namespace emu::model {

class Model;
class Queue;

/// A queue that the runtime has created. All addresses are those of the GPU.
struct QueueInfo {
  uint64_t ring = 0;
  uint64_t write_pointer = 0, read_pointer = 0;
  uint64_t* doorbell = nullptr;  // null: the library polls the write pointer
  uint32_t ring_bytes = 0;
  uint32_t type = 0;
};
static_assert(sizeof(QueueInfo) == 40);

/// QueueInfo::type of a compute queue that takes AQL packets.
inline constexpr uint32_t kAqlQueue = 2;

using SetEvent = void (*)(void* data, unsigned event);

/// One model is created for each GPU of the topology. An allocation is announced when it is made;
/// it is mapped at `aperture + address` before a packet refers to it.
struct Functions {
  uint32_t major = 0, minor = 0;
  Model* (*create)() = nullptr;
  void (*destroy)(Model*) = nullptr;
  void (*set_aperture)(Model*, void* base, uint64_t bytes) = nullptr;
  void (*allocated)(Model*, void* address, uint64_t bytes, uint32_t flags) = nullptr;
  void (*freed)(Model*, void* address, uint64_t bytes) = nullptr;
  void (*set_notify_event)(Model*, void (*callback)(void*), void* data) = nullptr;
  void (*set_wait_event)(Model*, void (*callback)(void*, uint64_t, uint64_t), void* data) = nullptr;
  Queue* (*register_queue)(Model*, QueueInfo* info) = nullptr;
  void (*set_set_event)(Model*, SetEvent callback, void* data) = nullptr;
  void (*destroy_queue)(Model*, Queue*) = nullptr;
};
static_assert(sizeof(Functions) == 88);

}  // namespace emu::model

extern "C" __attribute__((visibility("default"))) const emu::model::Functions*
get_hsakmt_model_functions();
