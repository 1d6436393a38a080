#pragma once

// Limits that all architectures have in common.

#include <cstdint>

namespace emu {

inline constexpr uint32_t kMostItems = 1024;               // work-items of a workgroup
inline constexpr uint32_t kMostScratch = 1 << 24;          // bytes of a lane: an emulator's limit
inline constexpr uint64_t kMostImage = uint64_t{1} << 32;  // bytes of a loaded code object

}  // namespace emu
