#pragma once

// Reading and writing memory by lanes: quick where the lanes' addresses follow one another or are
// all the same, one by one where they don't.

#include <cstring>

#include "emu/exec/values.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace emu {
namespace {

/// Whether every enabled lane's address is the first's plus lane times `step`.
EMU_INLINE bool steps_by(U64 address, LaneMask enabled, uint32_t step) {
  const U64 expected = splat<U64>(address[0]) + convert<U64>(lane_ids() * step);
  return (lane_mask(address != expected) & enabled) == 0;
}

EMU_INLINE U32 load_lanes(U64 address, LaneMask enabled, U32 old) {
  if (enabled == kAllLanes) [[likely]] {
    const auto* from = reinterpret_cast<const char*>(address[0]);
    if (steps_by(address, enabled, 4)) {
      U32 value;
      std::memcpy(&value, from, sizeof value);
      return value;
    }
    if (steps_by(address, enabled, 0)) {
      uint32_t value;
      std::memcpy(&value, from, sizeof value);
      return splat<U32>(value);
    }
  }
  U32 value = old;
  for (LaneMask left = enabled; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    uint32_t dword;
    std::memcpy(&dword, reinterpret_cast<const char*>(address[lane]), sizeof dword);
    value[lane] = dword;
  }
  return value;
}

EMU_INLINE void store_lanes(U64 address, LaneMask enabled, U32 value) {
  if (enabled == kAllLanes && steps_by(address, enabled, 4)) [[likely]] {
    std::memcpy(reinterpret_cast<char*>(address[0]), &value, sizeof value);
    return;
  }
  for (LaneMask left = enabled; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint32_t dword = value[lane];
    std::memcpy(reinterpret_cast<char*>(address[lane]), &dword, sizeof dword);
  }
}

}  // namespace
}  // namespace emu
