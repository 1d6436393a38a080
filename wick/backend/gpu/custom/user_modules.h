#pragma once

// Modules with users' kernels that are loaded on a device.

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "wick/backend/gpu/driver/gpu.h"

namespace wick::gpu {

/// A kernel of a user's module.
struct UserFunction {
  void* handle = nullptr;
  int64_t most_threads = 0;  ///< of a thread block; 0 if the driver doesn't say
  int64_t static_shared_bytes = 0;
  int64_t argument_bytes = -1;  ///< -1 if neither the driver nor the code object says
};

/// A loaded module. Its owners are the cache, the launches in progress, and the graphs that
/// captured a launch. The last of them unloads it when the device has completed its work.
class UserModule {
 public:
  /// Errors: the device's driver rejects the image. `op` and `what` describe it for messages.
  UserModule(Gpu& gpu, const std::string& image, std::string_view op, std::string_view what);
  ~UserModule();
  UserModule(const UserModule&) = delete;
  UserModule& operator=(const UserModule&) = delete;

  /// A kernel of the module. `op` begins the error message. Errors: there is no such kernel.
  UserFunction function(const std::string& name, std::string_view op);
  /// Allows launches of a kernel that function() has found with `shared_bytes` of dynamic shared
  /// memory. The caller has checked the device's limit.
  void allow_shared(const std::string& name, int64_t shared_bytes);

 private:
  struct Entry {
    UserFunction function;
    int64_t allowed_shared_bytes = 0;
  };
  Gpu& gpu_;
  void* handle_ = nullptr;
  const std::unordered_map<std::string, int64_t>
      argument_bytes_;  // of kernels, see code_metadata.h
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> functions_;
};

/// A cache of modules by content: kernels of the same name in modules of different content coexist,
/// and equal content is loaded once. If there are more than `most`, the cache drops the least
/// recently used one. Any thread may call.
class UserModules {
 public:
  static constexpr size_t kMostModules = 256;

  explicit UserModules(Gpu& gpu, size_t most = kMostModules)
      : limits(gpu.driver.launch_limits(gpu.device.index)), gpu_(gpu), most_(most) {}

  /// The device's limits of a launch.
  const LaunchLimits limits;

  /// The module with a key. make() loads it if the cache doesn't have it; it isn't called twice at
  /// the same time. Errors: those of make().
  std::shared_ptr<UserModule> find(const std::string& key,
                                   const std::function<std::shared_ptr<UserModule>()>& make);
  /// The number of modules loaded so far, also of those that were dropped.
  int loaded() const { return loaded_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<UserModule> module;
  };
  std::shared_ptr<UserModule> kept(const std::string& key);

  Gpu& gpu_;
  const size_t most_;
  std::atomic<int> loaded_ = 0;
  std::mutex loading_;        ///< held while make() runs
  std::mutex mutex_;          ///< guards the members below
  std::list<Entry> entries_;  ///< most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace wick::gpu
