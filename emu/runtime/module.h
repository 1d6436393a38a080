#pragma once

// Code objects laid into a device's memory.

#include <memory>
#include <string>
#include <vector>

#include "emu/exec/launch.h"
#include "emu/object/lines.h"
#include "emu/object/object.h"

namespace emu {

class Device;
class Memory;

/// A kernel that can be launched.
struct Kernel {
  class Module* module = nullptr;
  KernelInfo info;
  Descriptor descriptor;
};

/// Workgroups of a kernel that a processor of its device holds at once.
int resident_groups(const Kernel& kernel, int items, size_t dynamic_lds);

/// How a module's code is run.
struct CodeKind {
  bool checked = false, profiled = false;
};

class Module {
 public:
  /// Throws ObjectError; std::bad_alloc where the device has too little memory.
  Module(Device& device, Memory& memory, std::vector<uint8_t> image, CodeKind kind);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Device& device;
  /// Null where there is none of that name.
  Kernel* kernel(const std::string& name);
  std::vector<std::unique_ptr<Kernel>>& kernels() { return kernels_; }
  struct Global {
    uintptr_t address = 0;
    size_t bytes = 0;
  };
  /// Zero address where there is none of that name.
  Global variable(const std::string& name) const;
  /// Where address 0 of the object lies.
  uintptr_t base() const { return base_; }
  /// The code for waves of that width.
  std::shared_ptr<Code> code(bool wave64);
  /// The source line of an address of the object, empty where it isn't known.
  std::string line(uint64_t address);
  const CodeObject& object() const { return object_; }

 private:
  void lay_out();
  void relocate();

  Memory& memory_;
  CodeObject object_;
  std::mutex lines_mutex_;
  std::unique_ptr<Lines> lines_;  // null where reading them went wrong
  std::vector<std::unique_ptr<Kernel>> kernels_;
  uintptr_t base_ = 0;
  const CodeKind kind_;
  std::mutex mutex_;
  std::shared_ptr<Code> codes_[2];
};

using ModulePtr = std::shared_ptr<Module>;

}  // namespace emu
