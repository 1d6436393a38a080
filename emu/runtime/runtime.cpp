#include "emu/runtime/runtime.h"

#include <pthread.h>

#include <cstdlib>

namespace emu {
namespace {

void report_leaks() {
  if (Runtime::get().forked) return;  // the parent frees its memory
  for (const Allocation& a : Runtime::get().memory->live()) {
    complain("never freed: " + describe(a));
  }
}

void write_profile() {
  if (Runtime::get().forked) return;
  for (const auto& device : Runtime::get().devices) device->synchronize();
  const ProfileLog& log = *Runtime::get().profile;
  log.write();
}

}  // namespace

Runtime& Runtime::get() {
  static auto* runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime()
    : options(Options::from_environment()),
      scheduler(options.threads, options.timeout, options.seed) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < options.devices.size(); ++i) {
    const Architecture* architecture = find_architecture(options.devices[i]);
    if (architecture == nullptr) {
      complain("WICK_EMU_DEVICES: architecture '" + options.devices[i] + "' isn't known");
      continue;
    }
    const int ordinal = static_cast<int>(devices.size());
    devices.push_back(std::make_unique<Device>(ordinal, *architecture, options.device_bytes[i]));
    sizes.push_back(options.device_bytes[i]);
  }
  for (const auto& device : devices) device->peers.resize(devices.size());
  memory = std::make_unique<Memory>(std::move(sizes), options.checks());
  if (options.wants("races") || options.wants("waits")) {
    races = std::make_unique<RaceShadow>(memory->shadow().base, memory->shadow().bytes);
    memory->when_allocated = [this](uintptr_t address, size_t bytes) {
      races->forget(address, bytes);
    };
    LaunchOrder::get().active = true;
  }
  if (!options.profile.empty()) {
    profile = std::make_unique<ProfileLog>(options.profile, options.profile_table);
    std::atexit(write_profile);
  }
  if (options.wants("leaks")) std::atexit(report_leaks);
  pthread_atfork(nullptr, nullptr, [] { Runtime::get().forked = true; });
}

std::shared_ptr<Kernel> Runtime::find_kernel(const void* handle) {
  std::lock_guard lock(mutex_);
  const auto at = kernels_.find(handle);
  if (at == kernels_.end()) return nullptr;
  ModulePtr module = at->second.module.lock();
  if (module == nullptr) return nullptr;
  auto* kernel = static_cast<Kernel*>(const_cast<void*>(handle));
  return {std::move(module), kernel};
}

void Runtime::add_kernels(const ModulePtr& module) {
  std::lock_guard lock(mutex_);
  for (const auto& kernel : module->kernels()) kernels_[kernel.get()] = {module, module.get()};
}

void Runtime::drop_kernels(const Module& module) {
  std::lock_guard lock(mutex_);
  std::erase_if(kernels_, [&](const auto& entry) { return entry.second.address == &module; });
}

}  // namespace emu
