#pragma once

// A program that was compiled with kernels registers them when it starts: its code objects, and the
// host functions and variables that stand for kernels and device variables.

#include "emu/hip/api.h"

namespace emu::hip {

/// The modules of registered code are loaded on first use, once per device.
struct RegisteredCode {
  const void* image = nullptr;
  std::vector<ModulePtr> modules;  // indexed by device
};

class Registry {
 public:
  static Registry& get();

  RegisteredCode* add_code(const void* image);
  void remove_code(RegisteredCode* code);
  void add_function(RegisteredCode* code, const void* function, const char* name);
  void add_variable(RegisteredCode* code, const void* variable, const char* name, size_t bytes);
  void add_managed(RegisteredCode* code, void** pointer, const void* initial, const char* name,
                   size_t bytes);

  /// Returns null if the host function isn't registered. Throws if its code can't be loaded.
  std::shared_ptr<Kernel> kernel(const void* function, Device& device);
  /// Throws hipErrorInvalidSymbol if the variable isn't registered.
  Module::Global variable(const void* variable, Device& device);
  /// Returns a function's name, or an empty string if it isn't registered.
  std::string name(const void* function);

 private:
  struct Entry {
    RegisteredCode* code;
    std::string name;
    size_t bytes = 0;
  };
  struct Managed {
    RegisteredCode* code;
    void** pointer;
    std::string name;
    size_t bytes;
  };
  ModulePtr module(RegisteredCode& code, Device& device);

  std::recursive_mutex mutex_;
  std::vector<std::unique_ptr<RegisteredCode>> codes_;
  std::unordered_map<const void*, Entry> functions_, variables_;
  std::vector<Managed> managed_;
};

/// Loads a module on a device and creates handles for its kernels. Throws if the module can't be
/// loaded.
ModulePtr load_module(Device& device, Bytes bytes);

}  // namespace emu::hip
