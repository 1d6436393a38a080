#pragma once

// Loads at an address that all active lanes of a wave share. AMD has scalar loads for them, which
// take no vector memory instruction. Other devices always take the path for lanes that differ.

#include "wick/backend/gpu/kernels/device/element.h"

namespace wick::gpu {

#if WICK_AMD

/// Whether x is true in all active lanes of the wave.
WICK_DEVICE bool wave_agrees(bool x) {
#if WICK_WAVE == 64
  return __builtin_amdgcn_ballot_w64(!x) == 0;
#else
  return __builtin_amdgcn_ballot_w32(!x) == 0;
#endif
}
/// Whether x is that of the wave's first active lane.
WICK_DEVICE bool is_of_first_lane(i64 x) {
  const u32 low = static_cast<u32>(x), high = static_cast<u32>(x >> 32);
  return ((low ^ of_first_lane(low)) | (high ^ of_first_lane(high))) == 0;
}
/// Loads an element whose address is the same in all active lanes. The kernel must not write it.
template <class T>
WICK_DEVICE T load_uniform(const T* at) {
  if constexpr (sizeof(T) < 4) {
    return *at;
  } else {
    const u64 address = reinterpret_cast<u64>(at);
    const u64 first = u64{of_first_lane(static_cast<u32>(address >> 32))} << 32 |
                      of_first_lane(static_cast<u32>(address));
    return *(const __attribute__((address_space(4))) T*)first;
  }
}

#else

WICK_DEVICE bool wave_agrees(bool) { return false; }
WICK_DEVICE bool is_of_first_lane(i64) { return false; }
template <class T>
WICK_DEVICE T load_uniform(const T* at) {
  return *at;
}

#endif

/// Loads an element where neighbouring lanes mostly load the same one. The kernel must not write
/// it.
template <class T>
WICK_DEVICE T load_repeated(const T* at) {
  if constexpr (sizeof(T) >= 4) {
    if (wave_agrees(is_of_first_lane(static_cast<i64>(reinterpret_cast<u64>(at))))) {
      return load_uniform(at);
    }
  }
  return *at;
}

}  // namespace wick::gpu
