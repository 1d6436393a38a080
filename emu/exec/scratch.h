#pragma once

// Scratch has the layout of the hardware: dword d of all lanes precedes dword d + 1, so that lanes
// that use the same offset access adjacent memory.

#include "emu/exec/memory.h"

namespace emu {
namespace {

EMU_INLINE char* scratch_at(Wave* w, uint32_t offset, uint32_t lane) {
  return reinterpret_cast<char*>(w->scratch) + (uint64_t{offset / 4} * w->lanes + lane) * 4 +
         offset % 4;
}

/// Copies an element between scratch and a plain buffer, by dwords if it is aligned and by bytes
/// otherwise.
template <uint32_t kBytes, bool kToScratch>
EMU_INLINE void scratch_element(Wave* w, uint32_t offset, uint32_t lane, char* buffer) {
  const uint32_t step = offset % 4 == 0 && kBytes % 4 == 0 ? 4 : 1;
  for (uint32_t i = 0; i < kBytes; i += step) {
    char* memory = scratch_at(w, offset + i, lane);
    std::memcpy(kToScratch ? memory : buffer + i, kToScratch ? buffer + i : memory, step);
  }
}

/// Tracks an access of these lanes to one element of scratch. A load of bytes that aren't known
/// gives an unknown value, and a store of an unknown value makes the bytes unknown. Elements of
/// which a part is known count as known, because of padding.
template <class Format, bool kStore>
EMU_INLINE void track_scratch(Wave* w, const Op* op, int half, uint32_t offset, LaneMask lanes) {
  if constexpr (kChecked) {
    ScratchTrack& scratch = *w->track->scratch;
    LaneMask any = 0;
    for (uint32_t i = 0; i < Format::kBytes; ++i) {
      LaneMask& known = scratch.known[offset + i][static_cast<size_t>(half)];
      if (kStore) known = (known & ~lanes) | (lanes & known_lanes(w, op->b + i / 4 * 128, half));
      any |= known;
    }
    if constexpr (kStore) {
      scratch.used = std::max<uint32_t>(scratch.used, offset + Format::kBytes);
    } else {
      w->track->load_unknown[half] |= lanes & ~any;
    }
  }
}

/// Accesses scratch for one half's lanes at base + offsets[lane], or all at base if `offsets` is
/// null.
template <class Format, bool kStore>
EMU_INLINE bool scratch_half(Wave* w, const Op* op, uint32_t base, const uint32_t* offsets,
                             LaneMask enabled, int half, char* reg) {
  if (enabled == 0) return true;
  const uint64_t end = uint64_t{base} + Format::kBytes;
  if (offsets == nullptr && enabled == kAllLanes && base % 4 == 0 && Format::kBytes % 4 == 0 &&
      end <= w->scratch_bytes) [[likely]] {
    for (int i = 0; i < Format::kRegisters; ++i) {
      char* memory =
          scratch_at(w, base + 4 * static_cast<uint32_t>(i), 32 * static_cast<uint32_t>(half));
      std::memcpy(kStore ? memory : reg + 128 * i, kStore ? reg + 128 * i : memory, 128);
    }
    track_scratch<Format, kStore>(w, op, half, base, enabled);
    return true;
  }
  for (LaneMask left = enabled; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint32_t offset = base + (offsets == nullptr ? 0 : offsets[lane]);
    if (uint64_t{offset} + Format::kBytes > w->scratch_bytes) {
      return bad_scratch(w, op, offset, Format::kBytes, 32 * half + lane);
    }
    track_scratch<Format, kStore>(w, op, half, offset, LaneMask{1} << lane);
    char element[16];
    const auto wave_lane = static_cast<uint32_t>(32 * half + lane);
    if constexpr (kStore) {
      Format::store_lane(element, reg + 4 * lane);
      scratch_element<Format::kBytes, true>(w, offset, wave_lane, element);
    } else {
      scratch_element<Format::kBytes, false>(w, offset, wave_lane, element);
      Format::load_lane(element, reg + 4 * lane);
    }
  }
  return true;
}

}  // namespace
}  // namespace emu
