#pragma once

// Loads and stores of lanes, 16 at a time. A fast path serves lanes with consecutive elements or
// with one common element; other lanes are handled one by one.

#include "emu/exec/formats.h"
#include "emu/exec/launch.h"
#include "emu/exec/race_checks.h"
#include "emu/exec/track.h"
#include "emu/runtime/shadow.h"

namespace emu {
namespace {

enum class Pattern { consecutive, uniform, scattered };

EMU_INLINE Chunk chunk_ids() { return Chunk{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }

/// Classifies the offsets of 16 enabled lanes.
template <uint32_t kStep>
EMU_INLINE Pattern pattern(Chunk offsets) {
  const Chunk from_first = offsets - static_cast<Chunk>(offsets[0]);
  if (none(from_first != chunk_ids() * kStep)) return Pattern::consecutive;
  return none(from_first) ? Pattern::uniform : Pattern::scattered;
}

/// Whether the offsets of all lanes of a half are consecutive.
template <uint32_t kStep>
EMU_INLINE bool is_row(const uint32_t* offsets) {
  Chunk low, high;
  std::memcpy(&low, offsets, sizeof low);
  std::memcpy(&high, offsets + kChunk, sizeof high);
  const auto first = static_cast<Chunk>(offsets[0]);
  return none(((low - first) ^ (chunk_ids() * kStep)) |
              ((high - first) ^ ((chunk_ids() + kChunk) * kStep)));
}

// A space says whether `bytes` bytes at an address may be read or written. If `lane` comes from
// lanes_from(), a space only answers and doesn't report: after a negative answer it is asked again
// for each lane.

struct Global {
  static constexpr bool kFaults = true;
  /// Whether simple() is worth a try before the lanes are checked by sixteen: 32 elements of an
  /// even size fill segments.
  template <class Format>
  static constexpr bool kSimple = Format::kBytes % 2 == 0 && kChecked;

  /// Whether several lanes may access a whole number of aligned segments, and nothing about that
  /// needs a closer look. If so, the access is recorded.
  EMU_INLINE bool simple(Wave* w, const char* at, uint32_t bytes, bool write) {
    const Launch& launch = *w->launch;
    const Shadow& shadow = *launch.shadow;
    const auto address = reinterpret_cast<uintptr_t>(at);
    const uint64_t offset = address - shadow.base;
    if (offset % Shadow::kWord != 0 || !shadow.covers(address, bytes) ||
        !Shadow::words_set(write ? shadow.addressable : shadow.initialised, offset, bytes)) {
      return false;
    }
    if (launch.races != nullptr && !note_lines(w, address, bytes, write)) return false;
    if (write) Shadow::set_words(shadow.initialised, offset, bytes);
    return true;
  }

  EMU_INLINE void count(Wave* w, const char* base, const uint32_t* offsets, LaneMask lanes,
                        uint32_t bytes, bool store) {
    if (w->launch->memory_counts != nullptr) [[unlikely]] {
      count_global(w, reinterpret_cast<uint64_t>(base), offsets, lanes, bytes, store);
    }
  }

  EMU_INLINE bool readable(Wave* w, const Op* op, const char* at, uint32_t bytes, int lane) {
    if constexpr (kChecked) {
      if (bytes % Shadow::kWord == 0 && lane < 0 && simple(w, at, bytes, false)) [[likely]]
        return true;
      const Shadow& shadow = *w->launch->shadow;
      if (!shadow.readable(reinterpret_cast<uintptr_t>(at), bytes)) [[unlikely]] {
        if (lane < 0 || !bad_read(w, op, reinterpret_cast<uint64_t>(at), bytes, lane)) return false;
      }
      if (w->launch->races != nullptr) {
        check_global(w, op, reinterpret_cast<uint64_t>(at), bytes, lane, Use::read);
      }
    }
    return true;
  }
  /// `value`: what will be written, if it is known. Writing the value that memory already holds
  /// isn't a race, since workgroups set flags that way.
  EMU_INLINE bool writable(Wave* w, const Op* op, const char* at, uint32_t bytes, int lane,
                           const char* value = nullptr) {
    if constexpr (kChecked) {
      if (bytes % Shadow::kWord == 0 && lane < 0 && simple(w, at, bytes, true)) [[likely]]
        return true;
      const Shadow& shadow = *w->launch->shadow;
      if (!shadow.writable(reinterpret_cast<uintptr_t>(at), bytes)) [[unlikely]] {
        return lane >= 0 && bad_write(w, op, reinterpret_cast<uint64_t>(at), bytes, lane);
      }
      if (value != nullptr && std::memcmp(at, value, bytes) == 0) {
        Shadow::set(shadow.initialised, reinterpret_cast<uintptr_t>(at) - shadow.base, bytes);
        return true;
      }
      if (w->launch->races != nullptr &&
          !check_global(w, op, reinterpret_cast<uint64_t>(at), bytes, lane, Use::write)) {
        return false;
      }
      Shadow::set(shadow.initialised, reinterpret_cast<uintptr_t>(at) - shadow.base, bytes);
    }
    return true;
  }
  /// Records a store, by lanes or of a whole range, until the wave has waited for it.
  EMU_INLINE void issued(Wave* w, const char* at, uint32_t bytes) {
    if constexpr (kChecked) {
      if (!w->track->watches_global) return;
      const uint32_t start = 0;
      add_store(w, false, reinterpret_cast<uint64_t>(at), &start, 1, bytes, false);
    }
  }
  EMU_INLINE void issued(Wave* w, const char* base, const uint32_t* offsets, LaneMask lanes,
                         uint32_t bytes) {
    if constexpr (kChecked) {
      if (!w->track->watches_global || lanes == 0) return;
      add_store(w, false, reinterpret_cast<uint64_t>(base), offsets, lanes, bytes, false);
    }
  }
  /// Checks an operation that writes, and also reads unless it replaces the whole value.
  EMU_INLINE bool exchangeable(Wave* w, const Op* op, const char* at, uint32_t bytes, int lane,
                               bool reads = true) {
    if constexpr (kChecked) {
      const Shadow& shadow = *w->launch->shadow;
      const auto address = reinterpret_cast<uint64_t>(at);
      if (!shadow.writable(address, bytes) && !bad_write(w, op, address, bytes, lane)) return false;
      if (reads && !shadow.readable(address, bytes)) bad_read(w, op, address, bytes, lane);
      Shadow::set(shadow.initialised, address - shadow.base, bytes);
      if (w->launch->races != nullptr) use_global(w, op, address, bytes, lane, Use::atomic);
    }
    return true;
  }
};

/// In LDS, a read beyond the end returns zero and a write there has no effect.
struct Lds {
  static constexpr bool kFaults = false;
  template <class Format>
  static constexpr bool kSimple = false;

  EMU_INLINE void count(Wave* w, const char* base, const uint32_t* offsets, LaneMask lanes,
                        uint32_t bytes, bool) {
    if (w->launch->memory_counts != nullptr) [[unlikely]] {
      count_lds(w, static_cast<uint64_t>(base - reinterpret_cast<char*>(w->lds)), offsets, lanes,
                bytes);
    }
  }

  EMU_INLINE bool readable(Wave* w, const Op* op, const char* at, uint32_t bytes, int lane) {
    return usable(w, op, at, bytes, lane, Use::read);
  }
  EMU_INLINE bool writable(Wave* w, const Op* op, const char* at, uint32_t bytes, int lane,
                           const char* value = nullptr) {
    return usable(w, op, at, bytes, lane, Use::write, value);
  }
  EMU_INLINE void issued(Wave* w, const char* base, const uint32_t* offsets, LaneMask lanes,
                         uint32_t bytes, bool atomic = false) {
    if constexpr (kChecked) {
      if (!w->track->watches_lds || lanes == 0) return;
      add_store(w, true, static_cast<uint64_t>(base - reinterpret_cast<char*>(w->lds)), offsets,
                lanes, bytes, atomic);
    }
  }
  EMU_INLINE bool exchangeable(Wave* w, const Op* op, const char* at, uint32_t bytes, int lane,
                               bool = true) {
    return usable(w, op, at, bytes, lane, Use::atomic);
  }

 private:
  EMU_INLINE bool usable(Wave* w, const Op* op, const char* at, uint32_t bytes, int lane, Use use,
                         const char* value = nullptr) {
    if (within(w, at, bytes)) [[likely]] {
      if constexpr (kChecked) {
        const auto offset = static_cast<size_t>(at - reinterpret_cast<char*>(w->lds));
        if (value != nullptr && w->group->lds_track->is_written(offset, bytes) &&
            std::memcmp(at, value, bytes) == 0) {
          return true;
        }
        return check_lds(w, op, offset, bytes, lane, use);
      }
      return true;
    }
    if (kChecked && lane >= 0) bad_lds(w, op, at - reinterpret_cast<char*>(w->lds), bytes, lane);
    return false;
  }
  EMU_INLINE bool within(Wave* w, const char* at, uint32_t bytes) {
    const auto offset = static_cast<uint64_t>(at - reinterpret_cast<char*>(w->lds));
    return offset + bytes <= w->lds_bytes;
  }
};

/// Elements of at least a dword are expected at multiples of four bytes, shorter ones at multiples
/// of their size. The hardware accepts other addresses, but more slowly, and most of them are
/// mistakes.
template <class Format>
EMU_INLINE void check_alignment(Wave* w, const Op* op, const char* base, const uint32_t* offsets,
                                LaneMask enabled) {
  constexpr uint32_t kAlign = Format::kBytes < 4 ? Format::kBytes : 4;
  if constexpr (kChecked && kAlign > 1) {
    if (!w->launch->check_alignment) return;
    const auto low = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(base));
    uint32_t odd = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      odd |= (enabled >> lane & 1) != 0 ? (low + offsets[lane]) & (kAlign - 1) : 0;
    }
    if (odd != 0) [[unlikely]] {
      bad_alignment(w, op, reinterpret_cast<uint64_t>(base), offsets, enabled, kAlign);
    }
  }
}

/// Loads one half's lanes from base + offsets[lane] into the registers at `to`. Returns false after
/// a fault.
template <class Format, class Space>
EMU_INLINE bool load_half(Wave* w, const Op* op, const char* base, const uint32_t* offsets,
                          LaneMask enabled, char* to) {
  Space::count(w, base, offsets, enabled, Format::kBytes, false);
  check_alignment<Format>(w, op, base, offsets, enabled);
  if constexpr (Space::template kSimple<Format>) {
    if (enabled == kAllLanes && is_row<Format::kBytes>(offsets) &&
        Space::simple(w, base + offsets[0], kLanes * Format::kBytes, false)) {
      Format::load_chunk(base + offsets[0], to);
      Format::load_chunk(base + offsets[kChunk], to + 4 * kChunk);
      return true;
    }
  }
  for (int first = 0; first < kLanes; first += kChunk, enabled >>= kChunk) {
    const uint32_t mask = enabled & 0xffff;
    if (mask == 0) continue;
    if (mask == 0xffff) [[likely]] {
      Chunk chunk;
      std::memcpy(&chunk, offsets + first, sizeof chunk);
      const char* from = base + chunk[0];
      const Pattern kind = pattern<Format::kBytes>(chunk);
      if (kind == Pattern::consecutive && Space::readable(w, op, from, kChunk * Format::kBytes,
                                                          lanes_from(first, Format::kBytes))) {
        Format::load_chunk(from, to + 4 * first);
        continue;
      }
      if (kind == Pattern::uniform &&
          Space::readable(w, op, from, Format::kBytes, lanes_from(first, Format::kBytes))) {
        Format::load_uniform(from, to + 4 * first);
        continue;
      }
    }
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const int lane = first + __builtin_ctz(left);
      const char* from = base + offsets[lane];
      if (Space::readable(w, op, from, Format::kBytes, lane)) {
        Format::load_lane(from, to + 4 * lane);
      } else if (Space::kFaults) {
        return false;
      } else {
        Format::zero_lane(to + 4 * lane);
      }
    }
  }
  return true;
}

/// After lanes have stored one by one, looks for lanes whose value another lane of the instruction
/// has replaced by a different one.
template <class Format>
EMU_INLINE void check_overwritten(Wave* w, const Op* op, const char* base, const uint32_t* offsets,
                                  uint32_t lanes, const char* from) {
  if (!kChecked || !w->launch->check_races) return;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    char value[Format::kBytes];
    Format::store_lane(value, from + 4 * lane);
    if (std::memcmp(value, base + offsets[lane], sizeof value) == 0) [[likely]]
      continue;
    report_overwritten(w, op, reinterpret_cast<uint64_t>(base), offsets, left, Format::kBytes);
  }
}

template <class Format, class Space>
EMU_INLINE bool store_half(Wave* w, const Op* op, char* base, const uint32_t* offsets,
                           LaneMask enabled, const char* from) {
  Space::count(w, base, offsets, enabled, Format::kBytes, true);
  check_alignment<Format>(w, op, base, offsets, enabled);
  if constexpr (Space::template kSimple<Format>) {
    char* const to = base + offsets[0];
    if (enabled == kAllLanes && is_row<Format::kBytes>(offsets) &&
        Space::simple(w, to, kLanes * Format::kBytes, true)) {
      Space::issued(w, to, kLanes * Format::kBytes);
      Format::store_chunk(to, from);
      Format::store_chunk(base + offsets[kChunk], from + 4 * kChunk);
      return true;
    }
  }
  Space::issued(w, base, offsets, enabled, Format::kBytes);
  uint32_t one_by_one = 0;
  for (int first = 0; first < kLanes; first += kChunk, enabled >>= kChunk) {
    const uint32_t mask = enabled & 0xffff;
    if (mask == 0) continue;
    if (mask == 0xffff) [[likely]] {
      Chunk chunk;
      std::memcpy(&chunk, offsets + first, sizeof chunk);
      char* to = base + chunk[0];
      if (pattern<Format::kBytes>(chunk) == Pattern::consecutive &&
          Space::writable(w, op, to, kChunk * Format::kBytes, lanes_from(first, Format::kBytes))) {
        Format::store_chunk(to, from + 4 * first);
        continue;
      }
    }
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const int lane = first + __builtin_ctz(left);
      char* to = base + offsets[lane];
      char value[Format::kBytes];
      if constexpr (kChecked) Format::store_lane(value, from + 4 * lane);
      if (Space::writable(w, op, to, Format::kBytes, lane, kChecked ? value : nullptr)) {
        Format::store_lane(to, from + 4 * lane);
        one_by_one |= 1u << lane;
      } else if (Space::kFaults) {
        return false;
      }
    }
  }
  check_overwritten<Format>(w, op, base, offsets, one_by_one, from);
  return true;
}

}  // namespace
}  // namespace emu
