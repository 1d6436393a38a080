#include "wick/backend/backend.h"

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/gpu_backend.h"

namespace wick {

PreparedWeight::~PreparedWeight() = default;
Backend::~Backend() = default;
DeviceGraph::~DeviceGraph() = default;
Readback::~Readback() = default;

Backend& backend(Device device) {
  if (device.kind == DeviceKind::cpu) {
    // Never destroyed: tensors with static storage may outlive any order of destruction.
    static Backend* cpu = new cpu::CpuBackend(cpu::selected_isa());
    return *cpu;
  }
  return gpu::backend_of(device);
}

}  // namespace wick
