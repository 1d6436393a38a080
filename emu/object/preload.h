#pragma once

// Arguments that hardware writes to SGPRs before a kernel starts, on gfx90a and gfx942. Source:
// AMDGPU backend guide, "Preloaded Kernel Arguments".

#include <cstdint>

namespace emu {

/// The field kernarg_preload of a kernel's descriptor.
struct Preload {
  explicit Preload(uint16_t field) : count(field & 127), first(field >> 7) {}
  /// Whether a kernel has as many user SGPRs and bytes of arguments.
  bool fits(int user_sgprs, uint32_t kernarg_bytes) const {
    return count <= static_cast<uint32_t>(user_sgprs) && argument_bytes() <= kernarg_bytes;
  }
  /// The bytes of the arguments up to the last preloaded one.
  uint32_t argument_bytes() const { return count == 0 ? 0 : 4 * (first + count); }
  /// The bytes at the kernel's start that are for hardware which preloads nothing.
  uint64_t header_bytes() const { return count != 0 ? 256 : 0; }

  uint32_t count, first;  // in dwords
};

}  // namespace emu
