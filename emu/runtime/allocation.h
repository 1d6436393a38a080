#pragma once

// A block of memory that the runtime knows.

#include <cstddef>
#include <cstdint>
#include <string>

namespace emu {

enum class MemoryKind : uint8_t { device, managed, host, registered, internal };

struct Allocation {
  uintptr_t base = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  int device = 0;
  unsigned flags = 0;
  uint64_t serial = 0;  // number of the allocation in this process
  const void* pool = nullptr;
  std::string label;    // of internal allocations, such as a module's name
  bool mapped = false;  // a mapping in an address range that the caller has reserved

  bool holds(uintptr_t address) const { return address - base < bytes; }
};

/// Returns a description such as "1024 bytes (#7, device 0)".
std::string describe(const Allocation& allocation);

}  // namespace emu
