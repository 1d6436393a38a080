#include "emu/exec/races.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

#include "emu/exec/half.h"
#include "emu/exec/launch.h"
#include "emu/exec/race_rules.h"
#include "emu/exec/track.h"

namespace emu {
namespace {

std::string lds_text(const char* what, uint64_t offset, uint32_t wave, const char* other) {
  char text[160];
  std::snprintf(text, sizeof text, "%s LDS at %llu, which wave %u %s without a barrier between",
                what, static_cast<unsigned long long>(offset), wave, other);
  return text;
}

/// Describes an address and the memory that it belongs to.
std::string place_of(Wave* w, uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  const auto& describe = w->launch->describe;
  return text + (describe ? " (" + describe(address) + ")" : "");
}

}  // namespace

void LdsTrack::start(uint32_t bytes) {
  const size_t dwords = (bytes + 3) / 4;
  written.assign(bytes, 0);
  if (writer.size() < dwords || epoch > (1u << 25)) {
    writer.assign(dwords, 0);
    reader.assign(dwords, 0);
    byte_writer.resize(dwords * 4);  // read only for segments that `narrow` marks
    byte_reader.resize(dwords * 4);
    narrow.assign(dwords * 4 / kLine + 1, 0);
    epoch = 0;
  }
  ++epoch;  // accesses of an earlier workgroup belong to an earlier epoch
  atomics_in = 0;
  lds_late = global_late = false;
}

namespace {

/// The tag arrays of one kind of memory, by dword and by byte.
template <class T>
struct TagArrays {
  T *writers, *readers, *byte_writers, *byte_readers;

  /// Copies the tags of a segment's dwords to its bytes.
  void give_to_bytes(uint64_t line, uint64_t size) const {
    const uint64_t end = std::min(size, (line + 1) * RaceShadow::kLine);
    for (uint64_t byte = line * RaceShadow::kLine; byte < end; ++byte) {
      byte_writers[byte] = writers[byte / 4];
      byte_readers[byte] = readers[byte / 4];
    }
  }
};

/// Calls note(offset, writer, reader) for each dword of a range of memory, or for each byte in
/// segments that an access to less than a dword has used. is_narrow(line) tests for such a segment,
/// and make_narrow(line) makes it one. An access to part of a dword never changes the dword's tags,
/// whatever other threads do to the segment meanwhile: those tags would claim that the neighbouring
/// bytes were used, too.
template <class T, class IsNarrow, class MakeNarrow, class Note>
void note_each(const TagArrays<T>& tags, uint64_t first, uint64_t end, const IsNarrow& is_narrow,
               const MakeNarrow& make_narrow, const Note& note) {
  for (uint64_t from = first; from < end;) {
    const uint64_t line = from / RaceShadow::kLine;
    const uint64_t to = std::min(end, (line + 1) * RaceShadow::kLine);
    const bool part = from % 4 != 0 || to % 4 != 0;
    if (part) make_narrow(line);
    const bool narrow = part || is_narrow(line);
    for (; from < to; from += narrow ? 1 : 4) {
      if (narrow) {
        note(from, tags.byte_writers[from], tags.byte_readers[from]);
      } else {
        note(from, tags.writers[from / 4], tags.readers[from / 4]);
      }
    }
  }
}

void check_written(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane) {
  const std::vector<uint8_t>& written = w->group->lds_track->written;
  const auto any_in = [&](uint64_t from, uint64_t to) {
    const auto begin = written.begin();
    return std::find(begin + static_cast<ptrdiff_t>(from), begin + static_cast<ptrdiff_t>(to), 1) !=
           begin + static_cast<ptrdiff_t>(to);
  };
  // Dwords of which a part has been written count as written, as in global memory.
  uint64_t from = offset;
  const uint64_t end = offset + bytes;
  while (from < end && any_in(from, std::min(end, (from / 4 + 1) * 4))) from = (from / 4 + 1) * 4;
  if (from >= end) return;
  const uint64_t distance = from - offset;
  report(w, op, Check::lds, lane_of_wave(w, lane_at(lane, distance)),
         "reads LDS at " + std::to_string(offset + distance) + ", which nothing has written");
}

/// Returns another wave that stored to the range without a wait before the last barrier. `lds`: the
/// address is an offset in LDS.
std::optional<uint32_t> late_wave(const Wave* w, bool lds, uint64_t address, uint32_t bytes,
                                  Use use) {
  const Workgroup& group = *w->group;
  for (uint32_t i = 0; i < group.waves_begun; ++i) {
    const Track& track = *group.waves[i]->track;
    const StoreRing& stores = lds ? track.lds_stores : track.global_stores;
    if (i != w->index && stores.is_late(address, bytes, use == Use::atomic)) return i;
  }
  return std::nullopt;
}

/// Reports an access to what another wave stored without a wait before the last barrier.
void check_late(Wave* w, const Op* op, bool lds, uint64_t address, uint32_t bytes, int lane,
                Use use) {
  const auto wave = late_wave(w, lds, address, bytes, use);
  if (!wave) return;
  const std::string where =
      lds ? "LDS at " + std::to_string(address) : "memory at " + place_of(w, address);
  report(w, op, Check::waits, lane_of_wave(w, lane_at(lane, 0)),
         (use == Use::read ? "reads " : "writes ") + where + ", which wave " +
             std::to_string(*wave) + " stored without a wait for the store before the barrier");
}

}  // namespace

bool use_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane, Use use) {
  LdsTrack& track = *w->group->lds_track;
  if (offset + bytes > track.written.size()) return true;
  const bool several = lane < 0 && use == Use::write;
  if (several && track.lds_late && late_wave(w, true, offset, bytes, use)) return false;
  if (use == Use::read) {
    check_written(w, op, offset, bytes, lane);
  } else {
    std::fill_n(track.written.begin() + static_cast<ptrdiff_t>(offset), bytes, 1);
  }
  if (track.lds_late) check_late(w, op, true, offset, bytes, lane, use);
  // Atomic operations are ordered with each other and may have ordered plain accesses, until the
  // next barrier. Those plain accesses may be atomic loads and stores: they have no instructions of
  // their own.
  if (use == Use::atomic) track.atomics_in = track.epoch;
  if (w->group->waves_begun < 2 || !w->launch->check_races || track.atomics_in == track.epoch)
    return true;
  const LdsRule rule(w);
  const TagArrays<uint32_t> tags{track.writer.data(), track.reader.data(), track.byte_writer.data(),
                                 track.byte_reader.data()};
  const auto is_narrow = [&](uint64_t line) { return track.narrow[line] == track.epoch; };
  const auto make_narrow = [&](uint64_t line) {
    if (is_narrow(line)) return;
    tags.give_to_bytes(line, track.writer.size() * 4);
    track.narrow[line] = track.epoch;
  };
  const auto tell = [&](uint64_t at, uint32_t tag, const char* other) {
    at = std::max(at, offset);
    report(w, op, Check::races, lane_of_wave(w, lane_at(lane, at - offset)),
           lds_text(use == Use::read ? "reads" : "writes", at, tag % 64, other));
  };
  bool races = false;
  if (several) {
    note_each(tags, offset, offset + bytes, is_narrow, make_narrow,
              [&](uint64_t, uint32_t writer, uint32_t reader) {
                races |= rule.wrote_unordered(writer) || rule.read_unordered(reader);
              });
  }
  if (races) return false;
  note_each(tags, offset, offset + bytes, is_narrow, make_narrow,
            [&](uint64_t at, uint32_t& writer, uint32_t& reader) {
              if (rule.wrote_unordered(writer)) tell(at, writer, "wrote");
              if (use == Use::read) {
                reader = rule.with_reader(reader);
              } else {
                if (rule.read_unordered(reader)) tell(at, reader, "read");
                writer = rule.mine;
              }
            });
  return true;
}

namespace {

template <class T>
T* reserve(size_t count) {
  void* room = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(room);
}

}  // namespace

// The fast paths of race_checks.h may access tags slightly beyond the end of the arena.
RaceShadow::RaceShadow(uintptr_t arena, size_t arena_bytes) : base(arena), bytes(arena_bytes) {
  const size_t dwords = bytes / 4 + 16, each = bytes + 64;
  writers = reserve<Tag>(2 * dwords);
  readers = writers + dwords;
  byte_writers = reserve<Tag>(2 * each);
  byte_readers = byte_writers + each;
  lines = reserve<Line>(bytes / kLine + 2);
}

RaceShadow::~RaceShadow() {
  for_all([](void* room, size_t room_bytes) { munmap(room, room_bytes); });
}

void RaceShadow::forget() {
  for_all([](void* room, size_t room_bytes) { madvise(room, room_bytes, MADV_DONTNEED); });
}

void RaceShadow::forget(uintptr_t address, size_t size) {
  constexpr size_t kMuch = 1 << 20;  // from here on, returning pages is faster than writing them
  constexpr uintptr_t kPage = 4096;
  char* from = reinterpret_cast<char*>(lines + (address - base) / kLine);
  char* to = reinterpret_cast<char*>(lines + (address - base + size + kLine - 1) / kLine);
  if (static_cast<size_t>(to - from) > kMuch) {
    const auto up =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(from) + kPage - 1) & -kPage);
    const auto down = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(to) & -kPage);
    madvise(up, static_cast<size_t>(down - up), MADV_DONTNEED);
    std::memset(down, 0, static_cast<size_t>(to - down));
    to = up;
  }
  // Most memory that is allocated was never used by a kernel; its tags stay untouched pages.
  for (; from < to; from += sizeof(Line)) {
    auto& line = *reinterpret_cast<Line*>(from);
    if ((line.writer | line.reader | line.divided) != 0) line = {};
  }
}

namespace {

/// Changes a segment's mark to wanted(mark) if it is another one, and calls give(mark) with the old
/// mark meanwhile. One of the threads that need the change performs it and the others wait.
template <class Wanted, class Give>
void change_line(RaceShadow::Line& line, const Wanted& wanted, const Give& give) {
  for (;;) {
    uint32_t now = line.mark();
    if ((now & RaceShadow::kBusy) != 0) {
      std::this_thread::yield();
      continue;
    }
    const uint32_t to = wanted(now);
    if (to == now) return;
    if (!__atomic_compare_exchange_n(&line.divided, &now, to | RaceShadow::kBusy, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      continue;
    }
    give(now);
    __atomic_store_n(&line.divided, to, __ATOMIC_RELEASE);
    return;
  }
}

/// Copies a segment's tag to its dwords, or to its bytes.
void give_tag(Tag tag, Tag* dwords, Tag* bytes, uint64_t line, bool narrow) {
  constexpr uint64_t kLine = RaceShadow::kLine;
  if (narrow) {
    std::fill_n(bytes + line * kLine, kLine, tag);
  } else {
    std::fill_n(dwords + line * (kLine / 4), kLine / 4, tag);
  }
}

}  // namespace

void divide_line(Wave* w, uint64_t line) {
  const Launch& launch = *w->launch;
  RaceShadow& shadow = *launch.races;
  RaceShadow::Line& entry = shadow.lines[line];
  constexpr uint32_t kMarks = RaceShadow::kMarks;
  const auto foreign = [&](Tag tag) { return launch.foreign[tag >> 56]; };
  // The tags of its dwords and bytes count as far as they belong to this launch or a foreign one.
  const auto wanted = [&](uint32_t now) {
    if ((now & ~kMarks) == launch.race_tag) return now;
    uint32_t to = launch.race_tag;
    if (foreign(Tag{now} << 32)) to |= RaceShadow::kForeign | (now & RaceShadow::kNarrow);
    if (foreign(entry.writer) || foreign(entry.reader)) to |= RaceShadow::kForeign;
    return to;
  };
  change_line(entry, wanted, [&](uint32_t now) {
    const bool narrow = (wanted(now) & RaceShadow::kNarrow) != 0;
    const auto counts = [&](Tag tag) { return tag >> 56 == launch.race_tag >> 24 || foreign(tag); };
    if (counts(entry.writer))
      give_tag(entry.writer, shadow.writers, shadow.byte_writers, line, narrow);
    if (counts(entry.reader))
      give_tag(entry.reader, shadow.readers, shadow.byte_readers, line, narrow);
    entry.writer = entry.reader = 0;
  });
}

namespace {

/// Makes the bytes of a segment have tags of their own.
void narrow_line(Wave* w, uint64_t line) {
  RaceShadow& shadow = *w->launch->races;
  const TagArrays<Tag> tags{shadow.writers, shadow.readers, shadow.byte_writers,
                            shadow.byte_readers};
  divide_line(w, line);
  change_line(
      shadow.lines[line], [](uint32_t now) { return now | RaceShadow::kNarrow; },
      [&](uint32_t) { tags.give_to_bytes(line, shadow.bytes); });
}

/// Describes who used memory that this wave uses, too.
std::string user_of(const Wave* w, Tag tag) {
  if (tag >> 56 != w->launch->race_tag >> 24) return "a kernel on another stream";
  const uint32_t group = tag >> 32 & RaceShadow::kSeveral, wave = tag & 63;
  if (tag >> 32 == RaceShadow::tag_of(w->launch->race_tag, w->group->number)) {
    return wave == LdsTrack::kSeveral ? "other waves" : "wave " + std::to_string(wave);
  }
  return group == RaceShadow::kSeveral ? "other workgroups"
                                       : "workgroup number " + std::to_string(group - 1);
}

const char* missing_order(const Wave* w, Tag tag) {
  if (tag >> 56 != w->launch->race_tag >> 24) return " without an order between them";
  const bool own = tag >> 32 == RaceShadow::tag_of(w->launch->race_tag, w->group->number);
  return own ? " without a barrier between" : " in this launch";
}

}  // namespace

bool use_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane, Use use) {
  const Launch& launch = *w->launch;
  RaceShadow& shadow = *launch.races;
  if (use == Use::atomic) {
    w->group->synchronised = true;
    return true;
  }
  if (address - shadow.base >= shadow.bytes || w->group->synchronised) return true;
  const uint64_t offset = address - shadow.base;
  const LdsTrack& track = *w->group->lds_track;
  const GlobalRule rule(w);
  const auto foreign = [&](Tag tag) { return launch.foreign[tag >> 56]; };
  // Atomic operations on LDS may have ordered the waves of the workgroup.
  const bool ordered = track.atomics_in == track.epoch;
  const auto own = [&](Tag tag) { return tag >> 32 == rule.mine >> 32; };
  const auto is_narrow = [&](uint64_t line) {
    const uint32_t mark = shadow.lines[line].mark();
    return (mark & ~RaceShadow::kMarks) == launch.race_tag && (mark & RaceShadow::kNarrow) != 0;
  };
  const auto tell = [&](uint64_t at, Tag tag, const char* what) {
    at = std::max(at, offset);
    if (own(tag) && (tag >> 6 & rule.kEpochs) != (rule.mine >> 6 & rule.kEpochs)) {
      return check_late(w, op, false, shadow.base + at, 1, lane, use);
    }
    if (own(tag) && ordered) return;
    report(w, op, Check::races, lane_of_wave(w, lane_at(lane, at - offset)),
           std::string(use == Use::read ? "reads" : "writes") + " memory at " +
               place_of(w, shadow.base + at) + " that " + user_of(w, tag) + " " + what +
               missing_order(w, tag));
  };
  const TagArrays<Tag> tags{shadow.writers, shadow.readers, shadow.byte_writers,
                            shadow.byte_readers};
  const auto make_narrow = [&](uint64_t line) { narrow_line(w, line); };
  const auto wrote = [&](Tag tag) { return rule.wrote_unordered(tag) || foreign(tag); };
  const auto read = [&](Tag tag) { return rule.read_unordered(tag) || foreign(tag); };
  bool races = false;
  if (lane < 0 && use == Use::write) {
    note_each(tags, offset, offset + bytes, is_narrow, make_narrow,
              [&](uint64_t, Tag writer, Tag reader) { races |= wrote(writer) || read(reader); });
  }
  if (races) return false;
  note_each(tags, offset, offset + bytes, is_narrow, make_narrow,
            [&](uint64_t at, Tag& writer, Tag& reader) {
              if (wrote(writer)) {
                tell(at, writer, "wrote");
              } else if (use == Use::write && read(reader)) {
                tell(at, reader, "read");
              }
              if (use == Use::read) {
                reader = rule.with_reader(reader);
              } else {
                writer = rule.mine;
              }
            });
  return true;
}

void report_overwritten(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets,
                        uint32_t lanes, uint32_t bytes) {
  const int first = std::countr_zero(lanes);
  for (uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uint32_t distance =
        std::max(offsets[lane], offsets[first]) - std::min(offsets[lane], offsets[first]);
    if (distance >= bytes) continue;
    const uint64_t address = base + offsets[first];
    const auto lds = reinterpret_cast<uint64_t>(w->lds);
    const std::string where = address - lds < w->lds_bytes
                                  ? "LDS at " + std::to_string(address - lds)
                                  : "memory at " + place_of(w, address);
    report(w, op, Check::races, lane_of_wave(w, first),
           "writes " + where + ", to which lane " + std::to_string(lane_of_wave(w, lane)) +
               " writes another value at once");
    return;
  }
}

void pass_barrier(Workgroup& group) {
  LdsTrack& track = *group.lds_track;
  ++track.epoch;
  track.lds_late = track.global_late = false;
  for (uint32_t i = 0; i < group.waves_begun; ++i) {
    Track& of = *group.waves[i]->track;
    track.lds_late |= of.lds_stores.pass();
    track.global_late |= of.global_stores.pass();
  }
}

}  // namespace emu
