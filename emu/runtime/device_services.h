#pragma once

// What kernels ask of their host while they run: printf, assert, malloc and free. The layouts are
// those of ROCm's device libraries from 5.0 to 7.2, which find them by hidden arguments.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emu/runtime/memory.h"

namespace emu {

class Device;
struct KernelOp;

/// The memory that a device's kernels have allocated. It remains until kernels free it.
class DeviceHeap {
 public:
  /// Returns the address of the structure in which the device libraries manage blocks: zeros, at
  /// first. 0 if there is no memory for it.
  uint64_t structure(Memory& memory, int device);
  /// Allocates memory for a kernel. Returns 0 if there is none.
  uint64_t allocate(Memory& memory, int device, uint64_t bytes);
  /// Returns false if no kernel has allocated the block.
  bool free(Memory& memory, uint64_t address);

 private:
  std::mutex mutex_;
  uint64_t structure_ = 0;
  std::map<uint64_t, uint64_t> blocks_;  // address to bytes
};

/// Device memory that is freed with this object.
class ServiceMemory {
 public:
  ServiceMemory() = default;
  ~ServiceMemory();
  ServiceMemory(const ServiceMemory&) = delete;
  ServiceMemory& operator=(const ServiceMemory&) = delete;
  /// Returns false if there is too little memory. The first `zeroed` bytes become zero, all count
  /// as initialized.
  bool allocate(Memory& memory, int device, size_t bytes, size_t zeroed);
  uint64_t address() const { return address_; }

 private:
  Memory* memory_ = nullptr;
  uint64_t address_ = 0;
};

/// The packets through which the waves of one launch call the host.
class Hostcalls {
 public:
  /// Returns false if there is too little memory.
  bool start(Memory& memory, Device& device);
  uint64_t address() const { return memory_.address(); }
  /// Answers the packets that are ready. Returns why the launch must fail, or an empty string.
  std::string serve();

 private:
  struct Header;
  std::string serve(uint32_t service, uint64_t* slot);
  std::string print(uint64_t* slot);
  std::string manage_memory(uint64_t* slot);

  Memory* arena_ = nullptr;
  Device* device_ = nullptr;
  ServiceMemory memory_;
  std::mutex mutex_;
  std::deque<std::vector<uint64_t>> messages_;  // by their number
  std::vector<uint64_t> free_messages_;
};

/// The services of one launch: those that its kernel has hidden arguments for.
class DeviceServices {
 public:
  /// Returns false if there is too little memory.
  bool start(Memory& memory, const KernelOp& op);
  /// Returns the value of a hidden argument that names a service, or 0.
  uint64_t argument(const std::string& kind) const;
  /// Whether waves call the host.
  bool interactive() const { return hostcalls_.address() != 0; }
  std::string serve() { return hostcalls_.serve(); }
  /// Prints what the kernel has put into its printf buffer.
  void finish(const KernelOp& op);

 private:
  bool start_grid(Memory& memory, const KernelOp& op);

  Hostcalls hostcalls_;
  ServiceMemory printf_, grid_;
  size_t printf_bytes_ = 0;
  uint64_t heap_ = 0;
};

}  // namespace emu
