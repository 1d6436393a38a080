#include "wick/backend/devices.h"

#include <optional>
#include <utility>

#include "wick/backend/gpu/code.h"
#include "wick/backend/gpu/driver.h"
#include "wick/backend/gpu/images.h"

namespace wick {
namespace {

constexpr DeviceKind kGpuKinds[] = {DeviceKind::cuda, DeviceKind::hip};

}  // namespace

std::vector<GpuDescription> gpus() {
  std::vector<GpuDescription> all;
  for (const DeviceKind kind : kGpuKinds) {
    const gpu::Driver* driver = gpu::Driver::of(kind);
    for (int i = 0; driver != nullptr && i < driver->device_count(); ++i) {
      const gpu::GpuInfo info = driver->info(i);
      GpuDescription description{Device{kind, i}, info.name, info.architecture, "", "",
                                 info.bytes,      info.integrated, info.wave, info.processors};
      if (!gpu::images_allowed() || !gpu::has_images(info.architecture, description.kernels)) {
        description.kernels.clear();
        if (const auto* compiler = gpu::Compiler::of(kind)) description.compiler = compiler->name;
      }
      all.push_back(std::move(description));
    }
  }
  return all;
}

Device best_device() {
  std::optional<GpuDescription> best;
  for (const GpuDescription& gpu : gpus()) {
    if (gpu.kernels.empty() && gpu.compiler.empty()) continue;
    const auto rank = [](const GpuDescription& g) {
      return std::pair(!g.integrated, g.memory_bytes);
    };
    if (!best || rank(gpu) > rank(*best)) best = gpu;
  }
  return best ? best->device : Device::cpu();
}

std::vector<DriverDescription> gpu_drivers() {
  std::vector<DriverDescription> all;
  for (const DeviceKind kind : kGpuKinds) {
    const gpu::Driver* driver = gpu::Driver::of(kind);
    if (driver == nullptr) {
      all.push_back({kind, false, "", "", gpu::Driver::missing(kind)});
    } else {
      all.push_back({kind, true, driver->library, driver->version(), ""});
    }
  }
  return all;
}

}  // namespace wick
