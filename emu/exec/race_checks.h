#pragma once

// Fast paths of use_lds and use_global for the checked tables. They cover the common case in which
// nothing is wrong and the access is one dword or sixteen consecutive ones.
// They return what those functions do.

#include <cstring>

#include "emu/exec/formats.h"
#include "emu/exec/launch.h"
#include "emu/exec/race_rules.h"
#include "emu/exec/races.h"

namespace emu {
namespace {

template <class V, class T>
EMU_INLINE V load_tags(const T* from) {
  V tags;
  std::memcpy(&tags, from, sizeof tags);
  return tags;
}

/// Records a memory access. Returns false if the access needs a closer look.
template <class V, class T, class Rule>
EMU_INLINE bool note_tags(T* writers, T* readers, bool write, const Rule& rule) {
  if (Tags<V>::any(rule.wrote_unordered(load_tags<V>(writers)))) return false;
  const V reader = load_tags<V>(readers);
  V now = V(rule.mine);
  if (write) {
    if (Tags<V>::any(rule.read_unordered(reader))) return false;
  } else {
    now = rule.with_reader(reader);
  }
  std::memcpy(write ? writers : readers, &now, sizeof now);
  return true;
}

EMU_INLINE bool is_quick(uint64_t address, uint32_t bytes) {
  return address % 4 == 0 && bytes % 4 == 0 && bytes <= sizeof(Chunk);
}

/// Calls note_tags for whole dwords, at most a chunk of them.
template <class T, class Rule>
EMU_INLINE bool note_range(T* writers, T* readers, uint32_t bytes, bool write, const Rule& rule) {
  using Chunk = T __attribute__((ext_vector_type(kChunk)));
  if (bytes == 4 * kChunk) return note_tags<Chunk>(writers, readers, write, rule);
  for (uint32_t i = 0; i < bytes / 4; ++i) {
    if (!note_tags<T>(writers + i, readers + i, write, rule)) return false;
  }
  return true;
}

/// Records an access to all of a segment. Returns false, without a record, if the segment is
/// divided or its tags need a closer look.
EMU_INLINE bool note_line(const Launch& launch, RaceShadow::Line& line, bool write,
                          const GlobalRule& rule) {
  const uint32_t mark = line.mark();
  const Tag writer = line.writer, reader = line.reader;
  if ((mark & ~RaceShadow::kMarks) == launch.race_tag) return false;
  const ForeignLaunches& foreign = launch.foreign;
  if (foreign.possible() &&
      (foreign[mark >> 24] || foreign[writer >> 56] || (write && foreign[reader >> 56]))) {
    return false;
  }
  // Most tags belong to earlier launches.
  const bool first = rule.is_of_another_launch(writer) && rule.is_of_another_launch(reader);
  if (!first && (rule.wrote_unordered(writer) || (write && rule.read_unordered(reader)))) {
    return false;
  }
  if (write)
    line.writer = rule.mine;
  else
    line.reader = first ? rule.mine : rule.with_reader(reader);
  return true;
}

/// Records accesses of several lanes to whole segments. Returns false if one of them needs a closer
/// look; those before it are recorded, which changes nothing for the wave that made them.
EMU_INLINE bool note_lines(Wave* w, uint64_t address, uint32_t bytes, bool write) {
  const Launch& launch = *w->launch;
  RaceShadow& shadow = *launch.races;
  const uint64_t offset = address - shadow.base;
  if (w->group->synchronised || offset >= shadow.bytes) return true;
  const GlobalRule rule(w);
  RaceShadow::Line* const lines = shadow.lines + offset / RaceShadow::kLine;
  for (uint32_t i = 0; i < bytes / RaceShadow::kLine; ++i) {
    if (!note_line(launch, lines[i], write, rule)) return false;
  }
  return true;
}

EMU_INLINE bool check_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane,
                             Use use) {
  const Launch& launch = *w->launch;
  RaceShadow& shadow = *launch.races;
  const uint64_t offset = address - shadow.base;
  if (w->group->synchronised || offset >= shadow.bytes) return true;
  const GlobalRule rule(w);
  const bool write = use == Use::write;
  const uint64_t first = offset / RaceShadow::kLine,
                 last = (offset + bytes - 1) / RaceShadow::kLine;
  if (bytes == RaceShadow::kLine && first == last &&
      note_line(launch, shadow.lines[first], write, rule)) {
    return true;
  }
  bool plain = true;
  for (uint64_t line = first; line <= last; ++line) {
    uint32_t mark = shadow.lines[line].mark();
    if ((mark & ~RaceShadow::kMarks) != launch.race_tag) {
      divide_line(w, line);
      mark = shadow.lines[line].mark();
    }
    plain &= mark == launch.race_tag;
  }
  if (plain && is_quick(address, bytes) &&
      note_range(shadow.writers + offset / 4, shadow.readers + offset / 4, bytes, write, rule)) {
    return true;
  }
  return use_global(w, op, address, bytes, lane, use);
}

EMU_INLINE bool check_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane,
                          Use use) {
  LdsTrack& track = *w->group->lds_track;
  if (use != Use::atomic && is_quick(offset, bytes) && offset + bytes <= track.written.size() &&
      w->index < LdsTrack::kSeveral && !track.lds_late) [[likely]] {
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
        known = none(load_tags<Chunk>(reinterpret_cast<const uint32_t*>(written)) != all);
    }
    if (known) {
      if (w->group->waves_begun < 2 || !w->launch->check_races) return true;
      if (track.atomics_in == track.epoch) return true;
      uint32_t *writers = &track.writer[offset / 4], *readers = &track.reader[offset / 4];
      const bool narrow = track.is_narrow(offset) || track.is_narrow(offset + bytes - 1);
      if (!narrow && note_range(writers, readers, bytes, write, LdsRule(w))) return true;
    }
  }
  return use_lds(w, op, offset, bytes, lane, use);
}

}  // namespace
}  // namespace emu
