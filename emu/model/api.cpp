// The functions of the hook's interface.

#include <cstdlib>

#include "emu/model/model.h"
#include "emu/model/topology.h"
#include "emu/runtime/options.h"

namespace emu::model {
namespace {

/// What all GPUs share. It is never destroyed, since threads of queues may outlive the last call.
struct Shared {
  Options options = Options::from_environment();
  DeviceMemory memory;
  Scheduler scheduler{options.threads, options.timeout, options.seed};
  ThreadStarter threads;
  int models = 0;
};

Shared& shared() {
  static auto* all = new Shared;
  return *all;
}

Model* create() {
  Shared& all = shared();
  const char* folder = std::getenv("HSA_MODEL_TOPOLOGY");
  const auto node = gpu_node(folder == nullptr ? "" : folder, all.models);
  if (!node) {
    complain("HSA_MODEL_TOPOLOGY describes no GPU " + std::to_string(all.models));
    return nullptr;
  }
  const Architecture* architecture = find_architecture(node->architecture);
  if (architecture == nullptr) {
    complain("HSA_MODEL_TOPOLOGY: " + node->architecture + " isn't implemented");
    return nullptr;
  }
  // Installs the handler of faults now. AMD's compiler saves and restores handlers, and would
  // remove one that was installed while it runs.
  accessible([] {});
  ++all.models;
  // Its caller is the program's thread, which will create ROCr's.
  if (all.models == 1) yield_to_emulator();
  return new Model(*architecture, all.memory, all.scheduler, all.threads, all.options.timeout);
}

void destroy(Model* model) { delete model; }

void set_aperture(Model* model, void* base, uint64_t) {
  model->set_aperture(reinterpret_cast<uint64_t>(base));
}

void allocated(Model* model, void* address, uint64_t bytes, uint32_t) {
  model->allocated(reinterpret_cast<uint64_t>(address), bytes);
}

void freed(Model* model, void* address, uint64_t bytes) {
  model->freed(reinterpret_cast<uint64_t>(address), bytes);
}

// The runtime passes these callbacks for uses that the model doesn't have.
void set_notify_event(Model*, void (*)(void*), void*) {}
void set_wait_event(Model*, void (*)(void*, uint64_t, uint64_t), void*) {}

Queue* register_queue(Model* model, QueueInfo* info) { return model->start(*info); }

void set_set_event(Model* model, SetEvent callback, void* data) {
  model->set_event_callback(callback, data);
}

void destroy_queue(Model* model, Queue* queue) { model->stop(queue); }

constexpr Functions kFunctions = {.major = 0,
                                  .minor = 4,
                                  .create = create,
                                  .destroy = destroy,
                                  .set_aperture = set_aperture,
                                  .allocated = allocated,
                                  .freed = freed,
                                  .set_notify_event = set_notify_event,
                                  .set_wait_event = set_wait_event,
                                  .register_queue = register_queue,
                                  .set_set_event = set_set_event,
                                  .destroy_queue = destroy_queue};

}  // namespace
}  // namespace emu::model

const emu::model::Functions* get_hsakmt_model_functions() { return &emu::model::kFunctions; }
