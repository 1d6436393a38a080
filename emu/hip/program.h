#pragma once

// What a program that was compiled with kernels in it tells the runtime at its start: its code, and
// which of its functions and variables stand for which in there.

#include "emu/hip/api.h"

namespace emu::hip {

/// Modules of registered code are loaded when they are first needed, once for each device.
struct RegisteredCode {
  const void* image = nullptr;
  std::vector<ModulePtr> modules;  // by device
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

  /// Null where the program's function isn't known. Throws where its code can't be loaded.
  std::shared_ptr<Kernel> kernel(const void* function, Device& device);
  /// Throws hipErrorInvalidSymbol.
  Module::Global variable(const void* variable, Device& device);
  /// A function's name, empty where it isn't known.
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

/// Loads a module for a device and gives out its kernels' handles. Throws.
ModulePtr load_module(Device& device, Bytes bytes);

}  // namespace emu::hip
