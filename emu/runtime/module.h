#pragma once

// Code objects that are loaded into a device's memory.

#include <memory>
#include <string>
#include <vector>

#include "emu/exec/launch.h"
#include "emu/object/lines.h"
#include "emu/object/object.h"
#include "emu/runtime/device_printf.h"

namespace emu {

class Device;
class Memory;

/// A kernel that can be launched.
struct Kernel {
  class Module* module = nullptr;
  KernelInfo info;
  Descriptor descriptor;
};

/// Returns the number of workgroups of a kernel that a multiprocessor of its device holds at once.
int resident_groups(const Kernel& kernel, int items, size_t dynamic_lds);

/// The instrumentation of a module's code.
struct CodeKind {
  bool checked = false, profiled = false;
};

class Module {
 public:
  /// Throws ObjectError, and std::bad_alloc if the device has too little memory.
  Module(Device& device, Memory& memory, std::vector<uint8_t> image, CodeKind kind);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Device& device;
  /// Returns null if there is no kernel of that name.
  Kernel* kernel(const std::string& name);
  std::vector<std::unique_ptr<Kernel>>& kernels() { return kernels_; }
  struct Global {
    uintptr_t address = 0;
    size_t bytes = 0;
  };
  /// Returns a zero address if there is no variable of that name.
  Global variable(const std::string& name) const;
  /// Returns the device address of the object's address 0.
  uintptr_t base() const { return base_; }
  /// Returns the code lowered for waves of 64 or 32 lanes.
  std::shared_ptr<Code> code(bool wave64);
  /// Returns the source line of an address of the object, or an empty string if it is unknown.
  std::string line(uint64_t address);
  /// Returns the format strings of kernels that print into a buffer.
  const std::vector<PrintFormat>& print_formats() const { return print_formats_; }

 private:
  void lay_out();
  void relocate();

  Memory& memory_;
  CodeObject object_;
  std::mutex lines_mutex_;
  std::vector<PrintFormat> print_formats_;
  std::unique_ptr<Lines> lines_;  // null if reading the line tables failed
  std::vector<std::unique_ptr<Kernel>> kernels_;
  uintptr_t base_ = 0;
  const CodeKind kind_;
  std::mutex mutex_;
  std::shared_ptr<Code> codes_[2];
};

using ModulePtr = std::shared_ptr<Module>;

}  // namespace emu
