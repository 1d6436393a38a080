#pragma once

// One GPU in use: its stream, its modules, and launches.

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "wick/backend/gpu/code.h"
#include "wick/backend/gpu/driver.h"
#include "wick/backend/gpu/pool.h"

namespace wick::gpu {

/// How a kernel is spread over the device.
struct Grid {
  unsigned groups[3] = {1, 1, 1};
  unsigned items = 256;       ///< of a group
  unsigned shared_bytes = 0;  ///< dynamic
  bool early = false;         ///< may start before the one in front has ended, where kernels wait
};

class Gpu {
 public:
  /// Errors: no driver or no such device, no kernels for its architecture.
  explicit Gpu(Device device);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Device device;
  Driver& driver;
  const GpuInfo info;
  Pool pool;

  void* stream() const { return stream_; }
  /// How many modules were loaded so far.
  int modules_loaded() const { return loaded_; }
  /// Where their code comes from.
  const Code& code() const { return code_; }

  /// Makes this the calling thread's device.
  void enter() const { driver.enter(device.index); }
  /// Throws for a code that isn't 0; `what` was attempted.
  void check(int code, std::string_view what) const;

  /// A kernel of a file in kernels/, e.g. ("map", "silu_f32"). Its module is loaded at the first
  /// use. It may then be launched with so many bytes of dynamic shared memory.
  void* function(std::string_view file, std::string_view kernel, unsigned shared_bytes = 0);
  /// Launches a kernel on the stream; each argument by value, of exactly the kernel's type.
  template <class... Arguments>
  void launch(std::string_view file, std::string_view kernel, const Grid& grid,
              Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> addresses{&arguments...};
    launch_list(file, kernel, grid, addresses.data());
  }
  void synchronize();

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  template <class T>
  using ByName = std::unordered_map<std::string, T, Hash, std::equal_to<>>;
  struct Function {
    void* handle = nullptr;
    unsigned allowed_shared_bytes = 48 << 10;
  };
  struct Module {
    void* handle = nullptr;
    ByName<Function> functions;
  };

  void launch_list(std::string_view file, std::string_view kernel, const Grid& grid,
                   void** arguments);
  Module& module(std::string_view file);

  Code code_;
  bool early_ = false;
  void* stream_ = nullptr;
  std::mutex mutex_;
  int loaded_ = 0;
  ByName<Module> modules_;
};

}  // namespace wick::gpu
