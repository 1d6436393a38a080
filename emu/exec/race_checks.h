#pragma once

// Fast paths of use_lds and use_global for the checked tables. They cover the common case in which
// nothing is wrong and the access is one dword or sixteen consecutive ones.

#include <cstring>

#include "emu/exec/formats.h"
#include "emu/exec/launch.h"
#include "emu/exec/races.h"

namespace emu {
namespace {

/// The tags of one dword or of sixteen.
template <class V>
struct Tags {
  static constexpr uint32_t kBytes = sizeof(V);
  using Truth = decltype(V() == V());

  EMU_INLINE V load(const uint32_t* from) {
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  EMU_INLINE void store(uint32_t* to, V value) { std::memcpy(to, &value, sizeof value); }
  EMU_INLINE bool any(Truth truth) {
    if constexpr (sizeof(V) == 4) {
      return truth;
    } else {
      return !none(truth);
    }
  }
  EMU_INLINE V choose(Truth truth, uint32_t a, uint32_t b) {
    if constexpr (sizeof(V) == 4) {
      return truth ? a : b;
    } else {
      return truth ? V(a) : V(b);
    }
  }
};

/// Records a memory access. Returns false if the access needs a closer look. `others` tests whether
/// tags belong to a wave or workgroup that isn't ordered with this wave.
template <class V, class Others>
EMU_INLINE bool note_tags(uint32_t* writers, uint32_t* readers, bool write, uint32_t mine,
                          uint32_t several, const Others& others) {
  using T = Tags<V>;
  if (T::any(others(T::load(writers)))) return false;
  const V reader = T::load(readers);
  if (write) {
    if (T::any(others(reader))) return false;
    T::store(writers, V(mine));
  } else {
    T::store(readers, T::choose(others(reader), several, mine));
  }
  return true;
}

EMU_INLINE bool is_quick(uint64_t address, uint32_t bytes) {
  return address % 4 == 0 && bytes % 4 == 0 && bytes <= sizeof(Chunk);
}

/// Calls note_tags for whole dwords, at most a chunk of them.
template <class Others>
EMU_INLINE bool note_range(uint32_t* writers, uint32_t* readers, uint32_t bytes, bool write,
                           uint32_t mine, uint32_t several, const Others& others) {
  if (bytes == sizeof(Chunk)) {
    return note_tags<Chunk>(writers, readers, write, mine, several, others);
  }
  for (uint32_t i = 0; i < bytes / 4; ++i) {
    if (!note_tags<uint32_t>(writers + i, readers + i, write, mine, several, others)) return false;
  }
  return true;
}

EMU_INLINE void check_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane,
                             Use use) {
  RaceShadow& shadow = *w->launch->races;
  const uint64_t offset = address - shadow.base;
  if (w->group->synchronised || offset >= shadow.bytes) return;
  const uint32_t tag = w->launch->race_tag, mine = RaceShadow::tag_of(tag, w->group->number);
  const uint32_t several = tag | RaceShadow::kSeveral;
  const bool write = use == Use::write;
  const auto others = [&](auto tags) { return ((tags >> 24) == (tag >> 24)) & (tags != mine); };
  const uint64_t first = offset / RaceShadow::kLine,
                 last = (offset + bytes - 1) / RaceShadow::kLine;
  const auto divided = [&](uint64_t line) {
    return shadow.lines[line].mark() & ~RaceShadow::kNarrow;
  };
  if (bytes == RaceShadow::kLine && first == last && divided(first) != tag) [[likely]] {
    RaceShadow::Line& line = shadow.lines[first];
    const bool read_by_others = others(line.reader);
    if (!others(line.writer) && !(write && read_by_others)) [[likely]] {
      if (write)
        line.writer = mine;
      else
        line.reader = read_by_others ? several : mine;
      return;
    }
  }
  bool narrow = false;
  for (uint64_t line = first; line <= last; ++line) {
    if (divided(line) != tag) divide_line(shadow, line, tag);
    narrow |= shadow.lines[line].mark() != tag;
  }
  if (!narrow && is_quick(address, bytes) &&
      note_range(shadow.writers + offset / 4, shadow.readers + offset / 4, bytes, write, mine,
                 several, others)) {
    return;
  }
  use_global(w, op, address, bytes, lane, use);
}

EMU_INLINE void check_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane,
                          Use use) {
  LdsTrack& track = *w->group->lds_track;
  if (use != Use::atomic && is_quick(offset, bytes) && offset + bytes <= track.written.size() &&
      w->index < LdsTrack::kSeveral) [[likely]] {
    const bool write = use == Use::write;
    uint8_t* written = track.written.data() + offset;
    bool known = true;
    if (bytes < sizeof(Chunk)) {
      const uint32_t all = 0x01010101;
      for (uint32_t i = 0; i < bytes; i += 4) {
        if (write)
          std::memcpy(written + i, &all, 4);
        else
          known &= std::memcmp(written + i, &all, 4) == 0;
      }
    } else {
      const auto all = Chunk(0x01010101);
      if (write)
        std::memcpy(written, &all, sizeof all);
      else
        known = none(Tags<Chunk>::load(reinterpret_cast<const uint32_t*>(written)) != all);
    }
    if (known) {
      if (w->group->waves_begun < 2 || !w->launch->check_races) return;
      if (track.atomics_in == track.epoch) return;
      const uint32_t epoch = track.epoch, mine = epoch * 64 + w->index;
      const auto others = [&](auto tags) { return ((tags / 64) == epoch) & (tags != mine); };
      uint32_t *writers = &track.writer[offset / 4], *readers = &track.reader[offset / 4];
      const uint32_t several = epoch * 64 + LdsTrack::kSeveral;
      const bool narrow = track.is_narrow(offset) || track.is_narrow(offset + bytes - 1);
      if (!narrow && note_range(writers, readers, bytes, write, mine, several, others)) return;
    }
  }
  use_lds(w, op, offset, bytes, lane, use);
}

}  // namespace
}  // namespace emu
