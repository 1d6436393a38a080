#include "wick/backend/gpu/gpu.h"

#include <fmt/format.h>

#include "wick/base/error.h"

namespace wick::gpu {
namespace {

Driver& driver_of(Device device) {
  Driver* driver = Driver::of(device.kind);
  if (driver == nullptr) {
    throw Error("device", "no such device here", device.str(), Driver::missing(device.kind));
  }
  if (device.index < 0 || device.index >= driver->device_count()) {
    throw Error("device", "no such device here", device.str(),
                fmt::format("there are {} of that kind", driver->device_count()));
  }
  return *driver;
}

/// Whether kernels of these images wait for the ones in front of them by themselves (device.h).
bool wait_for_earlier(std::string_view architecture) { return cuda_number(architecture) >= 90; }

}  // namespace

Gpu::Gpu(Device which)
    : device(which),
      driver(driver_of(which)),
      info(driver.info(which.index)),
      pool(driver, which, info.bytes),
      code_(which, info),
      early_(wait_for_earlier(code_.architecture())) {
  enter();
  constexpr unsigned kNonBlocking = 1;
  check(driver.api.stream_create(&stream_, kNonBlocking), "creating a stream");
}

Gpu::~Gpu() {
  enter();
  driver.api.stream_synchronize(stream_);
  for (const auto& [file, module] : modules_) driver.api.module_unload(module.handle);
  driver.api.stream_destroy(stream_);
}

void Gpu::check(int code, std::string_view what) const {
  if (code == 0) return;
  throw Error(device.str(), fmt::format("{} failed", what), info.name, driver.text(code));
}

Gpu::Module& Gpu::module(std::string_view file) {
  const auto at = modules_.find(file);
  if (at != modules_.end()) return at->second;
  const std::string image = code_.image(file);
  Module module;
  check(driver.api.module_load(&module.handle, image.data()),
        fmt::format("loading {}.gpu for {}", file, code_.architecture()));
  ++loaded_;
  return modules_.emplace(file, std::move(module)).first->second;
}

void* Gpu::function(std::string_view file, std::string_view kernel, unsigned shared_bytes) {
  std::lock_guard lock(mutex_);
  Module& in = module(file);
  auto at = in.functions.find(kernel);
  if (at == in.functions.end()) {
    const std::string name(kernel);
    Function function;
    check(driver.api.module_function(&function.handle, in.handle, name.c_str()),
          fmt::format("finding {} in {}.gpu", kernel, file));
    at = in.functions.emplace(name, function).first;
  }
  Function& function = at->second;
  if (shared_bytes > function.allowed_shared_bytes) {
    check(driver.allow_shared(function.handle, static_cast<int>(shared_bytes)),
          fmt::format("asking for {} bytes of shared memory for {}", shared_bytes, kernel));
    function.allowed_shared_bytes = shared_bytes;
  }
  return function.handle;
}

void Gpu::launch_list(std::string_view file, std::string_view kernel, const Grid& grid,
                      void** arguments) {
  void* const handle = function(file, kernel, grid.shared_bytes);
  const auto& [x, y, z] = grid.groups;
  const int code = grid.early && early_
                       ? driver.launch_early(handle, grid.groups, grid.items, grid.shared_bytes,
                                             stream_, arguments)
                       : driver.api.launch(handle, x, y, z, grid.items, 1, 1, grid.shared_bytes,
                                           stream_, arguments, nullptr);
  check(code, fmt::format("launching {} ({}x{}x{} groups of {})", kernel, x, y, z, grid.items));
}

void Gpu::synchronize() {
  enter();
  check(driver.api.stream_synchronize(stream_), "waiting for the device");
}

}  // namespace wick::gpu
