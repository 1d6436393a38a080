#pragma once

// The emulator's state in a process: devices, their memory, and the handles that callers hold.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emu/runtime/device.h"
#include "emu/runtime/memory.h"
#include "emu/runtime/module.h"
#include "emu/runtime/options.h"
#include "emu/runtime/profile_log.h"
#include "emu/runtime/scheduler.h"

namespace emu {

/// Maps handles to objects. An unknown handle gives null.
template <class T>
class Handles {
 public:
  template <class Handle>
  Handle add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    T* raw = object.get();
    objects_[raw] = std::move(object);
    return reinterpret_cast<Handle>(raw);
  }
  std::shared_ptr<T> find(const void* handle) const {
    std::lock_guard lock(mutex_);
    const auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : at->second;
  }
  std::shared_ptr<T> remove(const void* handle) {
    std::lock_guard lock(mutex_);
    const auto at = objects_.find(handle);
    if (at == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(at->second);
    objects_.erase(at);
    return object;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

class Runtime {
 public:
  /// Returns the process's runtime. It is created by the first call and never destroyed, because
  /// threads of streams may still be running when the process ends.
  static Runtime& get();

  const Options options;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<Memory> memory;
  Scheduler scheduler;
  std::unique_ptr<RaceShadow> races;    // null unless races or waits are checked
  std::unique_ptr<ProfileLog> profile;  // null unless profiling
  std::atomic<bool> forked{false};  // a child of fork, in which the threads of streams don't exist

  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Module> modules;

  /// Returns a kernel by its handle, or null if it is unknown. The pointer keeps its module alive.
  std::shared_ptr<Kernel> find_kernel(const void* handle);
  void add_kernels(const ModulePtr& module);
  void drop_kernels(const Module& module);

 private:
  Runtime();
  std::mutex mutex_;
  struct Owner {
    std::weak_ptr<Module> module;
    const Module* address;
  };
  std::unordered_map<const void*, Owner> kernels_;
};

}  // namespace emu
