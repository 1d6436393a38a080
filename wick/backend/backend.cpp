#include "wick/backend/backend.h"

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/driver.h"
#include "wick/base/error.h"

namespace wick {

PreparedWeight::~PreparedWeight() = default;
Backend::~Backend() = default;

Backend& backend(Device device) {
  if (device.kind == DeviceKind::cpu) {
    // Never destroyed: tensors with static storage may outlive any order of destruction.
    static Backend* cpu = new cpu::CpuBackend(cpu::selected_isa());
    return *cpu;
  }
  const gpu::Driver* driver = gpu::Driver::of(device.kind);
  if (driver == nullptr || device.index >= driver->device_count()) {
    throw Error("device", "no such device here", device.str(),
                "`wick devices` lists what there is");
  }
  throw Error("device", "tensors can't be on a GPU yet", device.str());
}

}  // namespace wick
